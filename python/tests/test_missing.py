"""Missing cells: fits, answers and imputations from what was observed."""

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
