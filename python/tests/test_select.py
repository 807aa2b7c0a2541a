"""Choosing components and ranks, and a searched start."""

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
    for wrong in [{"n_components": []}, {"criterion": "dic"}, {"rank": "all"}, {"folds": 0}, {"n_components": 0}]:
        with pytest.raises(ValueError):
            matmix.select(three, **{"n_components": [1, 2], "rank": 1, **wrong})


def test_a_search_is_told(three):
    found = matmix.Mixture(3, rank=1, search="auto", random_state=0).fit(three)
    assert found.history_.search["samples"] == 300
    assert found.history_.search["steps"][0]["move"] == "begin"
    assert found.history_.passes > found.history_.search["passes"]
    plain = matmix.Mixture(3, rank=1, random_state=0).fit(three)
    assert plain.history_.search is None
    assert found.score(three) >= plain.score(three) - 1e-3
    with pytest.raises(ValueError, match="search"):
        matmix.Mixture(3, search="yes").fit(three)
