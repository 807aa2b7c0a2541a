"""Choosing components and ranks, and a searched start."""

import os
import signal
import threading
import time
import warnings

import matmix
import numpy as np
import pytest


@pytest.fixture(scope="module")
def three():
    """300 samples of 4×3 around three means."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 4, 3)) + 6 * rng.integers(0, 3, size=300)[:, None, None]


@pytest.mark.parametrize("criterion", ["held-out", "bic"])
def test_planted_components_are_counted(three, criterion):
    chosen = matmix.select(three, range(1, 6), rank=1, criterion=criterion, estimator=matmix.Mixture(random_state=0))
    assert chosen.best_params_ == {"n_components": 3, "rank": (1, 1)}
    assert chosen.cv_results_["n_components"] == [1, 2, 3, 4, 5]
    assert chosen.cv_results_["n_components"][chosen.best_index_] == 3
    assert ("held_out" in chosen.cv_results_) == (criterion == "held-out")
    best = chosen.best_estimator_
    assert isinstance(best, matmix.Mixture) and best.n_components == 3
    assert len(set(best.predict(three))) == 3
    assert "K = 3" in str(chosen)


def test_ranks_are_chosen(three):
    estimator = matmix.Mixture(random_state=0, max_iter=50)
    chosen = matmix.select(three, 3, rank="auto", criterion="bic", estimator=estimator)
    assert chosen.best_estimator_.rank_ == chosen.best_params_["rank"]
    assert estimator.rank is None and not hasattr(estimator, "model_")


def test_weights_count(three):
    weights = np.repeat([0.0, 1.0], 150)
    chosen = matmix.select(three, range(1, 5), rank=1, sample_weight=weights, estimator=matmix.Mixture(random_state=0))
    assert chosen.best_params_["n_components"] == 3


def test_misuse(three):
    for wrong in [
        {"n_components": []},
        {"criterion": "dic"},
        {"rank": "all"},
        {"folds": 0},
        {"n_components": 0},
        {"purpose": "fun"},
        {"purpose": "density", "criterion": "bic"},
        {"explain": 1.5, "rank": None},
        {"explain": 0.9, "rank": 2},
        {"keep": 4},
    ]:
        with pytest.raises(ValueError):
            matmix.select(three, **{"n_components": [1, 2], "rank": 1, **wrong})


@pytest.mark.parametrize(
    ("purpose", "criterion"),
    [("density", "held-out"), ("denoising", "held-out"), ("compression", "error"), ("clustering", "icl")],
)
def test_a_purpose_has_a_criterion(three, purpose, criterion):
    chosen = matmix.select(three, range(1, 5), rank=1, purpose=purpose, estimator=matmix.Mixture(random_state=0))
    assert (chosen.purpose_, chosen.criterion_) == (purpose, criterion)
    assert f"for {purpose}" in str(chosen)
    assert chosen.best_params_["n_components"] == 3 or purpose == "compression"
    column = {"held-out": "held_out"}.get(criterion, criterion)
    worth = np.array(chosen.cv_results_[column]) * (-1 if column == "held_out" else 1)
    assert worth.argmin() == chosen.best_index_ or criterion in ("held-out", "error")


def test_values_kept_are_no_more_than_asked_for(three):
    chosen = matmix.select(three, 3, purpose="compression", keep=3, estimator=matmix.Mixture(random_state=0))
    kept = [np.prod(rank) for rank in chosen.cv_results_["rank"]]
    assert max(kept) == 3 and len(kept) > 1
    X = chosen.best_estimator_.reconstruct(three)
    error = np.sqrt(((three - X) ** 2).sum(axis=(1, 2)).mean())
    assert error == pytest.approx(chosen.cv_results_["error"][chosen.best_index_], rel=0.1)


def test_the_share_that_is_explained_is_that_of_pca():
    # Vectors: the same number of factors as PCA takes for the share.
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 12)) * np.array([9, 7, 5, 4, 3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2])
    for share in (0.5, 0.8, 0.93, 0.99):
        chosen = matmix.select(X, 1, explain=share, criterion="bic", estimator=matmix.Mixture(random_state=0))
        assert chosen.best_params_["rank"] == (PCA(share).fit(X).n_components_,)


def test_what_people_see(three):
    estimator = matmix.Mixture(random_state=0)
    chosen = matmix.select(three, range(1, 5), rank=1, estimator=estimator)
    assert [mode.shape for mode in chosen.scree_] == [(4,), (3,)]
    assert all(mode.sum() == pytest.approx(1.0) for mode in chosen.scree_)
    assert chosen.beyond_["rank"] == (2, 2)
    pandas = pytest.importorskip("pandas")
    frame = chosen.to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.n_components) == [1, 2, 3, 4]
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = chosen.plot()
    assert len(axes) == 3
    curve = axes[0].lines[0]
    np.testing.assert_allclose(np.asarray(curve.get_ydata(), float), chosen.cv_results_["held_out"])
    ring = axes[0].lines[-1]
    assert list(ring.get_xdata()) == [3]
    assert len(matmix.plot.choice(chosen.best_estimator_)) == 3
    with pytest.raises(ValueError, match="nothing was chosen"):
        matmix.plot.choice(matmix.Mixture(3, rank=1, random_state=0).fit(three))


def test_auto_chooses_in_fit(three, tmp_path):
    model = matmix.Mixture("auto", rank=1, random_state=0).fit(three)
    assert len(model.weights_) == 3 and model.n_components == "auto"
    assert model.choice_.best_params_ == {"n_components": 3, "rank": (1, 1)}
    chosen = matmix.select(three, range(1, 11), rank=1, estimator=matmix.Mixture(random_state=0))
    np.testing.assert_array_equal(model.means_, chosen.best_estimator_.means_)
    # What was chosen stays with the file.
    model.save(tmp_path / "model.mm")
    assert matmix.load(tmp_path / "model.mm").choice_.cv_results_ == model.choice_.cv_results_
    ranks = matmix.Mixture(3, rank="auto", random_state=0).fit(three)
    assert ranks.rank_ == ranks.choice_.best_params_["rank"]
    assert matmix.PPCA(rank="auto", random_state=0).fit(three.reshape(300, -1)).choice_ is not None
    assert matmix.Mixture(2, rank=1, random_state=0).fit(three).choice_ is None


def test_auto_goes_on_from_a_model(three):
    model = matmix.Mixture("auto", rank=1, random_state=0, warm_start=True).fit(three)
    before = model.score(three)
    model.fit(three)
    assert len(model.weights_) == 3 and model.choice_ is None and model.score(three) >= before - 1e-9
    model.partial_fit(three)
    assert len(model.weights_) == 3
    with pytest.raises(ValueError, match="batches cannot choose"):
        matmix.Mixture("auto", rank=1).partial_fit(three)
    for wrong in [{"n_components": "all"}, {"rank": "all"}]:
        with pytest.raises(ValueError):
            matmix.Mixture(**wrong).fit(three)
    with pytest.raises(ValueError, match="cannot choose"):
        matmix.Mixture("auto", device="cuda").fit(three)


def test_dead_columns_are_told_of_and_pruned():
    truth = matmix.Mixture(1, rank=(2, 2), random_state=0)
    rng = np.random.default_rng(2)
    rows, columns = rng.normal(size=(9, 2)), rng.normal(size=(8, 2))
    X = rows @ rng.normal(size=(400, 2, 2)) @ columns.T + 0.5 * rng.normal(size=(400, 9, 8))
    truth.fit(X)
    whole = matmix.Mixture(1, rank=4, random_state=0).fit(X)
    dead = [event for event in whole.history_.events if event["event"] == "redundant_columns"]
    assert [(event["mode"], event["rank"], event["needed"]) for event in dead] == [(0, 4, 2), (1, 4, 2)]
    pruned = matmix.Mixture(1, rank=4, prune=True, random_state=0).fit(X)
    assert pruned.rank_ == (2, 2)
    assert pruned.score(X) == pytest.approx(truth.score(X), rel=1e-4)


def test_a_callback_hears_of_the_search(three):
    steps = []
    matmix.Mixture(3, rank=1, search="auto", random_state=0, callback=lambda now: steps.append(now) and None).fit(three)
    assert steps[0].step == "begin" and steps[0].n_components == 1
    first = next(i for i, now in enumerate(steps) if now.step is None)
    assert all(now.step is None and now.n_components == 3 for now in steps[first:])
    assert "step=" in repr(steps[0])


@pytest.mark.parametrize("last", [1, 4, 12])
def test_a_callback_can_stop_a_selection(three, last):
    def stopping(calls):
        return lambda now: calls.append(now) or len(calls) == last

    calls = []
    estimator = matmix.Mixture(random_state=0, callback=stopping(calls))
    chosen = matmix.select(three, range(1, 6), rank="auto", estimator=estimator)
    assert len(calls) == last and "stopped before all candidates were judged" in chosen.advice_
    assert chosen.best_estimator_.history_.stop == "stopped"
    calls = []
    auto = matmix.Mixture("auto", rank=1, random_state=0, callback=stopping(calls)).fit(three)
    assert len(calls) == last and auto.history_.stop == "stopped"


@pytest.mark.parametrize("by", ["select", "auto"])
def test_ctrl_c_ends_a_selection(by):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20000, 12, 12)) + 3 * rng.integers(0, 8, 20000)[:, None, None]).astype("f4")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = time.monotonic()
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.warns(matmix.FitInterruptedWarning, match="Ctrl-C ended the"):
            if by == "select":
                # A minute or more if nobody listened.
                model = matmix.select(X, range(1, 25), rank="auto", estimator=matmix.Mixture(random_state=0))
                model = model.best_estimator_
            else:
                model = matmix.Mixture("auto", rank="auto", random_state=0).fit(X)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert model.history_.stop == "stopped" and time.monotonic() - begun < 60
    assert np.isfinite(model.score(X[:100]))


def test_samples_with_missing_cells_are_chosen_for(three):
    X = np.where(np.random.default_rng(1).random(three.shape) < 0.1, np.nan, three)
    with pytest.raises(ValueError, match="NaN"):
        matmix.select(X, range(1, 5), rank=1)
    estimator = matmix.Mixture(random_state=0, missing="nan")
    assert matmix.select(X, range(1, 6), rank=1, estimator=estimator).best_params_["n_components"] == 3
    auto = matmix.Mixture("auto", rank=1, random_state=0, missing="nan").fit(X)
    assert len(auto.weights_) == 3


def test_a_component_of_one_sample_does_not_fail_a_selection():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 3, 2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in [3, 4, range(1, 6)]:
            chosen = matmix.select(X, k, rank=1, criterion="bic", estimator=matmix.Mixture(random_state=1))
            assert np.isfinite(chosen.best_estimator_.score(X))


def test_a_search_is_told(three):
    found = matmix.Mixture(3, rank=1, random_state=0).fit(three)
    assert found.history_.search["samples"] == 300
    assert found.history_.search["steps"][0]["move"] == "begin"
    assert found.history_.passes > found.history_.search["passes"]
    plain = matmix.Mixture(3, rank=1, search="none", random_state=0).fit(three)
    assert plain.history_.search is None
    assert found.score(three) >= plain.score(three) - 1e-3
    with pytest.raises(ValueError, match="search"):
        matmix.Mixture(3, search="yes").fit(three)


def test_what_is_no_number_of_components_is_refused():
    X = np.random.default_rng(0).normal(size=(20, 4, 3))
    for given in ("auto", 1.5, [1, 2.5]):
        with pytest.raises(TypeError, match="n_components must be an instance of int"):
            matmix.select(X, given)
    with pytest.raises(ValueError, match="n_components == 0"):
        matmix.select(X, range(3))
    with pytest.raises(ValueError, match="option `folds` is 3 for 2 samples"):
        matmix.select(X[:2], [1, 2])
