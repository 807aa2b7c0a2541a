"""The GPU: its kernels compile, and asking for one that is not there is an error that says so."""

import ctypes
import importlib.metadata
import pathlib

import matmix
import numpy as np
import pytest

SOURCES = pathlib.Path(__file__).parents[2] / "crates" / "matmix" / "src" / "cuda"


def compiler():
    """NVRTC from its wheel: it needs no GPU."""
    files = importlib.metadata.files("nvidia-cuda-nvrtc") or []
    names = [f for f in files if f.name.startswith("libnvrtc.so") or f.name.startswith("nvrtc64")]
    assert names, "the wheel holds the library"
    return ctypes.CDLL(str(names[0].locate()))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("real", ["float", "double"])
def test_the_kernels_compile(real, architecture):
    nvrtc = compiler()
    source = (SOURCES / "kernels.cu").read_text()
    if real == "float":
        source += "\n" + (SOURCES / "tensor_cores.cu").read_text()
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"matmix.cu", 0, None, None) == 0
    options = [f"-DREAL={real}".encode(), f"--gpu-architecture={architecture}".encode()]
    result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert result == 0, log.value.decode()


def test_a_gpu_that_is_not_there_is_an_error():
    X = np.random.default_rng(0).normal(size=(40, 4, 3))
    expected = matmix.Mixture(2, rank=1, random_state=0).fit(X)
    automatic = matmix.Mixture(2, rank=1, random_state=0, device="auto").fit(X)
    assert np.array_equal(expected.means_, automatic.means_), "so little work stays where it is"
    try:
        there = matmix.Mixture(2, rank=1, random_state=0, device="cuda").fit(X)
    except RuntimeError as error:
        assert "no GPU can be used" in str(error) or "there is no GPU" in str(error) or "the GPU failed" in str(error)
    else:
        assert abs(there.lower_bound_ - expected.lower_bound_) < 1e-6 * abs(expected.lower_bound_)
    with pytest.raises(ValueError, match="'device' parameter of Mixture must be a str among"):
        matmix.Mixture(2, device="tpu").fit(X)
