"""What a model takes for input, the same in Python and in the shell: values, shapes, the way images are read."""

import json
import os
import pickle
import shutil
import subprocess
from pathlib import Path

import matmix
import numpy as np
import pytest
from matmix import _matmix
from same_bits import assert_same_parameters
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).resolve().parents[2]
with_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo to run the Rust example")
in_the_shell = pytest.mark.skipif("MATMIX_BIN" not in os.environ, reason="MATMIX_BIN does not name the program")
OPTIONS = {"n_components": 2, "rank": 3, "max_iter": 5, "tol": 0, "random_state": 1}
IN_THE_SHELL = ["-k", 2, "-r", 3, "--max-iter", 5, "--tol", 0, "--seed", 1]
BYTES = 1 / 255


def shell(*arguments):
    """What the program says; it must not fail."""
    done = subprocess.run([os.environ["MATMIX_BIN"], *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def scores_in_the_shell(model, data, folder):
    shell("score", model, data, "-o", folder / "scores.npy", "--force")
    return np.load(folder / "scores.npy")


def rust(*arguments):
    """The scores that the example of the library prints: it fits as `OPTIONS` say."""
    command = ["cargo", "run", "--quiet", "--features", "matmix/ndarray", "--example", "model_input", "--"]
    done = subprocess.run([*command, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.array([float(line) for line in done.stdout.split()])


@pytest.fixture(scope="module")
def X(digits):
    return digits[0][:200]


@pytest.fixture
def npy(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


@pytest.fixture
def pictures(tmp_path):
    """A folder of colour images of several sizes."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(5)
    for number in range(40):
        rows, columns = 9 + number % 3, 11 + number % 2
        ramp = np.linspace(0, 200, rows * columns * 3).reshape(rows, columns, 3)
        pixels = (ramp + rng.integers(0, 56, ramp.shape)).astype(np.uint8)
        header = f"P6\n{columns} {rows}\n255\n".encode()
        (folder / f"{number:02}.ppm").write_bytes(header + pixels.tobytes())
    return folder


@pytest.fixture
def scaled(X):
    """Fitted to bytes over 255."""
    return matmix.Mixture(**OPTIONS, scale=BYTES).fit(X)


def test_every_fit_knows_what_it_was_fitted_to(X):
    for model in (
        matmix.Mixture(**OPTIONS),
        matmix.LowRank(rank=3),
        matmix.MP2DPCA(2, rank=2, max_iter=2, tol=0),
        matmix.PPCA(rank=2, max_iter=2, tol=0),
    ):
        for data in (X, matmix.Parts([X[:90], X[90:]])):
            known = model.fit(data).input_
            assert (known.shape, known.scale, known.dtype) == ((28, 28), 1.0, "uint8")
            assert known.range == (X.min(), X.max())
            assert known.resize is None and known.colour is False
    flat = matmix.Mixture(**OPTIONS, sample_shape=(28, 28)).fit(X.reshape(200, 784) / 255)
    assert (flat.input_.shape, flat.input_.dtype, flat.input_.range) == ((28, 28), "float64", (0.0, 1.0))
    assert "shape=(28, 28), dtype=float64" in repr(flat.input_)


def test_a_factor_is_the_same_as_multiplied_values(X, scaled):
    plain = matmix.Mixture(**OPTIONS, precision="double").fit(X * BYTES)
    double = clone(scaled).set_params(precision="double").fit(X)
    np.testing.assert_allclose(double.means_, plain.means_, rtol=1e-9, atol=1e-12)
    # Every question, in the values of the model.
    for ask in ("score_samples", "predict_proba", "transform", "reconstruct", "denoise"):
        wanted = getattr(plain, ask)(X * BYTES)
        np.testing.assert_allclose(getattr(double, ask)(X), wanted, rtol=1e-5, atol=5e-4, err_msg=ask)
    np.testing.assert_allclose(double.cores(X)[0], plain.cores(X * BYTES)[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(double.posterior(X)[0], plain.posterior(X * BYTES)[0], rtol=1e-4, atol=1e-4)
    for ask in ("score", "bic", "aic", "icl", "reconstruction_error"):
        assert getattr(double, ask)(X) == pytest.approx(getattr(plain, ask)(X * BYTES), rel=1e-6), ask


def test_batches_parts_and_lazy_arrays_are_multiplied_too(X, scaled, npy):
    mapped = np.load(npy, mmap_mode="r").astype(">i2")  # not an array of the library: read in blocks
    for data in (matmix.Parts([X[:70], X[70:]]), matmix.Parts(str(npy)), matmix.Parts([mapped])):
        np.testing.assert_allclose(scaled.score_samples(data), scaled.score_samples(X), rtol=1e-6)
        assert scaled.bic(data) == pytest.approx(scaled.bic(X), rel=1e-6)
    before = scaled.score(X)
    batch = clone(scaled).partial_fit(X)
    batch.set_params(scale=None).partial_fit(X)
    assert batch.n_batches_ == 2 and batch.input_.scale == BYTES
    assert abs(batch.score(X) - before) < 0.05 * abs(before)


def test_dask_arrays_are_multiplied_too(X, scaled):
    dask = pytest.importorskip("dask.array")
    lazy = dask.from_array(X, chunks=(80, 28, 28))
    np.testing.assert_array_equal(scaled.predict(lazy).compute(), scaled.predict(X))
    np.testing.assert_allclose(scaled.score_samples(lazy).compute(), scaled.score_samples(X), rtol=1e-6)
    # Numbers of another type that are what bytes are, with a block in which all of them are small.
    dark = np.concatenate([X, np.zeros_like(X[:20])]).astype(np.float32)
    chunks = ((100, 100, 20), 28, 28)
    answers = scaled.score_samples(dask.from_array(dark, chunks=chunks)).compute()
    np.testing.assert_allclose(answers[:200], scaled.score_samples(X), rtol=1e-5)
    there = matmix.Mixture(**OPTIONS, scale=BYTES).fit(lazy)
    assert there.input_ == scaled.input_
    known = matmix.NearestCore(matmix.LowRank(rank=3, scale=BYTES)).fit(X, np.arange(200) % 3)
    np.testing.assert_array_equal(known.predict(dask.from_array(dark, chunks=chunks)).compute()[:200], known.predict(X))


def test_values_that_cannot_be_meant_are_named(X, scaled, tmp_path):
    of_fractions = matmix.Mixture(**OPTIONS).fit(X * BYTES)
    for model, wrong in ((of_fractions, X), (scaled, X * BYTES), (scaled, (X * BYTES).astype(np.float32))):
        for ask in ("score", "predict", "transform", "reconstruct", "partial_fit", "bic"):
            with pytest.raises(ValueError, match=r"the values go from 0 to .*set_params\(scale=1/255\)"):
                getattr(model, ask)(wrong)
        with pytest.raises(ValueError, match="the values go from"):
            model.score(matmix.Parts([wrong]))
    with pytest.raises(ValueError, match="the values go from"):
        matmix.NearestCore(of_fractions, prefit=True).fit(X, np.arange(200))
    # Whoever says the factor is believed, for as long as the estimator lives.
    scaled.save(tmp_path / "m.safetensors")
    own = matmix.load(tmp_path / "m.safetensors", scale=1)
    assert own.score(X * BYTES) == pytest.approx(scaled.score(X), rel=1e-6)
    assert matmix.Mixture.load(tmp_path / "m.safetensors", scale=1.0).score(X * BYTES) == own.score(X * BYTES)
    assert of_fractions.set_params(scale=BYTES).score(X) == pytest.approx(own.score(X * BYTES), rel=1e-3)
    own.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()


def test_a_failed_fit_leaves_what_is_known(X, scaled):
    known, score = scaled.input_, scaled.score(X)
    with pytest.raises(ValueError, match="rank"):
        scaled.set_params(rank=50, scale=1.0).fit(X)
    scaled.set_params(scale=BYTES)
    assert scaled.input_ == known and scaled.score(X) == score


def test_it_is_kept_pickled_and_forgotten_like_a_fit(X, scaled, tmp_path):
    again = pickle.loads(pickle.dumps(scaled))
    assert again.input_ == scaled.input_ and again.score(X) == scaled.score(X)
    assert not hasattr(clone(scaled), "input_") and clone(scaled).scale == BYTES
    with pytest.raises(ValueError, match="cannot be read"):
        _matmix.Input.from_json("{}")
    with pytest.raises(AttributeError):
        scaled.input_.scale = 1.0
    known = matmix.NearestCore(matmix.Mixture(**OPTIONS, scale=BYTES)).fit(X, np.arange(200) % 7)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(known)).kneighbors(X, 2)[0], known.kneighbors(X, 2)[0])


def test_a_report_and_pictures_show_the_values_of_the_model(X, scaled, tmp_path):
    scaled.report(X, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = matmix.plot.reconstructions(scaled, X, count=2)
    assert axes[0, 0].get_images()[0].get_clim()[1] <= 1.0
    pyplot.close("all")


@in_the_shell
@pytest.mark.parametrize("preset", ["mixb2dppca", "mp2dpca", "mixppca"])
def test_from_the_shell_to_python_and_back(X, npy, tmp_path, preset):
    there = tmp_path / "shell.mm"
    shell("fit", npy, "-o", there, "--scale", "1/255", "--model", preset, *IN_THE_SHELL)
    model = matmix.load(there)
    assert model.input_.scale == BYTES and model.input_.shape == (28, 28) and model.scale == BYTES
    wanted = scores_in_the_shell(there, npy, tmp_path)
    # What is said about the rows of a matrix is added up here, in another order than there.
    close = 1e-12 if preset == "mp2dpca" else 0
    np.testing.assert_allclose(model.score_samples(X), wanted, rtol=close)
    np.testing.assert_allclose(model.score_samples(X.reshape(200, 784)), wanted, rtol=close)
    # The same fit in Python gives the same model, and knows the same about it.
    ours = matmix.load(there).fit(X) if preset != "mixb2dppca" else matmix.MixB2DPPCA(**OPTIONS, scale=BYTES).fit(X)
    assert ours.input_ == model.input_
    if preset == "mixb2dppca":
        assert_same_parameters(ours, model)
    back = tmp_path / "python.mm"
    model.save(back)
    np.testing.assert_array_equal(scores_in_the_shell(back, npy, tmp_path), wanted)
    assert matmix.load(back).input_ == model.input_
    if preset == "mp2dpca":
        assert model.sample(2, random_state=0)[0].shape == (2, 28, 28)


@in_the_shell
@pytest.mark.parametrize("family", [matmix.MixB2DPPCA, matmix.MP2DPCA, matmix.MixPPCA, matmix.Mixture])
def test_from_python_to_the_shell(X, npy, tmp_path, family):
    scaled = family(**OPTIONS, scale=BYTES).fit(X)
    scaled.save(tmp_path / "m.mm")
    # What is said about the rows of a matrix is added up here, in another order than there.
    close = 1e-12 if family is matmix.MP2DPCA else 0
    np.testing.assert_allclose(
        scores_in_the_shell(tmp_path / "m.mm", npy, tmp_path), scaled.score_samples(X), rtol=close
    )
    np.save(tmp_path / "fractions.npy", X * BYTES)
    refused = subprocess.run(
        [os.environ["MATMIX_BIN"], "score", tmp_path / "m.mm", tmp_path / "fractions.npy"],
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0 and "the values go from 0 to 1" in refused.stderr
    with pytest.raises(ValueError) as ours:
        scaled.score(X * BYTES)
    # The library's own sentence on both surfaces.
    assert str(ours.value).split(";")[0] in refused.stderr
    said = json.loads(shell("info", tmp_path / "m.mm", "--json").stdout)
    assert said["input"]["scale"] == BYTES and said["input"]["shape"] == [28, 28]


@in_the_shell
@pytest.mark.parametrize("colour", [False, True])
def test_a_folder_of_images_is_read_the_same_way(pictures, tmp_path, colour):
    there = tmp_path / "m.mm"
    reading = ["--resize", "8x6", "--scale", "1/255", *(["--colour"] if colour else [])]
    shell("fit", pictures, "-o", there, *reading, *IN_THE_SHELL)
    model = matmix.load(there)
    assert (model.input_.resize, model.input_.colour) == ((8, 6), colour)
    images = matmix.datasets.open(pictures, like=model)
    assert images.data.shape == ((40, 8, 6, 3) if colour else (40, 8, 6))
    np.testing.assert_array_equal(model.score_samples(images.data), scores_in_the_shell(there, pictures, tmp_path))
    # What was images then may be an array now; and what was known is written back.
    np.save(tmp_path / "images.npy", images.data)
    np.testing.assert_array_equal(matmix.datasets.open(tmp_path / "images.npy", like=model).data, images.data)
    model.save(tmp_path / "again.mm")
    again = matmix.load(tmp_path / "again.mm")
    assert again.input_ == model.input_
    np.testing.assert_array_equal(
        scores_in_the_shell(tmp_path / "again.mm", pictures, tmp_path), model.score_samples(images.data)
    )
    smaller = matmix.datasets.open(pictures, like=model.input_, resize=(5, 4))
    assert smaller.data.shape[1:3] == (5, 4)


@in_the_shell
@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("family", [matmix.MixB2DPPCA, matmix.MP2DPCA])
def test_a_folder_that_python_fitted_is_read_the_same_way_in_the_shell(pictures, tmp_path, colour, family):
    images = matmix.datasets.open(pictures, resize=(8, 6), colour=colour)
    if colour and family is matmix.MP2DPCA:
        with pytest.raises(ValueError, match="samples of order 2"):
            family(**OPTIONS, scale=BYTES).fit(images)
        return
    model = family(**OPTIONS, scale=BYTES).fit(images)
    assert (model.input_.resize, model.input_.colour) == ((8, 6), colour)
    model.save(tmp_path / "m.mm")
    there = scores_in_the_shell(tmp_path / "m.mm", pictures, tmp_path)
    np.testing.assert_allclose(model.score_samples(images), there, rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(images.data), there, rtol=1e-12)
    # Without a word about how they were read, the sizes do not fit, and that is said.
    model.fit(images.data).save(tmp_path / "array.mm")
    plain = [os.environ["MATMIX_BIN"], "score", tmp_path / "array.mm", pictures]
    refused = subprocess.run(plain, capture_output=True, text=True)
    assert refused.returncode != 0 and "--resize" in refused.stderr
    said = ["--resize", "8x6", *(["--colour"] if colour else [])]
    shell("score", tmp_path / "array.mm", pictures, *said, "-o", tmp_path / "scores.npy", "--force")
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), there, rtol=1e-12)


def test_what_was_opened_is_an_array_wherever_one_is_taken(pictures):
    images = matmix.datasets.open(pictures, resize=(8, 6))
    known = {
        "Mixture": matmix.Mixture(**OPTIONS).fit(images),
        "LowRank": matmix.LowRank(rank=3).fit(images),
        "OutlierDetector": matmix.OutlierDetector(matmix.Mixture(**OPTIONS)).fit(images),
    }
    np.testing.assert_array_equal(np.asarray(images), images.data)
    for name, model in known.items():
        ask = "transform" if name == "LowRank" else "score_samples"
        np.testing.assert_array_equal(getattr(model, ask)(images), getattr(model, ask)(images.data), err_msg=name)
    again = matmix.datasets.open(pictures, like=known["LowRank"])
    assert (again.resize, again.colour, again.missing) == ((8, 6), False, None)


@with_cargo
@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("resize", [None, (8, 6)])
@pytest.mark.parametrize("family", [matmix.MixB2DPPCA, matmix.MP2DPCA, matmix.MixPPCA])
def test_from_rust_to_python_and_back(npy, pictures, tmp_path, family, resize, colour):
    if colour and (resize is None or family is matmix.MP2DPCA):
        pytest.skip("only images have colours, and rows are those of matrices")
    data = npy if resize is None else pictures
    how = {"resize": resize, "colour": colour}
    theirs, ours = tmp_path / "rust.mm", tmp_path / "python.mm"
    wanted = rust("fit", theirs, data, family._preset, json.dumps({"scale": BYTES, **how}))
    np.testing.assert_allclose(rust("score", theirs, data), wanted, rtol=1e-12)
    model = matmix.load(theirs)
    assert type(model) is family
    assert (model.input_.scale, model.input_.resize, model.input_.colour) == (BYTES, resize, colour)
    np.testing.assert_allclose(model.score_samples(matmix.datasets.open(data, like=model)), wanted, rtol=1e-12)
    # The same fit here is the same model, and Rust and Python read from its file what they are told here.
    own = family(**OPTIONS, scale=BYTES).fit(matmix.datasets.open(data, **how))
    assert own.input_ == model.input_
    own.save(ours)
    scores = own.score_samples(matmix.datasets.open(data, **how))
    np.testing.assert_allclose(rust("score", ours, data), scores, rtol=1e-12)
    again = matmix.load(ours)
    np.testing.assert_array_equal(again.score_samples(matmix.datasets.open(data, like=again)), scores)
    model.save(tmp_path / "back.mm")
    np.testing.assert_allclose(rust("score", tmp_path / "back.mm", data), wanted, rtol=1e-12)


@in_the_shell
@pytest.mark.parametrize("told", ["mask", "fill"])
def test_cells_that_were_missing_in_the_shell_are_missing_in_python(X, npy, tmp_path, told):
    mask = np.ones((28, 28), np.uint8)
    mask[8:12, 5:20] = 0
    np.save(tmp_path / "mask.npy", mask)
    how = ["--mask", tmp_path / "mask.npy"] if told == "mask" else ["--missing", "255"]
    there = tmp_path / "m.mm"
    shell("fit", npy, "-o", there, "--scale", "1/255", *how, *IN_THE_SHELL)
    model = matmix.load(there)
    assert (model.input_.missing, model.missing) == ({"mask": None, "fill": "255"}[told], "nan")
    wanted = scores_in_the_shell(there, npy, tmp_path)
    # As if somebody had marked the cells here.
    observed = np.where(mask == 0 if told == "mask" else X == 255, np.nan, X.astype(np.float32))
    np.testing.assert_allclose(model.score_samples(observed), wanted, rtol=1e-12)
    for data in (X, X.reshape(200, 784), X.astype(np.int16), matmix.datasets.open(npy, like=model)):
        np.testing.assert_array_equal(model.score_samples(data), wanted)
    for data in (matmix.Parts([X[:70], X[70:]]), matmix.Parts(str(npy)), matmix.Parts([X.astype(np.int16)])):
        np.testing.assert_allclose(model.score_samples(data), wanted, rtol=1e-12)
    assert model.reconstruct(X).shape == X.shape and model.transform(X.reshape(200, 784)).shape == (200, 18)
    assert model.bic(X) == pytest.approx(model.bic(observed))
    # The way back, and what only looks like a mask of these samples.
    model.save(tmp_path / "again.mm")
    np.testing.assert_array_equal(scores_in_the_shell(tmp_path / "again.mm", npy, tmp_path), wanted)
    assert matmix.load(tmp_path / "again.mm").input_ == model.input_
    said = shell("info", there).stdout
    assert ("60 cells of a mask left out" in said, "told by" in said) == (told == "mask", told == "fill")


@in_the_shell
def test_dask_arrays_lack_the_cells_that_the_fit_did_not_see(X, npy, tmp_path):
    dask = pytest.importorskip("dask.array")
    shell("fit", npy, "-o", tmp_path / "m.mm", "--missing", "255", *IN_THE_SHELL)
    model = matmix.load(tmp_path / "m.mm")
    wanted = model.score_samples(X)
    for numbers in (X, X.astype(np.int16)):
        lazy = dask.from_array(numbers, chunks=(80, 28, 28))
        np.testing.assert_allclose(model.score_samples(lazy).compute(), wanted, rtol=1e-12)


def test_missing_cells_are_remembered_however_samples_are_held(X, npy, tmp_path):
    broken = X.astype(np.float32)
    broken[:, 3, 4:9] = np.nan
    model = matmix.Mixture(**OPTIONS, missing="nan").fit(broken)
    assert model.input_.missing == "nan" and model.input_ == clone(model).fit(matmix.Parts([broken])).input_
    assert matmix.Mixture(**OPTIONS).fit(X).input_.missing is None
    model.save(tmp_path / "m.mm")
    np.save(tmp_path / "broken.npy", broken)
    if "MATMIX_BIN" in os.environ:
        scores = scores_in_the_shell(tmp_path / "m.mm", tmp_path / "broken.npy", tmp_path)
        np.testing.assert_array_equal(scores, model.score_samples(broken))
    # What a file was opened with goes before what the estimator knows.
    mask = np.zeros((28, 28), np.uint8)
    mask[4:20, 6:] = 1
    np.save(tmp_path / "mask.npy", mask)
    masked = matmix.datasets.open(npy, mask=tmp_path / "mask.npy")
    np.testing.assert_array_equal(masked.mask, mask == 1)
    known = clone(model).fit(masked).input_
    np.testing.assert_array_equal(known.mask.reshape(28, 28), mask == 1)
    filled = matmix.datasets.open(npy, missing=255)
    known = clone(model).fit(filled)
    assert known.input_.missing == "255" and pickle.loads(pickle.dumps(known)).input_ == known.input_
    np.testing.assert_array_equal(known.score_samples(X), known.score_samples(filled))


@in_the_shell
@pytest.mark.parametrize("contrast", ["kept", "none", "0.1"])
def test_a_model_of_windows_keeps_what_its_images_were(X, npy, tmp_path, contrast):
    there = tmp_path / "m.mm"
    windows = ["--patches", 6, "--stride", 2, "--contrast", contrast]
    shell("fit", npy, "-o", there, "--scale", "1/255", *windows, *IN_THE_SHELL)
    model = matmix.load(there)
    known = model.input_
    assert (known.shape, known.scale, known.patches) == ((28, 28), BYTES, ([6], [2]))
    assert model.sample_shape_ == (6, 6) and model.scale == (None if contrast == "0.1" else BYTES)
    how = {"kept": "kept", "none": None, "0.1": 0.1}[contrast]
    of_bytes = model.score(matmix.Patches(X, 6, 2, contrast=how))
    own = matmix.load(there, scale=1.0)
    assert of_bytes == pytest.approx(own.score(matmix.Patches(X * BYTES, 6, 2, contrast=how)), rel=1e-4)
    model.save(tmp_path / "again.mm")
    again = matmix.load(tmp_path / "again.mm")
    assert again.input_ == known and again.sample_shape_ == (6, 6)
    assert again.score(matmix.Patches(X, 6, 2, contrast=how)) == of_bytes
    said = json.loads(shell("info", tmp_path / "again.mm", "--json").stdout)
    assert said["input"]["patches"] == json.loads(shell("info", there, "--json").stdout)["input"]["patches"]


def test_what_was_opened_is_remembered_by_those_who_fit_another(pictures, tmp_path):
    images = matmix.datasets.open(pictures, resize=(8, 6), colour=True)
    classes = np.arange(40) % 3
    inner = {
        "NearestCore": matmix.NearestCore(matmix.Mixture(**OPTIONS)).fit(images, classes).estimator_,
        "OutlierDetector": matmix.OutlierDetector(matmix.Mixture(**OPTIONS)).fit(images).estimator_,
    }
    fisher = matmix.PatchFisher(2, 2, size=4, grid=2, iterations=2, random_state=0)
    inner["PatchRecognizer"] = matmix.PatchRecognizer(fisher).fit(images, classes).fisher_
    for name, model in inner.items():
        assert (model.input_.resize, model.input_.colour) == ((8, 6), True), name
        model.save(tmp_path / "m.mm")
        np.testing.assert_array_equal(matmix.datasets.open(pictures, like=model).data, images.data, err_msg=name)


@in_the_shell
def test_pca_of_matrices_takes_the_same_matrices(X, npy, tmp_path):
    shell("fit", npy, "-o", tmp_path / "m.mm", "--model", "pca", "-r", 3, "--scale", "1/255")
    model = matmix.load(tmp_path / "m.mm")
    assert (model.sample_shape_, model.rank_) == ((28, 28), (3,))
    # PCA by its definition.
    centred = X.reshape(200, 784) * BYTES
    centred = centred - centred.mean(axis=0)
    rebuilt = np.linalg.svd(centred, full_matrices=False)[2][:3]
    error = np.sqrt(((centred - centred @ rebuilt.T @ rebuilt) ** 2).sum(axis=1).mean())
    assert model.reconstruction_error(X) == pytest.approx(error, rel=1e-5)
    np.testing.assert_array_equal(model.transform(X), model.transform(X.reshape(200, 784)))
    assert model.reconstruct(X).shape == X.shape
    model.save(tmp_path / "again.mm")
    again = matmix.load(tmp_path / "again.mm")
    assert again.input_ == model.input_
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    told = [json.loads(shell("info", tmp_path / name, "--json").stdout) for name in ("m.mm", "again.mm")]
    assert told[0]["model"] == told[1]["model"] == "pca"


def option_set(path, **python):
    """Change the parameters of Python in a model file, as an attacker might."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    options = json.loads(header["__metadata__"]["matmix.options"])
    options["python"].update(python)
    header["__metadata__"]["matmix.options"] = json.dumps(options)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def test_a_model_file_does_not_choose_what_later_fits_read_and_write(X, tmp_path):
    other, path, planted = tmp_path / "other.mm", tmp_path / "m.mm", tmp_path / "planted.ck"
    model = matmix.Mixture(**OPTIONS, checkpoint=tmp_path / "own.ck").fit(X)
    model.save(other)
    model.save(path)
    option_set(path, checkpoint=str(planted), checkpoint_every=1, callback="print", init_params=str(other))
    again = matmix.load(path)
    params = again.get_params()
    assert params["checkpoint"] is None and params["callback"] is None and params["init_params"] == "kmeans"
    again.fit(X)
    assert not planted.exists()
    np.testing.assert_array_equal(again.means_, model.means_)
    # Nonsense about the estimator is ignored.
    option_set(path, sample_shape_="abc", n_batches_="many")
    assert matmix.load(path).score(X) == model.score(X)


@pytest.fixture
def marked():
    """Bytes of 6×5 with 255 where they were not observed, and the same with NaN."""
    rng = np.random.default_rng(1)
    values = np.clip(60 + 20 * rng.normal(size=(60, 6, 5)), 0, 254).round().astype("u1")
    values[rng.random(values.shape) < 0.15] = 255
    return values, np.where(values == 255, np.nan, values.astype(float))


@pytest.mark.parametrize("how", ["value", "mask"])
def test_a_fit_that_begins_from_a_model_leaves_out_the_same_cells(marked, tmp_path, how):
    values, broken = marked
    if how == "mask":
        mask = np.ones((6, 5), "u1")
        mask[0] = mask[3, 2] = 0
        broken = np.where(mask, values, np.nan)
        np.save(tmp_path / "mask.npy", mask)
    np.save(tmp_path / "x.npy", values)
    known = {"missing": 255} if how == "value" else {"mask": tmp_path / "mask.npy"}
    options = {"n_components": 2, "rank": 2, "max_iter": 3, "tol": 0, "random_state": 0}
    model = matmix.Mixture(**options, missing="nan").fit(matmix.datasets.open(tmp_path / "x.npy", **known))
    model.save(tmp_path / "m.mm")
    load = lambda **more: matmix.load(tmp_path / "m.mm").set_params(**more)  # noqa: E731
    wanted = load(warm_start=True).fit(broken)
    fits = {
        "warm start": load(warm_start=True).fit(values),
        "warm start, parts": load(warm_start=True).fit(matmix.Parts([values[:25], values[25:]])),
        "file": matmix.Mixture(**{**options, "init_params": str(tmp_path / "m.mm")}).fit(values),
        "estimator": matmix.Mixture(**{**options, "init_params": model}).fit(values),
    }
    for name, found in fits.items():
        np.testing.assert_allclose(found.means_, wanted.means_, rtol=1e-5, err_msg=name)
        assert found.input_.missing == model.input_.missing, name
        np.testing.assert_array_equal(found.input_.mask, model.input_.mask, err_msg=name)
        assert found.score(values) == pytest.approx(wanted.score(broken)), name
    np.testing.assert_allclose(load().partial_fit(values).means_, load().partial_fit(broken).means_, rtol=1e-5)
    # A fit from k-means leaves nothing out.
    assert load().fit(values).input_.mask is None and load().fit(values).input_.missing == "nan"


@in_the_shell
@pytest.mark.parametrize("option", [["--missing", 255], ["--mask", "mask.npy"]])
def test_a_fit_in_the_shell_from_a_model_leaves_out_the_same_cells(marked, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    mask = np.ones((6, 5), "u1")
    mask[0] = 0
    np.save("mask.npy", mask)
    np.save("x.npy", marked[0])
    fit = ["fit", "x.npy", "-k", 2, "-r", 2, "--max-iter", 3, "--tol", 0, "--force"]
    shell(*fit, *option, "-o", "m.mm")
    shell(*fit, "--init", "m.mm", "-o", "again.mm")
    shell(*fit, "--init", "m.mm", *option, "-o", "told.mm")
    again, told, first = (matmix.load(name) for name in ("again.mm", "told.mm", "m.mm"))
    np.testing.assert_array_equal(again.means_, told.means_)
    assert again.input_ == told.input_ == first.input_
    # "error": nothing is missing.
    shell(*fit, "--init", "m.mm", "--missing", "error", "-o", "whole.mm")
    whole = matmix.load("whole.mm")
    assert whole.input_.missing is None and whole.input_.mask is None
    shell("score", "m.mm", "x.npy", "-o", "left-out.npy")
    shell("score", "m.mm", "x.npy", "--missing", "error", "-o", "all.npy")
    assert (np.load("left-out.npy") != np.load("all.npy")).all()
    opened = matmix.datasets.open("x.npy", missing="error")
    np.testing.assert_array_equal(first.score_samples(opened), np.load("all.npy"))


def test_samples_in_another_arrangement_are_refused(X):
    model = matmix.Mixture(2, rank=2, sample_shape=(28, 28), max_iter=2, tol=0)
    other = X.reshape(200, 14, 56)
    with pytest.raises(ValueError, match=r"shape \(14, 56\), another arrangement than sample_shape=\(28, 28\)"):
        model.fit(other)
    model.fit(X.reshape(200, 784))
    with pytest.raises(ValueError, match=r"shape \(14, 56\), but Mixture was fitted to samples of shape \(28, 28\)"):
        model.score(other)
    assert model.score(X) == model.score(X.reshape(200, 784)) == model.score(X[..., np.newaxis])
    factors = matmix.PPCA(rank=2, max_iter=2, tol=0).fit(X)
    with pytest.raises(ValueError, match="fitted to samples of shape"):
        factors.score(other)
    # Vectors may come in any arrangement.
    vectors = matmix.PPCA(rank=2, max_iter=2, tol=0).fit(X.reshape(200, 784))
    assert vectors.score(other) == vectors.score(X)


def test_fractions_are_not_taken_for_bytes_as_they_are(X):
    for values in (X, X.astype(float)):
        model = matmix.Mixture(**OPTIONS).fit(values)
        assert model.input_.range == (0, 255)
        with pytest.raises(ValueError, match=r"from 0 to 1; the model was fitted to values from 0 to 255"):
            model.score(X / 255)
        assert model.score(X) == pytest.approx(model.score(X.astype(float)))


def test_flat_samples_are_rebuilt_flat(X, tmp_path):
    flat = X.reshape(200, 784)
    model = matmix.Mixture(**OPTIONS, sample_shape=(28, 28)).fit(flat)
    rebuilt = model.inverse_transform(model.transform(flat))
    assert rebuilt.shape == flat.shape
    model.save(tmp_path / "m.mm")
    again = matmix.load(tmp_path / "m.mm")
    np.testing.assert_array_equal(again.inverse_transform(again.transform(flat)), rebuilt)
    whole = matmix.Mixture(**OPTIONS).fit(X)
    np.testing.assert_array_equal(whole.inverse_transform(whole.transform(X)), rebuilt.reshape(X.shape))
    pipeline = make_pipeline(StandardScaler(), matmix.Mixture(**OPTIONS, sample_shape=(28, 28))).fit(flat)
    assert pipeline.inverse_transform(pipeline.transform(flat)).shape == flat.shape
