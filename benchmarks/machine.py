"""What was measured on, and how fast its matrix products are: the yardstick of the same run."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits


def describe(threads: int) -> dict[str, object]:
    """CPU, system and versions; nothing that names the machine or its paths."""
    model = ""
    cores: dict[str, int] = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name" and not model:
                    model = value.strip()
                if key.strip() == "flags" and not cores:
                    cores = {name: int(name in value.split()) for name in ("avx2", "fma", "avx512f")}
    except OSError:
        model = platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    libraries = (lib for lib in threadpool_info() if lib["user_api"] == "blas")
    blas = sorted({f"{lib['internal_api']} {lib['version']}" for lib in libraries})
    packages = {}
    for name in ("matmix", "numpy", "scikit-learn", "tensorly", "ppca-rs", "torch"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "did not install"
    return {
        "cpu": model or platform.machine(),
        "cores": os.cpu_count(),
        "instructions": [name for name, there in cores.items() if there],
        "memory_gb": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": blas,
        "threads": threads,
        "packages": packages,
    }


def matrix_product(dtype: str, threads: int, sizes: tuple[int, ...], repeats: int) -> float:
    """The best flops per second of square products through NumPy's BLAS."""
    rng = np.random.default_rng(0)
    best = 0.0
    with threadpool_limits(threads):
        for size in sizes:
            a, b = (rng.standard_normal((size, size)).astype(dtype) for _ in range(2))
            out = np.empty_like(a)
            for _ in range(repeats + 1):
                begun = time.perf_counter()
                np.matmul(a, b, out=out)
                best = max(best, 2.0 * size**3 / (time.perf_counter() - begun))
    return best


def yardstick(threads: int, quick: bool) -> dict[str, float]:
    """sgemm and dgemm on all threads and on one."""
    sizes, repeats = ((512, 1024), 2) if quick else ((1024, 2048, 3072), 5)
    found = {}
    for name, dtype in (("f32", "float32"), ("f64", "float64")):
        for count in {1, threads}:
            found[f"{name}, {count}"] = matrix_product(dtype, count, sizes, repeats)
    return found
