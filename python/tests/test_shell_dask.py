"""`matmix fit --dask`: the program's way to a cluster, by way of this package."""

import json
import os
import subprocess
import sys
import time

import matmix
import numpy as np
import pytest

pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.skipif("MATMIX_BIN" not in os.environ, reason="MATMIX_BIN does not name the program"),
]

OPTIONS = ["-k", "3", "-r", "3", "--max-iter", "6", "--tol", "0", "--seed", "1"]


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def folder(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for number, start in enumerate(range(0, len(digits[0]), 70)):
        np.save(folder / f"part{number}.npy", digits[0][start : start + 70])
    return folder


def shell(*arguments, python=sys.executable, cwd=None):
    """The program, with the Python of these tests."""
    environment = {**os.environ, "MATMIX_PYTHON": str(python)}
    command = [os.environ["MATMIX_BIN"], "fit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=cwd)


def test_the_shell_fits_on_a_cluster(address, folder, tmp_path):
    pattern = folder / "*.npy"
    done = shell("--dask", address, pattern, "--scale", "1/255", "-o", tmp_path / "m.mm", "--json", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert "mixb2dppca fitted to 300 samples of 28×28: 3 components, cores 3×3" in done.stderr
    figures = json.loads(done.stdout)
    assert figures["n_samples"] == 300 and figures["n_iterations"] == 6
    # The same files in one process: the same model file, byte for byte.
    alone = shell(pattern, "--scale", "1/255", "-o", tmp_path / "alone.mm", *OPTIONS)
    assert alone.returncode == 0, alone.stderr
    assert (tmp_path / "m.mm").read_bytes() == (tmp_path / "alone.mm").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        ["--precision", "double", "--noise-floor", "1e-3"],
        ["--stop", "error", "--tol", "50", "--no-stages", "--no-acceleration", "--n-init", "2"],
    ],
)
def test_every_option_of_a_fit_reaches_the_cluster(address, folder, tmp_path, options):
    options = ["-k", "2", "-r", "3x2", "--max-iter", "4", "--seed", "3", *options]
    there = shell("--dask", address, folder / "*.npy", "-o", tmp_path / "a.mm", *options)
    here = shell(folder / "*.npy", "-o", tmp_path / "b.mm", *options)
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert (tmp_path / "a.mm").read_bytes() == (tmp_path / "b.mm").read_bytes()
    plain = shell(folder / "*.npy", "-o", tmp_path / "c.mm", *options[:8])
    assert plain.returncode == 0
    assert (tmp_path / "a.mm").read_bytes() != (tmp_path / "c.mm").read_bytes()


def test_what_lies_beside_the_data_is_not_imported(address, folder, tmp_path):
    for module in ("json", "dask", "numpy", "distributed", "matmix", "warnings"):
        (tmp_path / f"{module}.py").write_text(
            f"open({str(tmp_path / 'was-run')!r}, 'w')\nraise SystemExit('{module}')\n"
        )
    done = shell("--dask", address, folder / "*.npy", "-o", "m.mm", *OPTIONS, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "m.mm").exists(), done.stderr
    assert not (tmp_path / "was-run").exists()


def test_a_signal_stops_the_fit_and_keeps_the_model(address, folder, tmp_path):
    state = tmp_path / "state.mm"
    kept = ["--checkpoint", state, "--checkpoint-every", "1", "--max-iter", "100000", "--tol", "0", "-k", "2"]
    command = ["--dask", address, folder / "*.npy", "-o", tmp_path / "m.mm", *kept]
    fit = subprocess.Popen(
        ["env", "--default-signal=TERM,INT", os.environ["MATMIX_BIN"], "fit", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MATMIX_PYTHON": sys.executable},
    )
    while not state.exists():
        assert fit.poll() is None, fit.stderr.read()
        time.sleep(0.05)
    fit.terminate()
    said = fit.communicate(timeout=60)[1]
    assert fit.returncode == 143, said
    assert "stopped by SIGTERM, the best model so far is kept" in said
    assert matmix.load(tmp_path / "m.mm").n_iter_ > 0


def test_low_rank_and_other_types_of_elements(address, digits, tmp_path):
    for number in range(3):
        np.save(tmp_path / f"x{number}.npy", digits[0][number * 90 : number * 90 + 90].astype(">i2") * 3)
    options = ["--model", "pca", "-r", "3"]
    there = shell("--dask", address, tmp_path / "*.npy", "-o", tmp_path / "a.mm", *options)
    here = shell(tmp_path / "*.npy", "-o", tmp_path / "b.mm", *options)
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert (tmp_path / "a.mm").read_bytes() == (tmp_path / "b.mm").read_bytes()


def test_a_checkpoint(address, folder, tmp_path):
    pattern, state = folder / "*.npy", tmp_path / "state.mm"
    kept = ["--checkpoint", state, "--checkpoint-every", "2"]
    first = shell("--dask", address, pattern, "-o", tmp_path / "a.mm", *kept, *OPTIONS)
    assert first.returncode == 0 and state.exists(), first.stderr
    again = shell("--dask", address, pattern, "-o", tmp_path / "b.mm", *kept, "--resume", *OPTIONS)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "a.mm").read_bytes() == (tmp_path / "b.mm").read_bytes()


def test_what_goes_wrong_is_one_message_and_a_hint(address, folder, tmp_path):
    out = ["-o", tmp_path / "m.mm"]
    for arguments, message in [
        (["--dask", address, folder / "*.npz"], "there is no such file"),
        (["--dask", address, folder / "*.npy", "--take", "0:5"], "--take cannot be used together with --dask"),
        (["--dask", address, folder / "*.npy", "-r", "40"], "rank 40 of mode 0 does not fit its side of 28"),
        (["--dask", address, folder / "*.npy", "--model", "glram", "--device", "cuda"], "processors of a cluster only"),
    ]:
        done = shell(*arguments, *out)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr and done.stderr.startswith("error: ") and "\nhint: " in done.stderr
        assert not (tmp_path / "m.mm").exists()


def test_without_the_package_it_says_what_to_install(folder, tmp_path):
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    arguments = ["--dask", "tcp://127.0.0.1:1", folder / "*.npy", "-o", tmp_path / "m.mm"]
    done = shell(*arguments, python=bare)
    assert done.returncode == 2
    assert "cannot import what it needs: No module named" in done.stderr and "pip install" in done.stderr


def test_without_python_it_says_what_to_install(folder, tmp_path):
    nowhere = tmp_path / "nowhere"
    done = shell("--dask", "tcp://127.0.0.1:1", folder / "*.npy", "-o", tmp_path / "m.mm", python=nowhere)
    assert done.returncode == 2
    assert "python3 cannot be run" in done.stderr and "pip install" in done.stderr
