"""Windows of images: as samples, as Fisher vectors, to recognise and to denoise with."""

import os
import pickle
import subprocess

import matmix
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks


@parametrize_with_checks(
    [
        matmix.PatchFisher(2, size=3, grid=2, iterations=3, random_state=0),
        matmix.PatchRecognizer(matmix.PatchFisher(2, size=3, grid=2, iterations=3, random_state=0)),
    ]
)
def test_all_checks(estimator, check):
    check(estimator)


def windows(X, size, stride):
    """Written out by NumPy."""
    return sliding_window_view(X, (size, size), axis=(1, 2))[:, ::stride, ::stride].reshape(-1, size, size)


def test_patches_are_the_windows_of_numpy(digits):
    X = digits[0][:20]
    expected = windows(X.astype(float), 5, 2)
    raw = matmix.Patches(X, size=5, stride=2, contrast=None)
    assert raw.shape == expected.shape and raw.dtype == np.uint8
    np.testing.assert_array_equal(raw[:], expected)
    centred = expected - expected.mean((1, 2), keepdims=True)
    kept = matmix.Patches(X, size=5, stride=2, contrast="kept")
    np.testing.assert_allclose(kept[7:91], centred[7:91], rtol=1e-5, atol=1e-4)
    like = matmix.Patches(X, size=5, stride=2, contrast=0.1)
    variance = (centred**2).mean((1, 2), keepdims=True)
    np.testing.assert_allclose(like[:], centred / np.sqrt(variance + 0.1 * variance.mean()), rtol=1e-5, atol=1e-5)
    drawn = matmix.Patches(X, size=5, contrast=None, n_patches=100, random_state=3)
    assert drawn.shape == (100, 5, 5)
    np.testing.assert_array_equal(drawn[:], matmix.Patches(X, size=5, contrast=None, n_patches=100, random_state=3)[:])


def test_a_model_of_patches_is_that_of_an_array_of_them(digits):
    patches = matmix.Patches(digits[0][:30], size=5, stride=3)
    model = matmix.Mixture(3, rank=3, max_iter=4, tol=0, random_state=0)
    lazily, at_once = clone(model).fit(patches), clone(model).fit(patches[:])
    np.testing.assert_allclose(lazily.score(patches), at_once.score(patches[:]), rtol=1e-6)
    np.testing.assert_array_equal(lazily.predict(patches), lazily.predict(patches[:]))


def test_wrong_patches_are_told(digits):
    X = digits[0][:3]
    for options in ({"size": 0}, {"size": (29, 29)}, {"stride": 0}, {"contrast": "some"}, {"contrast": -1.0}):
        with pytest.raises(ValueError):
            matmix.Patches(X, **options)
    with pytest.raises(ValueError, match="images"):
        matmix.Patches(np.arange(5.0))


def test_fisher_vectors_are_unit_length_in_every_cell_and_features_of_a_pipeline(digits):
    X, y = digits
    fisher = matmix.PatchFisher(4, 3, grid=3, random_state=0)
    F = fisher.fit_transform(X[::2])
    assert F.dtype == np.float32 and F.shape == (150, 9 * 4 * 2 * 9)
    np.testing.assert_allclose(np.linalg.norm(F.reshape(150, 9, -1), axis=2), 1, rtol=1e-5)
    assert len(fisher.get_feature_names_out()) == F.shape[1]
    model = make_pipeline(matmix.PatchFisher(4, 3, grid=3, random_state=0), LinearSVC()).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.97


def test_a_recogniser_finds_itself_again(digits, tmp_path):
    X, y = digits
    model = matmix.PatchRecognizer(matmix.PatchFisher(4, grid=3, random_state=0)).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.97
    distances, places = model.kneighbors(X[::2], n_neighbors=2)
    assert np.all(distances[:, 0] <= distances[:, 1]) and np.mean(places[:, 0] == np.arange(150)) > 0.95
    np.testing.assert_allclose(np.linalg.norm(model.scores(X[:5]), axis=1), 1)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model.fisher_.save(tmp_path / "patches.mm")
    fisher = matmix.PatchFisher.load(tmp_path / "patches.mm")
    assert (fisher.grid, fisher.n_components) == (3, 4)
    np.testing.assert_array_equal(fisher.transform(X), model.fisher_.transform(X))
    mixture = matmix.load(tmp_path / "patches.mm")
    assert mixture.predict(matmix.Patches(X[:5])).shape == (5 * 23 * 23,)
    assert matmix.load(tmp_path / "patches.mm").sample_shape_ == (6, 6)
    kept = matmix.PatchRecognizer(fisher, prefit=True).fit(X[::2], y[::2])
    np.testing.assert_array_equal(kept.scores(X), model.scores(X))


def test_the_program_reads_what_was_saved_and_the_other_way_round(digits, tmp_path):
    program = os.environ.get("MATMIX_BIN")
    if program is None:
        pytest.skip("MATMIX_BIN names no program")
    X = digits[0][:40]
    np.save(tmp_path / "x.npy", X)
    fisher = matmix.PatchFisher(3, grid=2, random_state=0).fit(X)
    fisher.save(tmp_path / "p.mm")

    def run(*words):
        subprocess.run([program, *words], cwd=tmp_path, check=True, capture_output=True)

    run("transform", "p.mm", "x.npy", "--fisher", "--grid", "2", "-o", "f.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), fisher.transform(X))
    fit = ["fit", "x.npy", "--scale", "1/255", "-k", "3", "--max-iter", "5", "--patches"]
    run(*fit, "6", "-o", "own.mm")
    run("transform", "own.mm", "x.npy", "--fisher", "-o", "g.npy")
    np.testing.assert_array_equal(
        matmix.PatchFisher.load(tmp_path / "own.mm").transform(X), np.load(tmp_path / "g.npy")
    )
    run(*fit, "8", "--contrast", "kept", "-o", "clean.mm")
    run("denoise", "x.npy", "-m", "clean.mm", "--sigma", "0.1", "-o", "d.npy")
    found = matmix.PatchDenoiser.load(tmp_path / "clean.mm").denoise(X, sigma=0.1)
    np.testing.assert_array_equal(found, np.load(tmp_path / "d.npy"))


def picture():
    rows, columns = np.mgrid[:72, :80]
    return np.where((rows - 30) ** 2 + (columns - 30) ** 2 < 400, 0.9, 0.2 + 0.3 * ((rows + columns) // 9 % 2))


def test_an_image_is_denoised_by_itself_and_by_a_model_of_clean_ones(tmp_path):
    clean = picture()
    noisy = clean + np.random.default_rng(0).normal(scale=0.1, size=clean.shape)
    # Edges count as noise, too.
    assert 0.095 < matmix.estimate_sigma(noisy[None]) < 0.13
    own = matmix.denoise(noisy)
    assert own.shape == clean.shape and np.mean((own - clean) ** 2) < 0.3 * 0.01
    model = matmix.PatchDenoiser(6, random_state=0).fit(clean[None])
    known = matmix.denoise(noisy, 0.1, model=model)
    assert np.mean((known - clean) ** 2) < 0.3 * 0.01
    # Of another size, with colours, in another type.
    assert matmix.denoise(noisy[:40, :33].astype(np.float32), 0.1, model=model).shape == (40, 33)
    colours = np.repeat(noisy[..., None], 3, axis=2)
    assert matmix.denoise(colours, 0.1, n_components=3).shape == (72, 80, 3)
    model.save(tmp_path / "clean.mm")
    for again in (matmix.PatchDenoiser.load(tmp_path / "clean.mm"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.denoise(noisy[None], 0.1)[0], known)


def test_noise_that_is_none_is_told():
    noisy = np.random.default_rng(0).normal(size=(32, 32))
    # The parameter's own name, and what would be right.
    with pytest.raises(ValueError, match=r"`sigma` is 0.*above 0"):
        matmix.denoise(noisy, 0.0)
    for flat in (lambda: matmix.estimate_sigma(np.zeros((1, 32, 32))), lambda: matmix.denoise(np.zeros((32, 32)))):
        with pytest.raises(ValueError, match=r"`sigma` is 0; it must be given: no noise is found"):
            flat()


def test_values_that_single_precision_does_not_hold_are_refused():
    noisy = 1e-60 * np.random.default_rng(0).normal(size=(32, 32))
    with pytest.raises(ValueError, match=r"`sigma` is .*e-61.*between 1e-30 and 1e30"):
        matmix.denoise(noisy, 1e-61)


def test_an_image_smaller_than_its_patches_is_told_so():
    with pytest.raises(ValueError, match="16 components cannot be fitted to 1 patches of 6×6: the images are 6×6"):
        matmix.denoise(np.random.default_rng(0).normal(size=(6, 6)), 0.1)


def test_a_recogniser_is_kept_with_its_gallery(tmp_path):
    X, y = (part[::7] for part in matmix.datasets.load_digits28(return_X_y=True))
    fisher = matmix.PatchFisher(3, 2, iterations=5, random_state=0)
    model = matmix.PatchRecognizer(fisher).fit(X[:100], y[:100])
    model.save(tmp_path / "known.mm")
    for again in (matmix.PatchRecognizer.load(tmp_path / "known.mm"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.classes_, model.classes_)
        assert again.classes_.dtype == model.classes_.dtype
        assert np.array_equal(again.scores(X[100:140]), model.scores(X[100:140]))
        assert np.array_equal(again.predict(X[100:140]), model.predict(X[100:140]))
    assert matmix.PatchFisher.load(tmp_path / "known.mm").transform(X[:2]).shape[0] == 2
    # Whoever reads a part of the file writes all of it, or says that it cannot.
    part = pickle.loads(pickle.dumps(matmix.PatchFisher.load(tmp_path / "known.mm")))
    part.save(tmp_path / "again.mm")
    again = matmix.PatchRecognizer.load(tmp_path / "again.mm")
    assert np.array_equal(again.scores(X[100:140]), model.scores(X[100:140]))
    assert (again.ridge, again.classes_.dtype) == (model.ridge, model.classes_.dtype)
    mixture = matmix.load(tmp_path / "known.mm")
    with pytest.raises(ValueError, match="from the file of a recogniser"):
        mixture.save(tmp_path / "mixture.mm")
    assert not (tmp_path / "mixture.mm").exists()
    mixture.set_params(max_iter=1, tol=0).fit(matmix.Patches(X[:10])).save(tmp_path / "mixture.mm")
    with pytest.raises(ValueError, match="gallery"):
        fisher.fit(X[:50]).save(tmp_path / "alone.mm")
        matmix.PatchRecognizer.load(tmp_path / "alone.mm")
