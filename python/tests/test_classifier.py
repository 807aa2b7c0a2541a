"""Known labels: what a classifier that keeps to them does, beside the textbook and scikit-learn."""

import pickle

import matmix
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytestmark = pytest.mark.filterwarnings("ignore:the fit has not converged")


@pytest.fixture(scope="module")
def blobs():
    """Three classes of two groups each in five dimensions, shuffled."""
    rng = np.random.default_rng(0)
    middles = rng.normal(0, 4, (6, 5))
    group = rng.integers(0, 6, 600)
    return middles[group] + rng.normal(0, 1, (600, 5)), group // 2


def test_one_component_of_full_rank_is_quadratic_discriminant_analysis(blobs):
    # With as many factors as there are dimensions less one a component is any normal distribution: the smallest
    # direction is noise. With all labels known that is maximum likelihood: means and covariances of the classes.
    X, y = blobs
    model = matmix.MixtureClassifier(rank=4, tol=1e-12, max_iter=2000).fit(X, y)
    np.testing.assert_allclose(model.weights_, np.bincount(y) / 600, atol=1e-12)
    joint = []
    for k in range(3):
        mean, covariance = X[y == k].mean(axis=0), np.cov(X[y == k].T, bias=True)
        np.testing.assert_allclose(model.means_[k], mean, atol=1e-6)
        np.testing.assert_allclose(model.model_.covariance(k), covariance, atol=1e-4)
        joint.append(np.log((y == k).mean()) + multivariate_normal(mean, covariance).logpdf(X))
    np.testing.assert_allclose(model.predict_log_proba(X).argmax(axis=1), np.argmax(joint, axis=0))


def test_probabilities_and_likelihood_are_the_textbooks(blobs):
    X, y = blobs
    some = np.where(np.arange(600) % 3, -1, y)
    model = matmix.MixtureClassifier(2, rank=2, unlabeled=-1, random_state=0, tol=0, max_iter=7).fit(X, some)
    joint = np.stack(
        [
            np.log(model.weights_[k]) + multivariate_normal(model.means_[k], model.model_.covariance(k)).logpdf(X)
            for k in range(6)
        ],
        axis=1,
    )
    classes = np.stack([logsumexp(joint[:, 2 * c : 2 * c + 2], axis=1) for c in range(3)], axis=1)
    total = logsumexp(classes, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(classes - total[:, None]), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), classes.argmax(axis=1))
    known = np.where(some < 0, total, classes[np.arange(600), y])
    np.testing.assert_allclose(model.lower_bound_, known.mean(), rtol=1e-9)
    assert np.all(np.diff(model.lower_bounds_) > -1e-9)
    np.testing.assert_array_equal(model.component_classes_, [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize(
    "write",
    [
        lambda y, known: np.where(known, y, -1),
        lambda y, known: np.where(known, y.astype(float), np.nan),
        lambda y, known: np.where(known, np.array(["a", "b", "c"])[y], ""),
        lambda y, known: np.array([("a", "b", "c")[c] if k else None for c, k in zip(y, known, strict=True)], object),
    ],
    ids=["integers", "floats", "strings", "objects"],
)
def test_labels_may_be_left_out_in_every_type(blobs, write):
    X, y = blobs
    known = np.arange(600) % 5 == 0
    labels = write(y, known)
    model = matmix.MixtureClassifier(2, rank=2, unlabeled=-1, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels[known]))
    assert (model.predict(X)[known] == labels[known]).mean() > 0.95
    plain = matmix.MixtureClassifier(2, rank=2, unlabeled=-1, random_state=0).fit(X, np.where(known, y, -1))
    np.testing.assert_array_equal(model.means_, plain.means_)


def test_minus_one_can_be_a_class(blobs):
    X, y = blobs
    signs = np.where(y > 0, 1, -1)
    model = matmix.MixtureClassifier(rank=2).fit(X, signs)
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    with pytest.warns(UserWarning, match="one class, 1; every sample"):
        assert matmix.MixtureClassifier(rank=2, unlabeled=-1).fit(X, signs).classes_.tolist() == [1]
    nines = np.where(np.arange(600) % 2, 9, y)
    assert matmix.MixtureClassifier(rank=2, unlabeled=9).fit(X, nines).classes_.tolist() == [0, 1, 2]


def test_missing_cells_and_outliers_at_the_same_time(blobs):
    X, y = blobs
    rng = np.random.default_rng(1)
    broken = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    broken[::20] += 40
    some = np.where(rng.random(600) < 0.5, -1, y)
    options = {"rank": 1, "unlabeled": -1, "noise": "t", "missing": "nan", "random_state": 0}
    model = matmix.MixtureClassifier(2, **options).fit(broken, some)
    good = np.arange(600) % 20 > 0
    assert (model.predict(broken[good]) == y[good]).mean() > 0.85
    probabilities = model.predict_proba(np.full((2, 5), np.nan))
    np.testing.assert_allclose(probabilities[0], np.bincount(model.component_classes_, model.weights_))
    assert not np.isnan(model.impute(broken)).any()
    with pytest.raises(ValueError, match="missing"):
        matmix.MixtureClassifier().fit(broken, some)


def test_files_pickles_and_notebooks_remember_the_classes(tmp_path, blobs):
    X, y = blobs
    for labels in (y, np.array(["zero", "one", "=two"])[y]):
        model = matmix.MixtureClassifier(2, rank=2, random_state=0, noise="t").fit(X, labels)
        model.save(tmp_path / "classes.safetensors")
        for again in (
            matmix.load(tmp_path / "classes.safetensors"),
            matmix.MixtureClassifier.load(tmp_path / "classes.safetensors"),
            pickle.loads(pickle.dumps(model)),
        ):
            assert type(again) is matmix.MixtureClassifier
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            np.testing.assert_array_equal(again.classes_, model.classes_)
            assert again.components_per_class == 2
        assert "classes" in model._repr_html_()
    plain = matmix.Mixture(2, rank=2, random_state=0).fit(X)
    plain.save(tmp_path / "plain.safetensors")
    with pytest.raises(ValueError, match="without labels"):
        matmix.MixtureClassifier.load(tmp_path / "plain.safetensors")


@pytest.mark.parametrize(
    "names",
    [
        np.array([False, True]),
        np.array([2**64 - 1, 2**63, 5], np.uint64),
        np.array(["1", "2", "3"]),
        np.array(["False", "True", "x"]),
        np.array([1.0, 3.0, -2.0], np.float32),
        np.array(["a", "b", "c"], object),
    ],
    ids=["bool", "uint64", "digits", "words", "float32", "objects"],
)
def test_labels_of_every_type_survive_the_file(tmp_path, blobs, names):
    X, y = blobs
    labels = names[y % len(names)]
    model = matmix.MixtureClassifier(2, rank=2, random_state=0).fit(X, labels)
    model.save(tmp_path / "m.mm")
    again = matmix.load(tmp_path / "m.mm")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.classes_, model.classes_)
    assert again.score(X, labels) == model.score(X, labels)
    again.save(tmp_path / "n.mm")
    assert (tmp_path / "m.mm").read_bytes() == (tmp_path / "n.mm").read_bytes()


def test_blocks_and_dask_have_the_bits_of_parts(blobs):
    X, y = blobs
    some = np.where(np.arange(600) % 3, -1, y)
    options = {"rank": 2, "unlabeled": -1, "random_state": 0, "max_iter": 5, "tol": 0}
    make = lambda: matmix.MixtureClassifier(2, **options)  # noqa: E731
    whole = make().fit(X, some)
    parts = matmix.Parts([X[:250], X[250:]])
    by_parts = make().fit(parts, some)
    np.testing.assert_allclose(by_parts.means_, whole.means_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(by_parts.predict(parts), by_parts.predict(X))
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=((250, 350), 5))
    by_dask = make().fit(lazy, some)
    np.testing.assert_array_equal(by_dask.means_, by_parts.means_)
    np.testing.assert_array_equal(by_dask.predict(lazy).compute(), by_parts.predict(X))


def test_in_pipelines_searches_and_with_weights(blobs):
    X, y = blobs
    model = make_pipeline(StandardScaler(), matmix.MixtureClassifier(2, rank=1, random_state=0))
    assert cross_val_score(model, X, y, cv=3).min() > 0.9
    weights = np.where(y == 0, 2.0, 1.0)
    weighted = matmix.MixtureClassifier(rank=2).fit(X, y, sample_weight=weights)
    n = np.bincount(y)
    np.testing.assert_allclose(weighted.weights_, n * [2, 1, 1] / (n * [2, 1, 1]).sum())
    again = clone(weighted).set_params(warm_start=True)
    assert not hasattr(again, "partial_fit") and not hasattr(again, "fit_predict")


def test_what_cannot_be_meant_is_said(blobs):
    X, _ = blobs
    model = matmix.MixtureClassifier(3, rank=1, unlabeled=-1)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X)
    with pytest.raises(ValueError, match="no label is known"):
        model.fit(X, np.full(600, -1))
    with pytest.raises(ValueError, match="600 samples, but y has 3 labels"):
        model.fit(X, [1, 2, 3])
    few = np.full(600, -1)
    few[:10] = 0
    few[10:12] = 7
    with pytest.raises(ValueError, match=r'class "7" has 2 labelled samples .* for 3 components'):
        model.fit(X, few)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, X[:, 0])
