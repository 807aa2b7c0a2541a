"""The GPU: its kernels compile, asking for one that is not there is an error that says so, and one that is there
answers what the processor does.

The tests that need a GPU are skipped without one, and fail instead where MATMIX_NEED_GPU is set.
"""

import ctypes
import gc
import importlib.metadata
import os
import pathlib
import re
import sys
import types

import matmix
import numpy as np
import pytest
from matmix import _dlpack
from matmix._on_gpu import OnGpu

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


NO_GPU = "no GPU can be used|there is no GPU|the GPU failed"


@pytest.fixture(scope="module")
def gpu():
    """Skips what needs a GPU where there is none."""
    try:
        matmix.Mixture(1, rank=1, random_state=0, device="cuda").fit(np.eye(12).reshape(12, 4, 3))
    except RuntimeError as error:
        assert "MATMIX_NEED_GPU" not in os.environ, error
        pytest.skip(f"LEFT OUT, no GPU: {error}")


@pytest.fixture(scope="module")
def torch(gpu):
    return pytest.importorskip("torch", reason="LEFT OUT, no PyTorch")


def some_samples(n=3000, dtype=np.float32):
    rng = np.random.default_rng(0)
    patterns = rng.normal(size=(3, 12, 10))
    which = rng.integers(0, 3, n)
    bend = rng.normal(size=(n, 1, 1)) * rng.normal(size=(12, 1)) * rng.normal(size=10)
    X = patterns[which] + 0.3 * bend + 0.1 * rng.normal(size=(n, 12, 10))
    if dtype == np.uint8:
        return np.clip(32 * (X + 4), 0, 255).astype(np.uint8)
    return X.astype(dtype)


def lent(array, **changes):
    """An object that offers the interface of an array, and nothing else."""
    there = array.__cuda_array_interface__
    return types.SimpleNamespace(owner=array, __cuda_array_interface__={**there, **changes})


def not_on_a_gpu(X):
    """An object that says of memory of the host that a GPU has it."""
    interface = {"shape": X.shape, "typestr": X.dtype.str, "data": (X.ctypes.data, False), "version": 3}
    return types.SimpleNamespace(owner=X, __cuda_array_interface__=interface)


class ByDlpack:
    """An array of the host that offers DLPack alone, and may say that a GPU has it."""

    def __init__(self, X, kind=2):
        self.X, self.kind = X, kind

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self):
        return self.X.__dlpack__()


class Foreign:
    """An array of a library that follows the array API standard, on a device of its own."""

    def __init__(self, X, device="there"):
        self.X, self.device, self.shape, self.dtype = np.asarray(X), device, X.shape, X.dtype

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.X, dtype)

    def __array_namespace__(self):
        return types.SimpleNamespace(asarray=lambda X, device: Foreign(X, device))

    def mean(self):
        return self.X.mean()


QUESTIONS = ["score_samples", "predict_proba", "transform", "reconstruct", "reconstruction_error", "bic"]


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


def test_arrays_of_a_gpu_are_not_worked_on_by_the_processor_unasked():
    there = not_on_a_gpu(some_samples(50))
    with pytest.raises(ValueError, match=r"memory of a GPU: Mixture\(device='cuda'\) works on it there"):
        matmix.Mixture(2, rank=1).fit(there)
    with pytest.raises(TypeError, match="LowRank works on the processor"):
        matmix.LowRank(2).fit(there)
    with pytest.raises(RuntimeError, match=NO_GPU + "|cannot be used"):
        matmix.Mixture(2, rank=1, device="auto").fit(there)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typestr": "<f2"}, "must be of uint8, float32 or float64, and this is of <f2"),
        ({"strides": (480, 4, 48)}, "must be C-contiguous"),
        ({"mask": 1}, "leaves cells out"),
    ],
)
def test_arrays_of_a_gpu_that_cannot_be_used_say_why(changes, message):
    there = not_on_a_gpu(some_samples(50))
    there.__cuda_array_interface__.update(changes)
    with pytest.raises((TypeError, ValueError), match=message):
        matmix.Mixture(2, rank=1, device="cuda").fit(there)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.float16, np.int32, np.bool_])
def test_dlpack_tells_what_the_interface_of_cuda_would(dtype):
    X = np.ones((6, 5, 4), dtype=dtype)
    for view in [X, X[2:], X[:, ::2], X.swapaxes(1, 2)]:
        told, owner = _dlpack.interface(ByDlpack(view))
        expected = view.__array_interface__
        assert told["data"][0] == expected["data"][0] and told["shape"] == view.shape
        assert np.dtype(told["typestr"]) == view.dtype
        assert told["strides"] is None or told["strides"] == view.strides
        assert "dltensor" in repr(owner), "it is not used up: whoever made it frees it"
    assert _dlpack.is_on_gpu(ByDlpack(X)) and _dlpack.is_on_gpu(ByDlpack(X, 13))
    assert not _dlpack.is_on_gpu(ByDlpack(X, 1)) and not _dlpack.is_on_gpu(X) and not _dlpack.is_on_gpu([1.0])


def test_the_memory_behind_dlpack_lives_as_long_as_it_is_used():
    X = np.ones((6, 5, 4))
    held = sys.getrefcount(X)
    there = OnGpu(ByDlpack(X))
    assert sys.getrefcount(X) > held and there.shape == X.shape and there.dtype == X.dtype and len(there) == 6
    del there
    gc.collect()
    assert sys.getrefcount(X) == held


def test_arrays_that_offer_dlpack_alone_are_taken_for_what_they_say():
    X = some_samples(50)
    with pytest.raises(ValueError, match=r"memory of a GPU: Mixture\(device='cuda'\) works on it there"):
        matmix.Mixture(2, rank=1).fit(ByDlpack(X))
    with pytest.raises(RuntimeError, match=NO_GPU + "|cannot be used"):
        matmix.Mixture(2, rank=1, device="cuda").fit(ByDlpack(X))
    with pytest.raises(ValueError, match="must be C-contiguous"):
        matmix.Mixture(2, rank=1, device="cuda").fit(ByDlpack(X.swapaxes(1, 2)))
    with pytest.raises(TypeError, match="must be of uint8, float32 or float64, and this is of <f2"):
        matmix.Mixture(2, rank=1, device="cuda").fit(ByDlpack(X.astype(np.float16)))


@pytest.mark.parametrize("kind", ["parts", "dask"])
def test_whoever_holds_blocks_knows_the_device(kind):
    X = some_samples(400)
    if kind == "parts":
        parts = matmix.Parts([X[:150], X[150:]])
    else:
        parts = pytest.importorskip("dask.array").from_array(X, chunks=(150, -1, -1))
    expected = matmix.Mixture(2, rank=2, random_state=0, max_iter=5, tol=0).fit(parts)
    automatic = matmix.Mixture(2, rank=2, random_state=0, max_iter=5, tol=0, device="auto").fit(parts)
    assert np.array_equal(expected.means_, automatic.means_), "so little work stays where it is"
    try:
        there = matmix.Mixture(2, rank=2, random_state=0, max_iter=5, tol=0, device="cuda").fit(parts)
    except RuntimeError as error:
        assert any(words in str(error) for words in NO_GPU.split("|"))
    else:
        there, expected = (np.asarray(model.score_samples(parts)) for model in (there, expected))
        assert np.allclose(there, expected, rtol=1e-4, atol=1e-3)


ARRAYS = ["predict", "predict_proba", "transform", "reconstruct", "denoise", "squared_errors", "score_samples"]


def answers(model, X):
    """All arrays that a model answers with."""
    found = {name: getattr(model, name)(X) for name in ARRAYS}
    found["cores"], found["component"] = model.cores(X)
    found["rebuilt"] = model.rebuild(found["cores"], found["component"])
    found["inverse"] = model.inverse_transform(found["transform"])
    found["mean"], found["variance"] = model.posterior(X)
    return found


@pytest.mark.parametrize("kind", [matmix.Mixture, matmix.MP2DPCA])
def test_answers_are_arrays_of_the_kind_of_the_samples_if_they_are_asked_to_be(kind):
    X = some_samples(60)
    model = kind(2, rank=2, random_state=0, missing="nan").fit(X)
    expected = answers(model, X)
    assert all(type(found) is np.ndarray for found in answers(model, Foreign(X)).values()), "NumPy's unless asked"
    model.set_params(output="input")
    for name, found in answers(model, Foreign(X)).items():
        assert type(found) is Foreign and found.device == "there", name
        assert np.array_equal(found.X, expected[name]) and found.dtype == expected[name].dtype, name
    # Numbers stay numbers, and arrays of NumPy theirs.
    assert model.score(Foreign(X)) == model.score(X) == expected["score_samples"].mean()
    assert model.reconstruction_error(Foreign(X)) == model.reconstruction_error(X)
    assert all(type(found) is np.ndarray for found in answers(model, X).values())
    assert type(model.predict(X.tolist())) is np.ndarray, "lists are no arrays"
    X[0, 1, 2] = np.nan
    filled, std = model.impute(Foreign(X), return_std=True)
    assert type(filled) is type(std) is Foreign and not np.isnan(filled.X).any()
    with pytest.raises(ValueError, match="'output' parameter of M"):
        model.set_params(output="torch").fit(some_samples(60))


def visible(worker, gpus):
    """A worker of Dask that sees these GPUs, in a process of its own."""
    return {"cls": worker, "options": {"nthreads": 1, "env": {"CUDA_VISIBLE_DEVICES": gpus}}}


def test_a_worker_of_dask_uses_its_gpu(gpu):
    distributed = pytest.importorskip("distributed", reason="LEFT OUT, no Dask")
    import dask.array

    X = some_samples()
    options = {"n_components": 3, "rank": 2, "random_state": 0, "max_iter": 5, "tol": 0}
    here = matmix.Mixture(**options).fit(X)
    blocks = dask.array.from_array(X, chunks=(700, -1, -1))
    for gpus, sees_one in [("0", True), ("", False)]:
        workers = {"one": visible(distributed.Nanny, gpus)}
        scheduler = {"cls": distributed.Scheduler, "options": {"host": "127.0.0.1", "dashboard": False, "port": 0}}
        with (
            distributed.SpecCluster(workers=workers, scheduler=scheduler) as cluster,
            distributed.Client(cluster) as client,
        ):
            there = matmix.Mixture(**options, device="cuda")
            if not sees_one:
                with pytest.raises(RuntimeError, match=NO_GPU):
                    there.fit(blocks)
                there.set_params(device="auto").fit(blocks)
                assert np.array_equal(there.means_, matmix.Mixture(**options).fit(blocks).means_)
                continue
            there.fit(blocks)
            assert abs(here.lower_bound_ - there.lower_bound_) < 1e-5 * abs(here.lower_bound_)
            assert not np.array_equal(here.means_, there.means_), "what a GPU adds up is rounded its own way"
            assert np.allclose(there.score_samples(blocks).compute(), here.score_samples(X), rtol=1e-3, atol=1e-2)
            memory = client.run(lambda: pathlib.Path("/proc/self/maps").read_text().count("libcuda.so"))
            assert all(memory.values()), "the driver is loaded where the blocks are"


def test_missing_cells_are_for_the_processor():
    X = some_samples(300)
    X[5, 3, 2] = np.nan
    assert matmix.Mixture(2, rank=1, missing="nan", device="auto", max_iter=3, tol=0).fit(X).n_iter_ == 3
    with pytest.raises(RuntimeError, match=NO_GPU + "|missing cells cannot be worked on by a GPU"):
        matmix.Mixture(2, rank=1, missing="nan", device="cuda").fit(X)


def test_batches_go_to_the_device_or_say_why_not():
    X = some_samples(300)
    options = {"rank": 1, "random_state": 0}
    here = matmix.Mixture(2, **options).partial_fit(X[:200]).partial_fit(X[200:])
    assert here.degrees_of_freedom_ is None, "Gaussian noise has none"
    few = matmix.Mixture(2, **options, device="auto").partial_fit(X[:200]).partial_fit(X[200:])
    assert few.lower_bounds_ == here.lower_bounds_, "too few for a GPU"
    there = matmix.Mixture(2, **options, device="cuda")
    try:
        there.partial_fit(X[:200]).partial_fit(X[200:])
    except RuntimeError as error:
        assert re.search(NO_GPU, str(error))
    else:
        assert np.allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_a_gpu_answers_what_the_processor_does(gpu, dtype):
    X = some_samples(dtype=dtype)
    here = matmix.Mixture(3, rank=2, random_state=0).fit(X)
    there = matmix.Mixture(3, rank=2, random_state=0, device="cuda").fit(X)
    assert abs(here.lower_bound_ - there.lower_bound_) < 1e-6 * abs(here.lower_bound_)
    there.model_ = here.model_
    for question in QUESTIONS:
        a, b = getattr(here, question)(X), getattr(there, question)(X)
        assert np.allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(a).max()), question
    assert np.array_equal(here.predict(X), there.predict(X))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_tensors_of_pytorch_are_used_where_they_are(torch, dtype):
    X = some_samples(dtype=dtype)
    tensor = torch.from_numpy(X).cuda()
    here = matmix.Mixture(3, rank=2, random_state=0).fit(X)
    # Written on another stream a moment ago, never brought to the host.
    there = matmix.Mixture(3, rank=2, random_state=0, device="auto").fit(tensor.clone())
    assert abs(here.lower_bound_ - there.lower_bound_) < 1e-6 * abs(here.lower_bound_)
    there.model_ = here.model_
    for question in QUESTIONS:
        a, b = getattr(here, question)(X), getattr(there, question)(tensor)
        assert isinstance(b, (np.ndarray, float)), question
        assert np.allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(a).max()), question
    assert np.array_equal(there.predict(lent(tensor)), here.predict(X))
    assert np.array_equal(there.predict(ByDlpack(tensor)), here.predict(X))
    assert np.array_equal(there.predict(tensor[100:200]), here.predict(X[100:200]))
    weights = np.linspace(0.1, 2, len(X))
    # As many iterations, whatever the rule that ends a fit says.
    a, b = (
        model.set_params(max_iter=20, tol=0).fit(x, sample_weight=weights) for model, x in ((here, X), (there, tensor))
    )
    assert abs(a.lower_bound_ - b.lower_bound_) < 1e-6 * abs(a.lower_bound_)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_answers_stay_on_the_gpu_if_they_are_asked_to(gpu, library):
    xp = pytest.importorskip(library, reason=f"LEFT OUT, no {library}")
    X = some_samples(500)
    there = xp.asarray(X, device="cuda") if library == "torch" else xp.asarray(X)
    model = matmix.Mixture(3, rank=2, random_state=0, device="cuda").fit(X)
    expected = answers(model, there)
    assert all(type(found) is np.ndarray for found in expected.values()), "NumPy's unless asked"
    for name, found in answers(model.set_params(output="input"), there).items():
        assert type(found) is type(there) and found.device == there.device, name
        assert np.array_equal(found.cpu().numpy() if library == "torch" else found.get(), expected[name]), name
    assert model.score(there) == pytest.approx(expected["score_samples"].mean(), rel=1e-12)
    assert model.reconstruction_error(there) > 0


def test_tensors_that_cannot_be_used_say_why(torch):
    tensor = torch.from_numpy(some_samples(200)).cuda()
    model = matmix.Mixture(2, rank=1, random_state=0, device="cuda")
    with pytest.raises(ValueError, match="must be C-contiguous"):
        model.fit(tensor.transpose(1, 2))
    with pytest.raises(TypeError, match="and this is of <f2"):
        model.fit(tensor.half())
    with pytest.raises(ValueError, match="works on it there"):
        matmix.Mixture(2).fit(tensor)
    tensor[3, 2, 1] = float("nan")
    with pytest.raises(ValueError, match=r"sample 3 holds NaN at position \[2, 1\]"):
        model.fit(tensor)
    with pytest.raises(RuntimeError, match=r"memory of the host|not the memory of a GPU"):
        model.fit(not_on_a_gpu(some_samples(50)))


def test_arrays_of_cupy_are_used_where_they_are(gpu):
    cupy = pytest.importorskip("cupy", reason="LEFT OUT, no CuPy")
    X = some_samples(dtype=np.float64)
    here = matmix.Mixture(3, rank=2, random_state=0).fit(X)
    there = matmix.Mixture(3, rank=2, random_state=0, device="cuda")
    with cupy.cuda.Stream(non_blocking=True):
        there.fit(cupy.asarray(X))
    assert abs(here.lower_bound_ - there.lower_bound_) < 1e-9 * abs(here.lower_bound_)


def test_little_memory_of_a_gpu_is_enough(gpu, monkeypatch):
    X = some_samples()
    expected = matmix.Mixture(3, rank=2, random_state=0, max_iter=5, tol=0).fit(X)
    monkeypatch.setenv("MATMIX_GPU_MEMORY", str(100_000))
    there = matmix.Mixture(3, rank=2, random_state=0, max_iter=5, tol=0, device="cuda").fit(X)
    assert abs(expected.lower_bound_ - there.lower_bound_) < 1e-5 * abs(expected.lower_bound_)
    monkeypatch.setenv("MATMIX_GPU_MEMORY", "plenty")
    with pytest.raises(ValueError, match="`MATMIX_GPU_MEMORY` is plenty; it must be a number of bytes"):
        there.fit(X)
