"""Fitting batch by batch."""

import pickle

import matmix
import numpy as np
import pytest
from sklearn.base import clone

OPTIONS = {"n_components": 3, "rank": 3, "random_state": 0}


@pytest.fixture(scope="module")
def planted():
    """4,000 samples of a known mixture, in no particular order, and its mean log-likelihood."""
    digits, _ = matmix.datasets.load_digits28(return_X_y=True)
    truth = matmix.Mixture(**OPTIONS, max_iter=5, tol=0).fit(digits[:, ::4, ::4] / 255.0)
    X, _ = truth.sample(4000, random_state=1)
    return X, truth.score(X)


def batches(X, size=200):
    return [X[start : start + size] for start in range(0, len(X), size)]


def test_many_batches_come_close_and_a_fit_polishes(planted):
    X, best = planted
    model = matmix.Mixture(**OPTIONS, warm_start=True)
    for batch in batches(X):
        assert model.partial_fit(batch) is model
    assert model.n_batches_ == 20 and len(model.lower_bounds_) == 20 and not model.converged_
    quick = model.score(X)
    assert quick > best - 0.02 * abs(best)
    model.fit(X)
    assert model.lower_bounds_[0] == pytest.approx(quick, rel=1e-9)
    assert np.all(np.diff(model.lower_bounds_) > -1e-9) and model.n_batches_ == 1


def test_a_batch_is_scored_before_it_is_learnt(planted):
    X, _ = planted
    model = matmix.Mixture(**OPTIONS).partial_fit(X[:500])
    before = model.score(X[500:700])
    model.partial_fit(X[500:700])
    assert model.lower_bound_ == pytest.approx(before, rel=1e-9)


def test_a_pickled_or_saved_estimator_goes_on_with_the_same_bits(planted, tmp_path):
    X, _ = planted
    first, second, third = batches(X, 400)[:3]
    model = matmix.MixB2DPPCA(**OPTIONS).partial_fit(first).partial_fit(second)
    again = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "m.safetensors")
    loaded = matmix.load(tmp_path / "m.safetensors")
    assert again.n_batches_ == loaded.n_batches_ == 2
    for other in (again, loaded):
        other.partial_fit(third)
    model.partial_fit(third)
    for other in (again, loaded):
        assert other.means_.tobytes() == model.means_.tobytes()
        assert other.n_batches_ == 3


def test_goes_on_from_a_fit_and_a_clone_begins_anew(planted):
    X, _ = planted
    model = matmix.Mixture(**OPTIONS, max_iter=3, tol=0).fit(X[:1000])
    means = model.means_
    model.partial_fit(X[1000:1200])
    assert model.n_batches_ == 2 and np.abs(model.means_ - means).max() < 0.5 * np.abs(means).max()
    fresh = clone(model).partial_fit(X[:300])
    assert fresh.n_batches_ == 1


def test_blocks_are_batches(planted):
    X, _ = planted
    one = matmix.Mixture(**OPTIONS).partial_fit(matmix.Parts(batches(X, 1000)))
    each = matmix.Mixture(**OPTIONS)
    for batch in batches(X, 1000):
        each.partial_fit(batch)
    assert one.n_batches_ == 4 and one.means_.tobytes() == each.means_.tobytes()


def test_weights_and_flat_samples(planted):
    X, _ = planted
    flat = X.reshape(len(X), -1)
    model = matmix.Mixture(**OPTIONS, sample_shape=(7, 7)).partial_fit(flat[:400])
    doubled = pickle.loads(pickle.dumps(model)).partial_fit(flat[400:600], sample_weight=np.full(200, 2.0))
    model.partial_fit(flat[400:600])
    np.testing.assert_allclose(doubled.means_, model.means_, rtol=1e-9, atol=1e-12)


def test_what_does_not_fit_is_named(planted):
    X, _ = planted
    model = matmix.Mixture(**OPTIONS).partial_fit(X[:300])
    with pytest.raises(ValueError, match="X has 42 features, but Mixture is expecting 49"):
        model.partial_fit(X[:100, :6])
    with pytest.raises(ValueError, match="3 components, but n_components=4"):
        model.set_params(n_components=4).partial_fit(X[:100])
    with pytest.raises(ValueError, match="4 components cannot be fitted to 3 samples"):
        matmix.Mixture(4).partial_fit(X[:3])
    with pytest.raises(ValueError, match="algorithm"):
        matmix.Mixture(2, algorithm="paper").partial_fit(X[:100])
