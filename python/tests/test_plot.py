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


def test_convergence_begins_at_the_beginning(fitted):
    values = fitted.history_.log_likelihood
    low, high = plot.convergence(fitted).get_ylim()
    assert low <= min(values) and high >= max(values)
    line = plot.convergence(fitted, start=2).lines[0]
    assert list(line.get_xdata()) == list(range(2, len(values))) and list(line.get_ydata()) == values[2:]


def test_modes_are_curves_over_their_coordinates():
    X = np.random.default_rng(0).normal(size=(60, 4, 5, 6))
    model = matmix.Mixture(1, rank=[1, 2, 3], random_state=0, max_iter=5, tol=0).fit(X)
    axes = plot.loadings(model)
    assert [len(ax.lines) - 1 for ax in axes] == [1, 2, 3]
    time = np.linspace(0, 2.5, 6)
    axes = plot.modes(model, count=2, coordinates=[None, None, time], names=["x", "y", "time (s)"])
    drawn = axes[2].lines[0]
    assert axes[2].get_xlabel() == "time (s)" and np.array_equal(drawn.get_xdata(), time)
    strengths = (model.loadings_[2][0] ** 2).sum(axis=0)
    assert np.allclose((drawn.get_ydata() ** 2).sum(), strengths.max())
    with pytest.raises(ValueError, match="3 modes"):
        plot.modes(model, names=["x"])
    with pytest.raises(ValueError, match="mode 2"):
        plot.modes(model, coordinates=[None, None, [1.0]])


def test_many_classes_still_have_a_legend(fitted, digits):
    X, _ = digits
    few = plot.embedding(fitted, X, np.arange(len(X)) % 24).get_legend()
    assert len(few.get_texts()) == 24
    many = plot.embedding(fitted, X, np.arange(len(X)) % 70)
    assert many.figure.axes[-1].get_ylabel() == "class, in order"


def test_colour_images_are_drawn_in_colour():
    X = np.random.default_rng(0).uniform(size=(40, 6, 5, 3))
    model = matmix.Mixture(2, rank=2, random_state=0, max_iter=3, tol=0).fit(X)
    plot.means(model)
    plot.reconstructions(model, X, count=2)


def test_missing_cells_are_drawn_in_a_colour_of_their_own(digits):
    X = digits[0][:60] / 255
    X[0, :4] = np.nan
    X[1] = np.nan
    model = matmix.Mixture(1, rank=2, missing="nan", random_state=0, max_iter=3, tol=0).fit(X)
    masked = np.ma.masked_invalid(X)
    for samples in (X, X.reshape(len(X), -1), masked):
        axes = plot.reconstructions(model, samples, count=3)
        before, after, rest = (axes[row, 0].images[0].get_array() for row in range(3))
        assert np.array_equal(np.ma.getmaskarray(before), np.isnan(X[0]))
        assert np.array_equal(np.ma.getmaskarray(rest), np.isnan(X[0]))
        assert not np.ma.is_masked(after)
        low, high = axes[0, 0].images[0].get_clim()
        assert (low, high) == (0.0, np.nanmax(X[:3]))
        canvas = axes[0, 0].figure.canvas
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3].reshape(-1, 3)
        pink = (np.abs(pixels - [236, 96, 176]) <= 2).all(axis=1)
        assert 0.05 < pink.mean() < 0.5
    assert plot.means(model).shape == (1,) and plot.latent_walk(model).shape[1] == 7
    points = plot.embedding(model, X).collections[0].get_offsets()
    assert np.isfinite(points).all()
    cubes = np.random.default_rng(0).uniform(size=(30, 6, 5, 3))
    cubes[0, 2, 1, 0] = np.nan
    model = matmix.Mixture(1, rank=1, missing="nan", random_state=0, max_iter=3, tol=0).fit(cubes)
    drawn = plot.reconstructions(model, cubes, count=2)[0, 0].images[0].get_array()
    assert drawn.shape == (6, 5, 4) and np.argwhere(drawn[..., 3] == 0).tolist() == [[2, 1]]


def test_what_is_no_picture_is_refused(fitted):
    vectors = matmix.Mixture().fit(np.random.default_rng(0).normal(size=(30, 6)))
    for draw in (plot.means, plot.latent_walk):
        with pytest.raises(ValueError, match="shape"):
            draw(vectors)
    with pytest.raises(ValueError, match="component"):
        plot.loadings(fitted, component=3)
    with pytest.raises(matmix.NotFittedError):
        plot.convergence(matmix.Mixture())
