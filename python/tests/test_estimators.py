"""Shapes, types, files, copies: what the estimators promise beyond scikit-learn's checks."""

import copy
import inspect
import pickle
import re
import warnings

import joblib
import matmix
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer


def same(a, b):
    """Whether two fitted mixtures have the same bits."""
    return (
        np.array_equal(a.weights_, b.weights_)
        and np.array_equal(a.means_, b.means_)
        and all(map(np.array_equal, a.loadings_, b.loadings_))
        and np.array_equal(a.noise_variances_, b.noise_variances_)
    )


def test_shapes(digits, fitted):
    X, _ = digits
    n, flat = len(X), X.reshape(len(X), -1)
    assert fitted.weights_.shape == (3,) and fitted.means_.shape == (3, 28, 28)
    assert [u.shape for u in fitted.loadings_] == [(3, 28, 4), (3, 28, 3)]
    assert fitted.noise_variances_.shape == (3,) and fitted.n_features_in_ == 784
    assert fitted.converged_ and fitted.n_iter_ == len(fitted.lower_bounds_) - 1
    assert fitted.lower_bound_ == pytest.approx(fitted.score(X), rel=1e-6)
    assert fitted.transform(X).shape == fitted.transform(flat).shape == (n, 36)
    for samples, shape in ((X, (n, 4, 3)), (flat, (n, 12))):
        cores, components = fitted.cores(samples)
        assert cores.shape == shape and components.shape == (n,)
    assert fitted.reconstruct(X).shape == X.shape and fitted.reconstruct(flat).shape == flat.shape
    assert fitted.predict(X).shape == (n,) and fitted.predict_proba(X).shape == (n, 3)
    posterior = fitted.posterior(X)
    assert posterior.mean.shape == (n, 3, 4, 3) and posterior.variance.shape == (3, 4, 3)
    drawn, components = fitted.sample(5, random_state=1)
    assert drawn.shape == (5, 28, 28) and components.shape == (5,)
    assert list(fitted.get_feature_names_out()[:2]) == ["mixture0", "mixture1"]
    assert len(fitted.get_feature_names_out()) == 36
    np.testing.assert_array_equal(fitted.transform(X), fitted.transform(flat))
    np.testing.assert_array_equal(fitted.transform(X).reshape(n, 3, 4, 3), posterior.mean)


def test_flattened_samples_are_the_same_samples(digits, fitted):
    X, _ = digits
    for sides in ((28, 28), (28, -1)):
        flat = matmix.Mixture(3, rank=(4, 3), sample_shape=sides, random_state=0).fit(X.reshape(len(X), -1))
        assert same(flat, fitted)
    assert matmix.Mixture(max_iter=1, tol=0, sample_shape=-1).fit(X).sample_shape_ == (784,)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int16, np.float16, np.int32, ">f4", bool])
def test_every_type_of_number_goes_in(digits, dtype):
    X = (digits[0][:60, ::4, ::4] // 4).astype(dtype)
    model = matmix.Mixture(2, rank=2, random_state=0, max_iter=5, tol=0).fit(X)
    # What single precision holds exactly is worked on in single precision.
    expected = np.float32 if dtype in (np.float32, np.int16, np.float16, ">f4") else np.float64
    for out in (model.transform(X), model.reconstruct(X), model.denoise(X), model.predict_proba(X)):
        assert out.dtype == expected
    assert model.cores(X)[0].dtype == model.inverse_transform(model.transform(X)).dtype == expected
    assert model.rebuild(*model.cores(X)).dtype == expected


def test_a_core_is_that_of_the_most_probable_component(digits, fitted):
    X = digits[0]
    cores, components = fitted.cores(X)
    np.testing.assert_array_equal(components, fitted.predict(X))
    all_cores = fitted.transform(X).reshape(len(X), 3, 4, 3)
    np.testing.assert_allclose(cores, all_cores[np.arange(len(X)), components], rtol=1e-9, atol=1e-12)


def test_the_way_back(digits, fitted):
    X = digits[0].astype(np.float64)
    cores, components = fitted.cores(X)
    np.testing.assert_allclose(fitted.rebuild(cores, components), fitted.reconstruct(X), atol=1e-9)
    flat = fitted.rebuild(cores.reshape(len(X), -1), components)
    np.testing.assert_array_equal(flat, fitted.rebuild(cores, components).reshape(len(X), -1))
    with pytest.raises(ValueError, match="which of the 3 components"):
        fitted.rebuild(cores)
    # Without the component, the one is taken whose core is the least surprising.
    all_cores = fitted.transform(X).reshape(len(X), 3, 12)
    likely = (np.log(fitted.weights_) - (all_cores**2).sum(axis=2) / 2).argmax(axis=1)
    chosen = all_cores[np.arange(len(X)), likely]
    back = fitted.inverse_transform(fitted.transform(X))
    assert back.shape == X.shape
    np.testing.assert_array_equal(back, fitted.rebuild(chosen, likely).reshape(X.shape))
    one = matmix.PSOPCA(3).fit(X)
    np.testing.assert_allclose(one.inverse_transform(one.transform(X)), one.reconstruct(X), atol=1e-9)
    vectors = matmix.PPCA(3).fit(X)
    np.testing.assert_allclose(vectors.inverse_transform(vectors.transform(X)), vectors.reconstruct(X), atol=1e-9)
    low = matmix.GLRAM(3).fit(X)
    np.testing.assert_allclose(low.inverse_transform(low.transform(X)), low.reconstruct(X), atol=1e-9)
    assert low.reconstruction_error(X) == pytest.approx(low.reconstruction_error_, rel=1e-6)


def test_arrays_are_not_copied(digits, tmp_path):
    from matmix._elements import check_array

    X = digits[0]
    assert np.shares_memory(check_array(X), X)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(check_array(mapped), mapped)
    options = {"n_components": 2, "rank": 2, "random_state": 0, "max_iter": 5, "tol": 0}
    assert same(matmix.Mixture(**options).fit(mapped), matmix.Mixture(**options).fit(X))
    # Not contiguous, or not aligned: copied, and the same.
    assert same(matmix.Mixture(**options).fit(np.asfortranarray(X)), matmix.Mixture(**options).fit(X))
    odd = np.zeros(X.size * 8 + 1, np.uint8)[1:].view(np.float64).reshape(X.shape)
    odd[...] = X
    assert same(matmix.Mixture(**options).fit(odd), matmix.Mixture(**options).fit(X.astype(float)))


def test_the_number_of_threads_changes_no_bit(digits):
    options = {"n_components": 3, "rank": 3, "random_state": 5, "max_iter": 5, "tol": 0}
    one = matmix.Mixture(n_threads=1, **options).fit(digits[0])
    assert same(one, matmix.Mixture(n_threads=2, **options).fit(digits[0]))
    assert same(one, matmix.Mixture(**options).fit(digits[0]))


def test_random_states(digits):
    X = digits[0]

    def fit(state):
        return matmix.Mixture(3, rank=2, random_state=state, init_params="random", max_iter=2, tol=0).fit(X)

    assert same(fit(3), fit(np.int64(3))) and not same(fit(3), fit(4))
    assert same(fit(np.random.RandomState(1)), fit(np.random.RandomState(1)))
    assert same(fit(np.random.default_rng(1)), fit(np.random.default_rng(1)))
    assert not same(fit(None), fit(None))
    fit(2**64 - 1)
    for wrong in (-1, 2**64, "seed"):
        with pytest.raises(ValueError, match=r"random_state|seed"):
            fit(wrong)


def test_weights_count_samples(digits):
    X = digits[0][::5] / 255
    weights = np.arange(len(X)) % 3
    options = {"rank": 2, "max_iter": 50, "tol": 0}
    weighted = matmix.Mixture(**options).fit(X, sample_weight=weights)
    repeated = matmix.Mixture(**options).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-9)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-5)


def test_python_has_the_defaults_and_the_names_of_the_library():
    import json

    from matmix import _matmix
    from matmix.published import BY_PRESET

    defaults = json.loads(_matmix.DEFAULTS)
    for estimator in (matmix.Mixture(random_state=0), matmix.PPCA(random_state=0)):
        start = estimator._start()
        assert {**estimator._options(start), "start": start} == defaults["fit"]
    assert matmix.LowRank()._options() == defaults["low_rank"]
    assert matmix.PatchFisher(random_state=0)._options() == defaults["patch_fisher"]
    assert matmix.PatchDenoiser(random_state=0)._options() == defaults["patch_denoiser"]
    selected = {name: one.default for name, one in inspect.signature(matmix.select).parameters.items()}
    tried = selected["n_components"]
    assert (min(tried), max(tried)) == tuple(
        defaults["select"][name] for name in ("least_components", "most_components")
    )
    for name in ("folds", "one_standard_error", "purpose", "keep", "explain"):
        assert selected[name] == defaults["select"][name], name
    opened = {name: one.default for name, one in inspect.signature(matmix.datasets.open).parameters.items()}
    # The shell and known samples alone have a use for these.
    assert set(defaults["open"]) - set(opened) == {"gaps", "memory_budget"}
    assert all(
        opened[name] == value or list(opened[name]) == value
        for name, value in defaults["open"].items()
        if name in opened
    )
    assert set(BY_PRESET) == set(_matmix.PRESETS)
    for name, cls in BY_PRESET.items():
        assert issubclass(cls, matmix.Mixture) == _matmix.PRESETS[name].is_mixture


def test_estimators_have_the_parameters_of_the_mixture():
    every = matmix.Mixture().get_params()
    for cls in (matmix.PPCA, matmix.PSOPCA):
        assert set(every) - set(cls().get_params()) == {"n_components", "n_init", "search"}
    classifier = matmix.MixtureClassifier().get_params()
    assert set(classifier) - set(every) == {"components_per_class", "unlabeled"}
    left_out = {"n_components", "algorithm", "search", "prune", "device", "output"}
    assert set(every) - set(classifier) == left_out
    for cls in (matmix.Mixture, matmix.MixtureClassifier):
        words = set(re.findall(r"\w+", cls.__doc__))
        assert set(cls().get_params()) <= words, cls
    one = matmix.PPCA(3, noise="t")
    assert (one.rank, one.noise, one.tol) == (3, "t", every["tol"])
    assert str(inspect.signature(matmix.PPCA)).startswith("(rank: 'Sides | str' = None, *, noise: 'str' = 'gaussian',")
    with pytest.raises(TypeError, match=r"PPCA\(\) got an unexpected keyword argument 'n_components'"):
        matmix.PPCA(n_components=2)
    with pytest.raises(TypeError, match="too many positional"):
        matmix.MixtureClassifier(1, 2, 3)


def test_the_papers_stopping_rule(digits):
    X = digits[0] / 255
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", matmix.ConvergenceWarning)
        model = matmix.Mixture(2, rank=3, random_state=0, stop="error", tol=1e-3).fit(X)
    changes = np.abs(np.diff(model.history_.reconstruction_error))
    assert changes[-1] <= 1e-3 and (changes[:-1] > 1e-3).all()


def test_precision_and_noise_floor(digits):
    X = digits[0]
    start = matmix.Mixture(2, rank=3, random_state=0, max_iter=1, tol=0).fit(X).model_
    options = {"n_components": 2, "rank": 3, "init_params": start, "max_iter": 4, "tol": 0}
    exact = matmix.Mixture(**options).fit(X.astype(np.float64)).lower_bounds_
    for precision, worst in (("double", 1e-12), ("single", 1e-5)):
        found = matmix.Mixture(**options, precision=precision).fit(X).lower_bounds_
        off = np.abs(np.divide(found, exact) - 1).max()
        assert off <= worst and (precision == "double" or off > 1e-12)
    # Samples that a component can explain without any noise.
    flat = np.outer(np.arange(1.0, 21.0), [1.0, 2.0, 3.0])
    floors = [matmix.Mixture(1, rank=1, noise_floor=f).fit(flat).noise_variances_[0] for f in (1e-6, 1e-2)]
    np.testing.assert_allclose(np.divide(floors, flat.var(axis=0).mean()), [1e-6, 1e-2], rtol=1e-6)


def test_copies(digits, fitted, tmp_path):
    X, y = digits
    joblib.dump(fitted, tmp_path / "model.joblib")
    copies = [
        pickle.loads(pickle.dumps(fitted)),
        copy.deepcopy(fitted),
        joblib.load(tmp_path / "model.joblib"),
    ]
    for again in copies:
        assert same(again, fitted)
        np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    fresh = clone(fitted)
    assert not hasattr(fresh, "model_") and fresh.get_params() == fitted.get_params()
    low = matmix.LowRank(3).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(low)).transform(X), low.transform(X))
    nearest = matmix.NearestCore(low, prefit=True).fit(X, y)
    np.testing.assert_array_equal(copy.deepcopy(nearest).kneighbors(X[:9])[0], nearest.kneighbors(X[:9])[0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(nearest)).predict(X[:9]), nearest.predict(X[:9]))


@pytest.mark.parametrize(
    "estimator",
    [
        matmix.Mixture(2, rank=(3, 2), random_state=0),
        matmix.MixB2DPPCA(2, rank=2, random_state=0),
        matmix.MixPPCA(2, rank=5, random_state=0),
        matmix.PPCA(5),
        matmix.PSOPCA(),
        matmix.MP2DPCA(2, rank=3, random_state=0),
        matmix.LowRank((3, 2), center=False),
        matmix.GLRAM(3),
        matmix.MPCA(3),
        matmix.TwoDPCA(3),
    ],
    ids=lambda e: type(e).__name__,
)
def test_files(digits, tmp_path, estimator):
    X = digits[0][::6, ::2, ::2]
    estimator = clone(estimator).fit(X)
    path = tmp_path / "model.safetensors"
    estimator.save(path)
    again = matmix.load(path)
    assert type(again) is type(estimator) and again.get_params() == estimator.get_params()
    assert again.history_ == estimator.history_ and again.n_iter_ == estimator.n_iter_
    np.testing.assert_array_equal(again.transform(X), estimator.transform(X))
    np.testing.assert_array_equal(again.reconstruct(X), estimator.reconstruct(X))
    flat = X.reshape(len(X), -1)
    np.testing.assert_array_equal(again.transform(flat), estimator.transform(flat))
    assert again.transform(flat).shape[1] == len(again.get_feature_names_out())
    family = matmix.Mixture if hasattr(estimator, "weights_") else matmix.LowRank
    other = matmix.LowRank if family is matmix.Mixture else matmix.Mixture
    assert type(type(estimator).load(path)) is type(estimator)
    with pytest.raises(ValueError, match="cannot be read as"):
        other.load(path)


def test_published_shapes(digits):
    X = digits[0][::6]
    n = len(X)
    rows = matmix.MP2DPCA(2, rank=3, random_state=0).fit(X)
    assert rows.transform(X).shape == (n, 28 * 2 * 3) and rows.predict(X).shape == (n, 28)
    assert rows.predict_proba(X).shape == (n, 28, 2) and rows.posterior(X).mean.shape == (n, 28, 2, 3)
    np.testing.assert_array_equal(rows.transform(X).reshape(n, 28, 2, 3), rows.posterior(X).mean)
    assert rows.inverse_transform(rows.transform(X)).shape == X.shape
    assert rows.score_samples(X).shape == (n,) and rows.reconstruct(X).shape == X.shape
    assert rows.sample(4, random_state=0)[0].shape == (4, 28, 28)
    cores, components = rows.cores(X)
    assert cores.shape == (n, 28, 3) and components.shape == (n, 28)
    back = rows.rebuild(cores, components)
    np.testing.assert_allclose(back, rows.reconstruct(X), atol=1e-3)
    assert rows.score(X) == pytest.approx(28 * rows.lower_bound_, rel=1e-6)
    assert matmix.MixPPCA(2, rank=(3, 2), random_state=0).fit(X).rank_ == (6,)
    assert matmix.PPCA(6).fit(X).transform(X).shape == (n, 6)
    assert matmix.TwoDPCA(5).fit(X).rank_ == (28, 5)
    assert not matmix.GLRAM(2).fit(X).mean_.any() and matmix.MPCA(2).fit(X).mean_.any()
    for cls in (matmix.MixB2DPPCA, matmix.PSOPCA, matmix.MP2DPCA, matmix.GLRAM, matmix.TwoDPCA, matmix.MPCA):
        with pytest.raises(ValueError, match="order 2"):
            cls().fit(X.reshape(n, -1))


def test_tensors():
    X = np.random.default_rng(0).normal(size=(60, 6, 5, 4))
    model = matmix.Mixture(2, rank=(2, 2, 1), random_state=0, max_iter=5, tol=0).fit(X)
    assert model.transform(X).shape == (60, 8) and model.cores(X)[0].shape == (60, 2, 2, 1)
    assert matmix.LowRank(2).fit(X).transform(X).shape == (60, 2, 2, 2)


def test_starting_points(digits, fitted, tmp_path):
    X = digits[0]
    fitted.save(tmp_path / "model.safetensors")
    for start in (fitted, fitted.model_, tmp_path / "model.safetensors", str(tmp_path / "model.safetensors")):
        again = matmix.Mixture(3, rank=(4, 3), init_params=start, max_iter=2, tol=0).fit(X)
        assert again.lower_bounds_[0] == pytest.approx(fitted.lower_bound_, rel=1e-9)
    warm = matmix.Mixture(3, rank=2, random_state=0, warm_start=True, max_iter=2, tol=0).fit(X)
    before = warm.lower_bound_
    assert warm.fit(X).lower_bounds_[0] == pytest.approx(before, rel=1e-9)
    with pytest.raises(matmix.NotFittedError, match="model_"):
        matmix.Mixture(3, init_params=matmix.Mixture(3)).fit(X)


def test_the_papers_algorithm(digits):
    X = digits[0][::10, ::2, ::2] / 255
    model = matmix.MixB2DPPCA(2, rank=2, algorithm="paper", init_params="random", random_state=0, max_iter=5, tol=0)
    assert np.isfinite(model.fit(X).lower_bound_)


def test_pipelines_and_grids(digits):
    X, y = digits
    X, y = X[::2], y[::2]
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: X / np.float32(255)), matmix.Mixture(1, rank=2, random_state=0)
    )
    grid = GridSearchCV(
        pipeline, {"mixture__n_components": [1, 3], "mixture__rank": [2, (4, 4)]}, cv=2, error_score="raise"
    ).fit(X)
    assert grid.best_params_["mixture__rank"] == (4, 4)
    nearest = GridSearchCV(
        matmix.NearestCore(matmix.Mixture(random_state=0)),
        {"distance": ["paper", "weighted"], "estimator__rank": [3, 5]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert nearest.best_score_ > 0.9


def test_set_output(digits):
    flat = digits[0][::10].reshape(30, -1)
    frame = matmix.PPCA(3).set_output(transform="pandas").fit(flat).transform(flat)
    assert list(frame.columns) == ["ppca0", "ppca1", "ppca2"]


def test_nearest_core(digits):
    X, y = digits
    names = np.array(["zero", "one", "", "", "", "", "", "seven"])[y]
    model = matmix.NearestCore(matmix.Mixture(2, rank=5, random_state=0), distance="paper").fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.9
    distances, indices = model.kneighbors(X[1::2], 3)
    assert (np.diff(distances) >= 0).all()
    assert (names[::2][indices[:, 0]] == model.predict(X[1::2])).all()
    cores = model.estimator_.posterior(X[::2]).mean, model.estimator_.posterior(X[1:2]).mean
    by_hand = np.sqrt(((cores[0] - cores[1]) ** 2).sum(axis=(2, 3))).sum(axis=1)
    assert distances[0, 0] == pytest.approx(by_hand.min(), rel=1e-9)
    for distance in ("weighted", "fisher"):
        matmix.NearestCore(matmix.LowRank(4), distance=distance).fit(X, y).predict(X[:3])
    model = matmix.NearestCore(model.estimator_, distance="data", prefit=True).fit(X[::2], y[::2])
    loadings = [np.asarray(u) for u in model.estimator_.loadings_]
    apart = np.einsum("kpr,nkrc,kqc->nkpq", loadings[0], cores[0] - cores[1], loadings[1])
    by_hand = np.sqrt((apart**2).sum(axis=(2, 3))).sum(axis=1)
    distances, indices = model.kneighbors(X[1:2], 3)
    np.testing.assert_allclose(distances[0], np.sort(by_hand)[:3], rtol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.kneighbors(X[1:2], 3)[0], distances)


def test_no_distance_to_a_known_sample_is_negative(digits):
    X, y = digits
    for distance in ("data", "paper", "weighted", "fisher"):
        known = matmix.NearestCore(matmix.LowRank(4), distance=distance).fit(X, y)
        distances = known.kneighbors(X)[0]
        assert (distances >= 0).all() and (distances == 0).all(), distance
    patches = matmix.PatchRecognizer(matmix.PatchFisher(2, grid=2, random_state=0)).fit(X[::3], y[::3])
    assert (patches.kneighbors(X[::3])[0] >= 0).all()


def test_nearest_core_learns_a_discriminant_where_classes_have_several_samples(digits):
    X, y = digits
    low = matmix.LowRank(4).fit(X)
    chosen, asked = (matmix.NearestCore(low, prefit=True, **how).fit(X, y) for how in ({}, {"distance": "fisher"}))
    assert (chosen.distance_, asked.distance_) == ("fisher", "fisher")
    np.testing.assert_array_equal(chosen.kneighbors(X[:9])[0], asked.kneighbors(X[:9])[0])
    alone = matmix.NearestCore(low, prefit=True).fit(X[:20], np.arange(20))
    assert alone.distance_ == "data"
    one = matmix.NearestCore(low, prefit=True).fit(X[:20], np.zeros(20, int))
    assert one.distance_ == "data"


def test_not_converging_is_a_warning(digits):
    with pytest.warns(matmix.ConvergenceWarning, match="has not converged"):
        model = matmix.Mixture(3, rank=2, random_state=0, max_iter=1).fit(digits[0])
    assert not model.converged_ and model.n_iter_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Whoever asks for all iterations gets them without a word.
        matmix.Mixture(3, rank=2, random_state=0, max_iter=1, tol=0).fit(digits[0])


def test_notebooks(digits, fitted):
    text = fitted._repr_html_()
    assert text.count("<img") == 3 and "mean log-likelihood" in text
    assert "text/html" in fitted._repr_mimebundle_()
    assert "LowRank" in matmix.LowRank(2).fit(digits[0])._repr_html_()
    assert "<pre>" in matmix.Mixture()._repr_html_()


def test_a_poor_default_rank_is_mentioned(digits):
    X = digits[0][:300].astype(float)
    model = matmix.Mixture(random_state=0).fit(X)
    (event,) = [event for event in model.history_.events if event["event"] == "default_rank"]
    squares = ((X - X.mean(axis=0)) ** 2).sum()
    assert (event["rank"], event["half"]) == ([4, 4], [14, 14])
    assert event["kept"] == pytest.approx(1 - model.squared_errors(X).sum() / squares, abs=1e-9)
    captured = 1 - matmix.LowRank((14, 14)).fit(X).squared_errors(X).sum() / squares
    assert event["kept"] < 0.9 and event["half_keeps"] == pytest.approx(captured, abs=5e-3)
    assert "variance kept" in model._repr_html_()
    assert not any(e["event"] == "default_rank" for e in matmix.Mixture(rank=4).fit(X).history_.events)


def test_the_covariance_of_a_t_mixture_is_that_of_its_samples():
    X = np.random.default_rng(0).standard_t(5, size=(2000, 1)) * np.random.default_rng(1).normal(size=(2000, 3))
    model = matmix.PPCA(1, noise="t", dof=5.0).fit(X)
    drawn, _ = model.sample(60_000, random_state=1)
    covariance, scale = model.get_covariance(), model.get_scale_matrix()
    np.testing.assert_allclose(np.trace(np.cov(drawn.T)), np.trace(covariance), rtol=0.05)
    np.testing.assert_allclose(covariance, scale * 5 / 3)
    plain = matmix.PPCA(1).fit(X)
    np.testing.assert_array_equal(plain.get_covariance(), plain.get_scale_matrix())
    with pytest.raises(ValueError, match="get_scale_matrix"):
        matmix.PPCA(1, noise="t", dof=1.5).fit(X).get_covariance()


def test_explained_variance_and_errors_of_samples(digits):
    X = digits[0][:200, ::4, ::4].astype(float)
    model = matmix.Mixture(2, rank=2, random_state=0).fit(X)
    for k, share in enumerate(model.explained_variance_ratio_):
        noise = X[0].size * model.noise_variances_[k]
        assert share == pytest.approx(1 - noise / np.trace(model.get_covariance(k)))
    errors = ((X - model.reconstruct(X)) ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(model.squared_errors(X), errors, rtol=1e-8)
    low = matmix.LowRank(rank=2).fit(X)
    np.testing.assert_allclose(low.squared_errors(X), ((X - low.reconstruct(X)) ** 2).sum(axis=(1, 2)), rtol=1e-8)


def test_the_default_detector_is_a_small_mixture_of_ppca():
    X, y = matmix.datasets.load_digits28(return_X_y=True)
    known, others = X[y == 1], X[y == 8]
    detector = matmix.OutlierDetector(random_state=0).fit(known[::2])
    model = detector.estimator_
    assert type(model) is matmix.MixPPCA
    assert model.n_components == 1 and model.rank <= 8
    again = matmix.OutlierDetector(random_state=0).fit(known[::2])
    np.testing.assert_array_equal(again.score_samples(others), detector.score_samples(others))
    inliers = detector.score_samples(known[1::2])
    area = np.mean(detector.score_samples(others)[:, None] < inliers)
    assert area > 0.95, area
    # Weights of 0 leave samples out, and few samples are enough.
    spoiled = np.concatenate([known[::2], others])
    weights = np.repeat([1.0, 0.0], [len(known[::2]), len(others)])
    weighted = matmix.OutlierDetector(random_state=0).fit(spoiled, sample_weight=weights)
    assert np.mean(weighted.score_samples(others)[:, None] < inliers) > 0.95
    assert matmix.OutlierDetector(random_state=0).fit(known[:5]).predict(known).shape == (len(known),)
    # Missing cells.
    broken = np.where(np.random.default_rng(0).random(known.shape) < 0.2, np.nan, known)
    partial = matmix.OutlierDetector(missing="nan", random_state=0).fit(broken[::2])
    assert np.mean(partial.score_samples(others)[:, None] < partial.score_samples(broken[1::2])) > 0.9
    with pytest.raises(ValueError, match="finite"):
        matmix.OutlierDetector().fit(broken)


def test_an_outlier_with_a_component_of_its_own_is_an_outlier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6, 5))
    X[0] += 100 * rng.normal(size=(6, 5))
    model = matmix.Mixture(2, rank=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = matmix.OutlierDetector(model, contamination=0.01).fit(X)
    assert detector.score_samples(X).argmin() == 0
    assert detector.predict(X)[0] == -1


def test_outliers_are_found(digits):
    X = digits[0].copy()
    rng = np.random.default_rng(0)
    bad = rng.choice(len(X), 20, replace=False)
    X[bad] = rng.integers(0, 256, X[bad].shape)
    model = matmix.OutlierDetector(matmix.Mixture(2, rank=4, noise="t", random_state=0), contamination=20 / len(X)).fit(
        X
    )
    found = np.flatnonzero(model.predict(X) < 0)
    assert set(found) == set(bad)
    np.testing.assert_array_equal(model.decision_function(X) < 0, model.predict(X) < 0)
    assert matmix.OutlierDetector(matmix.Mixture(random_state=0)).fit_predict(X).sum() == len(X) - 2 * (len(X) // 10)
