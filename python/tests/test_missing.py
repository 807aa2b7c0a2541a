"""Missing cells: fits, answers and imputations from what was observed."""

import struct
import zlib

import matmix
import numpy as np
import pytest

RNG = np.random.default_rng(0)
LEFT, RIGHT = RNG.normal(size=(6, 2)), RNG.normal(size=(5, 2))
WHOLE = np.einsum("ia,nab,jb->nij", LEFT, RNG.normal(size=(300, 2, 2)), RIGHT) + 0.3 * RNG.normal(size=(300, 6, 5))
HIDDEN = RNG.random(WHOLE.shape) < 0.2
X = np.where(HIDDEN, np.nan, WHOLE)


def fitted(**options):
    return matmix.Mixture(2, rank=2, missing="nan", random_state=0, **options).fit(X)


def test_nan_is_an_error_unless_it_is_asked_for():
    with pytest.raises(ValueError, match="or `missing` be `nan` for cells that were not observed"):
        matmix.Mixture(2, rank=2).fit(X)
    model = matmix.Mixture(2, rank=2, random_state=0).fit(WHOLE)
    with pytest.raises(ValueError, match="every value must be finite"):
        model.score(X)
    assert not model.__sklearn_tags__().input_tags.allow_nan
    assert fitted().__sklearn_tags__().input_tags.allow_nan


def test_answers_are_finite_and_the_score_is_that_of_the_fit():
    model = fitted()
    assert model.score(X) == pytest.approx(model.lower_bound_, abs=1e-10)
    for answer in (model.predict_proba(X), model.transform(X), model.reconstruct(X), model.denoise(X)):
        assert np.isfinite(answer).all()
    assert model.predict(X).shape == (300,)
    assert np.isfinite([model.bic(X), model.aic(X), model.icl(X), model.reconstruction_error(X)]).all()
    nothing = np.full((1, 6, 5), np.nan)
    assert model.score_samples(nothing)[0] == 0.0
    np.testing.assert_allclose(model.predict_proba(nothing)[0], model.weights_, atol=1e-12)


def test_complete_samples_have_the_same_bits():
    told = matmix.Mixture(2, rank=2, missing="nan", random_state=3).fit(WHOLE)
    plain = matmix.Mixture(2, rank=2, random_state=3).fit(WHOLE)
    np.testing.assert_array_equal(told.means_, plain.means_)


def test_masked_arrays_and_nothing_at_all_are_missing_cells():
    model = fitted()
    masked = np.ma.array(WHOLE, mask=HIDDEN)
    np.testing.assert_array_equal(fitted().means_, model.means_)
    again = matmix.Mixture(2, rank=2, missing="nan", random_state=0).fit(masked)
    np.testing.assert_array_equal(again.means_, model.means_)
    objects = X.reshape(300, -1).astype(object)
    objects[HIDDEN.reshape(300, -1)] = None
    flat = matmix.Mixture(2, rank=2, sample_shape=(6, 5), missing="nan", random_state=0).fit(objects)
    np.testing.assert_array_equal(flat.means_, model.means_)
    counts = np.ma.masked_equal(RNG.integers(0, 200, (50, 4, 3)).astype(np.uint8), 7)
    assert matmix.Mixture(rank=1, missing="nan").fit(counts).score(counts) < 0


def test_parts_give_the_sums_of_the_whole():
    parts = matmix.Parts([X[:120], X[120:]])
    model = matmix.Mixture(2, rank=2, missing="nan", random_state=0).fit(parts)
    np.testing.assert_allclose(model.score_samples(parts), model.score_samples(X), rtol=1e-12)
    assert model.lower_bound_ == pytest.approx(fitted().lower_bound_, abs=1e-3)


def test_batches_and_files(tmp_path):
    model = matmix.Mixture(2, rank=2, missing="nan", random_state=0)
    model.partial_fit(X[:150]).partial_fit(X[150:])
    assert np.isfinite(model.score(X))
    model.save(tmp_path / "model.mm")
    loaded = matmix.load(tmp_path / "model.mm")
    assert loaded.missing == "nan"
    assert loaded.score(X) == model.score(X)


@pytest.mark.parametrize("noise", ["gaussian", "t"])
def test_imputed_cells_are_near_what_was_hidden(noise):
    model = fitted(noise=noise)
    filled, std = model.impute(X, return_std=True)
    np.testing.assert_array_equal(filled[~HIDDEN], X[~HIDDEN])
    assert (std[HIDDEN] > 0).all() and (std[~HIDDEN] == 0).all()
    error = filled[HIDDEN] - WHOLE[HIDDEN]
    assert np.sqrt(np.mean(error**2)) < 0.7 * np.std(WHOLE[HIDDEN])
    assert 0.88 < np.mean(np.abs(error) < 1.96 * std[HIDDEN]) < 0.99
    draws = model.impute(X[:20], draws=200, random_state=1)
    assert draws.shape == (200, 20, 6, 5)
    observed = np.broadcast_to(~HIDDEN[:20], draws.shape)
    np.testing.assert_array_equal(draws[observed], np.broadcast_to(X[:20], draws.shape)[observed])
    away = np.abs(draws.mean(axis=0) - filled[:20])[HIDDEN[:20]]
    assert (away < 6 * std[:20][HIDDEN[:20]] / np.sqrt(200)).all()
    np.testing.assert_array_equal(model.impute(np.ma.array(WHOLE, mask=HIDDEN)), filled)
    with pytest.raises(ValueError, match="leave out return_std"):
        model.impute(X, return_std=True, draws=2)
    for count in (10**13, 2**62):
        with pytest.raises(MemoryError, match="samples of 6×5 take"):
            model.impute(X[:20], draws=count)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(ValueError, match="the paper's algorithm"):
        matmix.Mixture(2, rank=2, missing="nan", algorithm="paper").fit(X)
    with pytest.raises(ValueError, match="missing cells are for a Mixture"):
        matmix.LowRank(rank=2).fit(np.ma.array(WHOLE, mask=HIDDEN))
    with pytest.raises(ValueError, match="missing"):
        matmix.Mixture(missing="zero").fit(X)


def test_the_report_shows_what_was_missing(tmp_path):
    model = fitted()
    model.report(X, tmp_path / "page.html", held_out=X[:50], data="holes")
    page = (tmp_path / "page.html").read_text()
    assert 'id="missing"' in page and f"{100 * HIDDEN.mean():.1f} % of the cells" in page
    plain = matmix.Mixture(2, rank=2, random_state=0).fit(WHOLE)
    with pytest.raises(ValueError, match="`missing` be `nan`"):
        plain.report(X, tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def png(path, pixels):
    """A picture of grey and alpha, shape (rows, columns, 2), by hand."""
    rows, columns, _ = pixels.shape

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    lines = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 4, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


def test_transparent_places_and_masks_are_read_as_nan(tmp_path):
    shade, alpha = RNG.integers(0, 256, (12, 6, 5)), RNG.integers(0, 3, (12, 6, 5)) * 127
    (tmp_path / "images").mkdir()
    for n in range(12):
        png(tmp_path / "images" / f"{n:02}.png", np.stack([shade[n], alpha[n]], axis=-1))
    X = matmix.datasets.open(tmp_path / "images", missing="alpha").data
    np.testing.assert_array_equal(np.isnan(X), alpha == 0)
    np.testing.assert_array_equal(X[alpha > 0], shade[alpha > 0])
    half = matmix.datasets.open(tmp_path / "images", missing="alpha:0.5").data
    np.testing.assert_array_equal(np.isnan(half), alpha < 128)
    observed = RNG.random((12, 6, 5)) < 0.8
    np.save(tmp_path / "observed.npy", observed)
    masked = matmix.datasets.open(tmp_path / "images", mask=tmp_path / "observed.npy", take=(2, 9), scale=1 / 255).data
    np.testing.assert_array_equal(np.isnan(masked), ~observed[2:9])
    np.testing.assert_allclose(masked[observed[2:9]], shade[2:9][observed[2:9]] / 255, rtol=1e-6)
    np.save(tmp_path / "x.npy", shade.astype(np.int16))
    filled = matmix.datasets.open(tmp_path / "x.npy", missing=7).data
    np.testing.assert_array_equal(np.isnan(filled), shade == 7)
    assert np.isfinite(matmix.Mixture(rank=1, missing="nan").fit(X).score(X))
    np.save(tmp_path / "few.npy", observed[:3])
    with pytest.raises(ValueError, match="3 masks of 6×5, but the data 12 samples of 6×5"):
        matmix.datasets.open(tmp_path / "images", mask=tmp_path / "few.npy")
    with pytest.raises(ValueError, match="missing"):
        matmix.datasets.open(tmp_path / "images", missing="transparent")
    with pytest.raises(ValueError, match="images"):
        matmix.datasets.open(tmp_path / "x.npy", missing="alpha")


def test_large_regions_are_filled_in_with_less_trust():
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    whole = np.einsum("ia,nab,jb->nij", left, rng.normal(size=(80, 2, 2)), right) + 0.3 * rng.normal(size=(80, 12, 12))
    model = matmix.Mixture(rank=2, random_state=0).fit(whole)
    broken = whole[:3].copy()
    broken[0, 2:10, 2:10] = np.nan
    broken[1, ::3, ::2] = np.nan
    with pytest.warns(UserWarning, match="1 of the samples lack a large region"):
        auto = model.impute(broken)
    exact, less = model.impute(broken, temper="none"), model.impute(broken, temper=0.1)
    np.testing.assert_array_equal(auto[1:], exact[1:])
    np.testing.assert_array_equal(auto[0], less[0])
    assert not np.array_equal(auto[0], exact[0])
    draws = model.impute(broken, draws=300, temper=0.1, random_state=0)
    np.testing.assert_allclose(draws[:, 0].mean(axis=0), less[0], atol=0.6)
    for wrong in (0, 1.5, "some", float("nan")):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            model.impute(broken, temper=wrong)
    with pytest.raises(TypeError, match="temper"):
        model.impute(broken, temper=[0.2])


def test_recognition_and_outliers_know_missing_cells():
    y = np.arange(300) % 2
    shifted = X + 4.0 * y[:, None, None]
    model = matmix.Mixture(2, rank=2, missing="nan", random_state=0)
    single = matmix.Mixture(1, rank=2, missing="nan", random_state=0)
    nearest = matmix.NearestCore(single).fit(shifted[:200], y[:200])
    assert nearest.score(shifted[200:], y[200:]) > 0.9
    assert nearest.kneighbors(shifted[200:210], 2)[1].shape == (10, 2)
    assert nearest.__sklearn_tags__().input_tags.allow_nan
    assert not matmix.NearestCore().__sklearn_tags__().input_tags.allow_nan
    # A sample is no outlier because much of it was observed, nor because nothing was.
    detector = matmix.OutlierDetector(model, contamination=0.05).fit(X)
    assert detector.__sklearn_tags__().input_tags.allow_nan
    strange = np.stack([WHOLE[0], np.full((6, 5), np.nan), np.where(HIDDEN[1], np.nan, 40.0)])
    assert detector.predict(strange).tolist() == [1, 1, -1]
    # Complete samples keep their likelihood, and samples of another unit their order.
    scores = detector.score_samples(X[:60])
    complete = ~HIDDEN[:60].any(axis=(1, 2))
    np.testing.assert_array_equal(scores[complete], detector.estimator_.score_samples(X[:60])[complete])
    steps = matmix.Mixture(2, rank=2, missing="nan", max_iter=10, tol=0, random_state=0)
    rankings = []
    for unit in (2.0**-20, 1.0, 2.0**20):
        other = matmix.OutlierDetector(steps, contamination=0.05).fit(unit * X)
        rankings.append(np.argsort(other.score_samples(unit * X[:60])).tolist())
    assert rankings[0] == rankings[1] == rankings[2]
    with pytest.raises(ValueError, match="every value must be finite"):
        matmix.NearestCore(matmix.Mixture(2, rank=2)).fit(shifted, y)


@pytest.mark.parametrize(("samples", "cells"), [(4, 12), (6, 30), (10, 40), (1, 20)])
def test_cells_that_no_one_observes_twice_leave_imputation_uncertain(samples, cells):
    whole = np.random.default_rng(0).normal(size=(samples, cells))
    seen = np.arange(cells) % samples == np.arange(samples)[:, None]
    model = matmix.Mixture(1, rank=2, missing="nan", random_state=0).fit(np.where(seen, whole, np.nan))
    assert "seldom_observed" in [event["event"] for event in model.history_.events]
    with pytest.warns(UserWarning, match="observed 1.0 times on average.*no basis"):
        filled, std = model.impute(np.where(seen, whole, np.nan), return_std=True)
    if samples > 1:
        assert np.mean(np.abs(filled - whole)[~seen] < 1.96 * std[~seen]) > 0.6
