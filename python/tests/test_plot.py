"""The pictures can be drawn and return their Axes."""

import matplotlib

matplotlib.use("Agg")

import matmix
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matmix import plot


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_pictures(digits, fitted):
    X, y = digits
    assert plot.means(fitted).shape == (3,)
    assert plot.means(matmix.LowRank(2).fit(X)).shape == (1,)
    assert plot.reconstructions(fitted, X, count=4).shape == (3, 4)
    assert plot.reconstructions(fitted, X.reshape(len(X), -1), count=4).shape == (3, 4)
    assert plot.loadings(fitted, component=1).shape == (4, 3)
    assert plot.loadings(fitted, count=(2, 2)).shape == (2, 2)
    assert plot.loadings(matmix.PPCA(5).fit(X)).shape == (1, 5)
    assert plot.loadings(matmix.GLRAM(2).fit(X)).shape == (2, 2)
    assert plot.latent_walk(fitted, steps=5).shape == (4, 5)
    assert plot.latent_walk(fitted, entries=[(0, 1)], component=2).shape == (1, 7)
    assert plot.convergence(fitted).get_ylabel() == "mean log-likelihood"
    assert plot.convergence(matmix.LowRank(2).fit(X)).get_ylabel() == "reconstruction error"
    assert len(plot.embedding(fitted, X, y).get_legend().get_texts()) == 3
    plot.embedding(fitted, X)
    plot.embedding(matmix.LowRank(3).fit(X), X)
    fig, ax = plt.subplots()
    assert plot.embedding(fitted, X, ax=ax) is ax and plot.convergence(fitted, ax=ax) is ax
    assert plot.means(fitted, fig=plt.figure())[0].figure is not fig


def test_colour_images_are_drawn_in_colour():
    X = np.random.default_rng(0).uniform(size=(40, 6, 5, 3))
    model = matmix.Mixture(2, rank=2, random_state=0, max_iter=3, tol=0).fit(X)
    plot.means(model)
    plot.reconstructions(model, X, count=2)


def test_what_is_no_picture_is_refused(fitted):
    vectors = matmix.Mixture().fit(np.random.default_rng(0).normal(size=(30, 6)))
    for draw in (plot.means, plot.latent_walk, plot.loadings):
        with pytest.raises(ValueError, match="shape"):
            draw(vectors)
    with pytest.raises(ValueError, match="component"):
        plot.loadings(fitted, component=3)
    with pytest.raises(matmix.NotFittedError):
        plot.convergence(matmix.Mixture())
