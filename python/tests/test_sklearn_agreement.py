"""Where the models coincide, the numbers do."""

import matmix
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(3, 8)) * np.array([[3.0], [2.0], [1.0]])
    return rng.normal(size=(400, 3)) @ spread + 0.3 * rng.normal(size=(400, 8)) + rng.normal(size=8)


def test_low_rank_of_order_1_is_pca(vectors):
    ours, theirs = matmix.LowRank(3).fit(vectors), PCA(3, svd_solver="full").fit(vectors)
    n = len(vectors)
    signs = np.sign((ours.loadings_[0] * theirs.components_.T).sum(axis=0))
    np.testing.assert_allclose(ours.loadings_[0] * signs, theirs.components_.T, atol=1e-9)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-12)
    np.testing.assert_allclose(ours.explained_variance_[0], theirs.explained_variance_ * (n - 1) / n, rtol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio_[0], theirs.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(vectors) * signs, theirs.transform(vectors), atol=1e-8)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(vectors)),
        theirs.inverse_transform(theirs.transform(vectors)),
        atol=1e-9,
    )


def test_ppca_has_the_likelihood_of_pca(vectors):
    ours = matmix.PPCA(3, tol=1e-14, max_iter=3000).fit(vectors)
    theirs = PCA(3, svd_solver="full").fit(vectors)
    # scikit-learn divides by N − 1 where the maximum of the likelihood divides by N: a little off the maximum.
    assert ours.score(vectors) >= theirs.score(vectors)
    assert ours.score(vectors) == pytest.approx(theirs.score(vectors), abs=1e-4)
    n = len(vectors)
    at_maximum = multivariate_normal(theirs.mean_, theirs.get_covariance() * (n - 1) / n)
    assert ours.score(vectors) == pytest.approx(at_maximum.logpdf(vectors).mean(), rel=1e-8)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance() * (n - 1) / n, atol=1e-4)


def test_a_mixture_of_vectors_is_a_dense_gaussian_mixture(vectors):
    ours = matmix.Mixture(3, rank=2, random_state=0, max_iter=20, tol=0).fit(vectors)
    dense = GaussianMixture(3, covariance_type="full")
    dense.weights_ = ours.weights_
    dense.means_ = ours.means_
    dense.covariances_ = np.stack([ours.get_covariance(k) for k in range(3)])
    dense.precisions_cholesky_ = np.stack([np.linalg.cholesky(np.linalg.inv(c)) for c in dense.covariances_])
    np.testing.assert_allclose(ours.score_samples(vectors), dense.score_samples(vectors), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(vectors), dense.predict_proba(vectors), atol=1e-9)
    assert (ours.predict(vectors) == dense.predict(vectors)).all()


def test_a_mixture_of_matrices_has_kronecker_covariances():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4, 3))
    model = matmix.Mixture(2, rank=(2, 1), random_state=0, max_iter=10, tol=0).fit(X)
    logs = []
    for k in range(2):
        L, R = (u[k] for u in model.loadings_)
        covariance = np.kron(L @ L.T, R @ R.T) + model.noise_variances_[k] * np.eye(12)
        np.testing.assert_allclose(model.get_covariance(k), covariance, atol=1e-12)
        density = multivariate_normal(model.means_[k].ravel(), covariance)
        logs.append(np.log(model.weights_[k]) + density.logpdf(X.reshape(120, 12)))
    np.testing.assert_allclose(model.score_samples(X), logsumexp(logs, axis=0), rtol=1e-9)
    m = model.n_parameters_
    total = model.score_samples(X).sum()
    assert model.bic(X) == pytest.approx(-2 * total + m * np.log(120))
    assert model.aic(X) == pytest.approx(-2 * total + 2 * m)
    assert model.icl(X) >= model.bic(X)
