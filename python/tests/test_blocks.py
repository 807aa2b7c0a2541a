"""Samples in parts and lazily read arrays: never one array in memory, and the same model."""

import threading

import matmix
import numpy as np
import pytest
from matmix import _blocks
from same_bits import assert_same_bits

h5py = pytest.importorskip("h5py")
xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

OPTIONS = {"n_components": 3, "rank": 3, "random_state": 1, "max_iter": 5, "tol": 0}


class Watched:
    """An array that can only be read in slices, and knows which."""

    def __init__(self, array, chunks=None):
        self.array, self.shape, self.dtype, self.chunks = array, array.shape, array.dtype, chunks
        self.slices = []
        self.threads = set()

    def __getitem__(self, piece):
        self.slices.append((piece.start, piece.stop))
        self.threads.add(threading.current_thread().name.split("_")[0])
        return self.array[piece]

    def __array__(self, *args, **kwargs):
        raise AssertionError("converted whole")


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 100 digits."""
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 100 * 784)


def in_parts(X, step=100):
    return matmix.Parts([X[start : start + step] for start in range(0, len(X), step)])


def test_parts_are_the_whole(digits):
    """Same model as of the one array, but for the order of addition."""
    X = digits[0] / 255
    whole = matmix.Mixture(**OPTIONS).fit(X)
    parts = matmix.Mixture(**OPTIONS).fit(in_parts(X))
    np.testing.assert_allclose(parts.lower_bounds_, whole.lower_bounds_, rtol=1e-10)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-6, atol=1e-9)
    assert repr(in_parts(X)) == f"Parts(shape={X.shape}, dtype=float64, blocks={-(-len(X) // 100)})"


@pytest.mark.parametrize("chunks", [None, (30, 28, 28), (64, 7, 28)])
def test_a_lazy_array_is_read_once_per_pass_between_its_own_chunks(digits, small_blocks, chunks):
    X = digits[0]
    lazy = Watched(X, chunks)
    model = matmix.Mixture(**{**OPTIONS, "max_iter": 0}).fit(lazy)
    step = 100 if chunks is None else {30: 90, 64: 64}[chunks[0]]
    wanted = [(a, min(a + step, len(X))) for a in range(0, len(X), step)]
    assert set(lazy.slices) == set(wanted)
    assert lazy.threads == {"matmix-read"}
    # A look at some samples of every block, one block for the sample that moments are taken around, and whole passes.
    look, first, rest = lazy.slices[: len(wanted)], lazy.slices[len(wanted)], lazy.slices[len(wanted) + 1 :]
    per_pass = [rest[i : i + len(wanted)] for i in range(0, len(rest), len(wanted))]
    assert look == wanted and first == wanted[0] and all(one == wanted for one in per_pass)
    assert_same_bits(model, matmix.Mixture(**{**OPTIONS, "max_iter": 0}).fit(in_parts(X, step)))


def stored(kind, X, folder):
    if kind == "h5py":
        file = h5py.File(folder / "x.h5", "w")
        return file.create_dataset("x", data=X, chunks=(50, 28, 28))
    if kind == "zarr":
        array = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, chunks=(50, 28, 28), dtype=X.dtype)
        array[:] = X
        return array
    if kind == "xarray":
        xarray.DataArray(X, dims=("n", "y", "x"), name="x").to_netcdf(folder / "x.nc", engine="h5netcdf")
        return xarray.open_dataarray(folder / "x.nc", engine="h5netcdf")
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


@pytest.mark.parametrize("kind", ["h5py", "zarr", "xarray", "memmap"])
@pytest.mark.parametrize("dtype", ["u1", "<i2", ">f4", "f8"])
def test_every_kind_of_file(digits, small_blocks, tmp_path, kind, dtype):
    X = digits[0].astype(dtype)
    lazy = stored(kind, X, tmp_path)
    blocks = _blocks.as_blocks(lazy)
    if kind == "memmap" and dtype in ("u1", "f8"):
        assert blocks is None, "the native part borrows it"
        wanted = matmix.Mixture(**OPTIONS).fit(X)
    else:
        assert len(blocks.blocks) > 1
        wanted = matmix.Mixture(**OPTIONS).fit(matmix.Parts([samples for _, samples in blocks.read()]))
        assert blocks.dtype == {"u1": "u1", "<i2": "f4", ">f4": "f4", "f8": "f8"}[dtype]
    model = matmix.Mixture(**OPTIONS).fit(lazy)
    assert_same_bits(model, wanted)
    np.testing.assert_array_equal(model.predict(lazy), wanted.predict(X))
    cores = model.transform(lazy)
    assert cores.dtype == (np.float32 if dtype in ("<i2", ">f4") else np.float64)
    np.testing.assert_array_equal(cores, wanted.transform(X))
    np.testing.assert_allclose(model.score(lazy), wanted.score(X), rtol=1e-12)
    np.testing.assert_array_equal(model.reconstruct(lazy), wanted.reconstruct(X))


@pytest.mark.parametrize("dtype", ["i1", "<i2", ">i2", "u2", "f2", ">f4", "?", "i4"])
def test_the_same_bits_however_they_arrive(digits, tmp_path, dtype):
    """As one block: an array, a part, lazily read, from Dask, from a file that Python reads or the library reads."""
    da = pytest.importorskip("dask.array")
    X = (digits[0] // 2).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    ways = [
        X,
        matmix.Parts([X]),
        Watched(X, (len(X), 28, 28)),
        da.from_array(X, chunks=-1),
        matmix.Parts(str(tmp_path / "x.npy")),
        matmix.datasets.open(tmp_path / "x.npy").data,
    ]
    models = [matmix.Mixture(**OPTIONS).fit(way) for way in ways]
    answers = [np.asarray(models[0].transform(way)) for way in ways]
    for model, answer in zip(models, answers, strict=True):
        assert_same_bits(model, models[0])
        assert answer.dtype == answers[0].dtype and answer.tobytes() == answers[0].tobytes()


def test_an_xarray_in_memory_is_an_array(digits):
    X = digits[0]
    labelled = xarray.DataArray(X, dims=("n", "y", "x"))
    assert _blocks.as_blocks(labelled) is None
    assert_same_bits(matmix.Mixture(**OPTIONS).fit(labelled), matmix.Mixture(**OPTIONS).fit(X))


def test_a_collection_of_arrays_is_not_one(digits, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for several in (file, xarray.Dataset({"x": ("n", [1])}), zarr.create_group(str(tmp_path / "g.zarr"))):
            with pytest.raises(TypeError, match="holds arrays by name and is none itself"):
                matmix.Mixture().fit(several)


def test_many_files(digits, tmp_path):
    X = digits[0]
    for number, start in enumerate(range(0, len(X), 70)):
        np.save(tmp_path / f"part{number:02}.npy", X[start : start + 70])
    files = matmix.Parts(str(tmp_path / "*.npy"))
    assert files.shape == X.shape and files.dtype == np.uint8
    assert_same_bits(matmix.Mixture(**OPTIONS).fit(files), matmix.Mixture(**OPTIONS).fit(in_parts(X, 70)))


@pytest.mark.parametrize(
    "estimator",
    [
        matmix.LowRank(rank=3),
        matmix.GLRAM(rank=4),
        matmix.TwoDPCA(rank=3),
        matmix.MPCA(rank=3),
        matmix.PPCA(rank=4, max_iter=5, tol=0),
        matmix.PSOPCA(rank=3, max_iter=5, tol=0),
        matmix.MixPPCA(2, rank=4, random_state=0, max_iter=5, tol=0),
        matmix.MixB2DPPCA(2, rank=3, random_state=0, max_iter=5, tol=0),
        matmix.MP2DPCA(2, rank=3, random_state=0, max_iter=5, tol=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_published_name_takes_parts(digits, estimator):
    from sklearn.base import clone

    X = digits[0] / 255
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    weights[100:200] = 0
    whole, parts = clone(estimator).fit(X, sample_weight=weights), clone(estimator).fit(in_parts(X), None, weights)
    np.testing.assert_allclose(parts.history_.reconstruction_error, whole.history_.reconstruction_error, rtol=1e-8)
    assert parts.transform(in_parts(X)).tobytes() == parts.transform(X).tobytes()
    np.testing.assert_allclose(parts.reconstruction_error(in_parts(X)), parts.reconstruction_error(X), rtol=1e-12)
    if hasattr(parts, "bic"):
        for criterion in ("bic", "aic", "icl"):
            ours, theirs = getattr(parts, criterion)(in_parts(X)), getattr(parts, criterion)(X)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_patterns_are_those_of_the_program(digits, tmp_path):
    """`**` for any folders, `[^…]` for none of these, hidden files left out, and a file that is really called so."""
    X = digits[0][:3]
    for name in ("a.npy", "b.npy", ".c.npy", "deep/er/d.npy", "[e].npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / name, X)
    sizes = {"*.npy": 3, "[^a[]*.npy": 1, "**/[a-d].npy": 3, "[e].npy": 1}
    for pattern, files in sizes.items():
        assert len(matmix.Parts(tmp_path / pattern)) == 3 * files, pattern
    assert len(matmix.Parts(f"{tmp_path}/a.npy,{tmp_path}/b.npy")) == 6


def test_what_is_wrong_with_parts_is_said(digits, tmp_path):
    X = digits[0]
    with pytest.raises(ValueError, match=r"part 1 has samples of shape \(28, 27\), but part 0 of \(28, 28\)"):
        matmix.Parts([X, X[:, :, 1:]])
    with pytest.raises(ValueError, match="there are no parts"):
        matmix.Parts([])
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        matmix.Parts(str(tmp_path / "*.npy"))
    (tmp_path / "no.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"no\.npy: not a readable \.npy file"):
        matmix.Parts(str(tmp_path / "*.npy"))
    with pytest.raises(ValueError, match="part 0 has shape"):
        matmix.Parts([X[0, 0]])
    model = matmix.Mixture(**OPTIONS).fit(in_parts(X))
    with pytest.raises(ValueError, match="378 features, but Mixture is expecting 784"):
        model.predict(matmix.Parts([X[:, :14, :27]]))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\), expected"):
        matmix.Mixture(**OPTIONS).fit(in_parts(X), sample_weight=[1, 2, 3])


def test_a_hole_in_a_later_part_is_named_by_its_number(digits):
    X = digits[0] / 255
    X[250, 3, 4] = np.nan
    with pytest.raises(ValueError, match=r"sample 250 holds NaN at position \[3, 4\]"):
        matmix.Mixture(**OPTIONS).fit(in_parts(X))
    with pytest.raises(ValueError, match=r"sample 250 holds NaN at position \[3, 4\]"):
        matmix.Mixture(**OPTIONS).fit(X[:250]).transform(in_parts(X))


def test_a_reader_that_fails_is_heard(digits):
    class Broken(Watched):
        def __getitem__(self, piece):
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        matmix.Mixture(**OPTIONS).fit(Broken(digits[0]))


def test_what_needs_memory_says_so(digits):
    X, y = digits
    model = matmix.Mixture(**OPTIONS).fit(X)
    with pytest.raises(TypeError, match=r"a report needs its samples in memory.*X\[:10000\]"):
        model.report(in_parts(X), "never.html")
    with pytest.raises(TypeError, match="the gallery of NearestCore needs its samples in memory"):
        matmix.NearestCore(model).fit(in_parts(X), y)
    known = matmix.NearestCore(model, prefit=True).fit(X, y)
    np.testing.assert_array_equal(known.predict(in_parts(X)), known.predict(X))


def test_a_paper_fit_needs_one_array(digits):
    with pytest.raises(ValueError, match="paper"):
        matmix.Mixture(**OPTIONS, algorithm="paper").fit(in_parts(digits[0]))


def test_masked_arrays_and_none_are_missing_cells_in_parts():
    rng = np.random.default_rng(3)
    values = rng.integers(0, 200, (40, 5, 4)).astype("u1")
    hidden = rng.random(values.shape) < 0.2
    broken = np.where(hidden, np.nan, values)
    make = lambda: matmix.Mixture(1, rank=1, missing="nan", max_iter=3, tol=0)  # noqa: E731
    wanted = make().fit(broken)
    for part in (
        np.ma.array(values, mask=hidden),
        np.ma.array(values.astype("f4"), mask=hidden),
        np.where(hidden, None, values),
        np.where(hidden, None, values).tolist(),
    ):
        parts = matmix.Parts([part[:15], part[15:]])
        found = make().fit(parts)
        np.testing.assert_allclose(found.means_, wanted.means_, rtol=1e-5)
        np.testing.assert_allclose(found.score_samples(parts), wanted.score_samples(broken), rtol=1e-4)
        with pytest.raises(ValueError, match=r"missing|NaN"):
            matmix.Mixture(1, rank=1).fit(parts)


def test_a_checkpoint_is_gone_on_from(digits, tmp_path):
    X, path = in_parts(digits[0]), tmp_path / "state.mm"
    options = {**OPTIONS, "max_iter": 12}
    whole = matmix.Mixture(**options).fit(X)
    stopped = matmix.Mixture(**options, checkpoint=path, checkpoint_every=2, callback=lambda p: p.iteration == 5)
    assert stopped.fit(X).n_iter_ == 5
    resumed = matmix.Mixture(**options, checkpoint=path, checkpoint_every=2).fit(X)
    assert_same_bits(resumed, whole)
    with pytest.raises(ValueError, match="of other samples or with other options"):
        matmix.Mixture(**{**options, "random_state": 2}, checkpoint=path).fit(X)
