"""Bad input is a ValueError or a TypeError in the library's words; no panic reaches Python."""

import errno
import itertools
import os

import matmix
import numpy as np
import pytest
import scipy.sparse

X = np.random.default_rng(0).normal(size=(20, 5, 4))


def spoiled(value):
    x = X.copy()
    x[7, 3, 2] = value
    return x


@pytest.mark.parametrize("estimator", [matmix.Mixture(), matmix.LowRank()], ids=["Mixture", "LowRank"])
@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (spoiled(np.nan), ValueError, r"sample 7 holds NaN at position \[3, 2\]"),
        (spoiled(np.inf), ValueError, r"sample 7 holds inf at position \[3, 2\]"),
        (X[0, 0], ValueError, "Expected 2D array, got 1D array"),
        (np.float64(3), ValueError, "Expected 2D array, got scalar"),
        (X[:0], ValueError, r"0 sample\(s\)"),
        (X[:, :0], ValueError, r"0 feature\(s\)"),
        (X + 1j, ValueError, "Complex data not supported"),
        (
            np.full((9, 3, 2), 2**53 + 1),
            ValueError,
            "holds 9007199254740993, which double precision rounds to 9007199254740992",
        ),
        (
            np.full((9, 3, 2), 2**64 - 1, np.uint64),
            ValueError,
            "holds 18446744073709551615, which double precision rounds",
        ),
        (np.array([[1 + 2j, None]], dtype=object), ValueError, "Complex data not supported"),
        (np.array([[{}, 1]], dtype=object), TypeError, "must be a string or a real number"),
        ([[1.0, 2.0], [3.0]], ValueError, "inhomogeneous shape"),
        (np.array([["a", "b"]]), ValueError, "not compatible with arrays of bytes/strings"),
        (np.array([["1.5", "2"], ["3", "4"]]), ValueError, "not compatible with arrays of bytes/strings"),
        (np.array([[b"1.5", b"2"], [b"3", b"4"]]), ValueError, "not compatible with arrays of bytes/strings"),
        ([["1.5", "2"], ["3", "4"]], ValueError, "not compatible with arrays of bytes/strings"),
        (np.array([[1.5, "2"], [3, 4]], dtype=object), ValueError, r"X holds the string '2' at \[0, 1\]"),
        (np.array([[1.5, None], [3, 4]], dtype=object), ValueError, "missing cells are for a Mixture with missing="),
        (np.ma.masked_greater(X, 1), ValueError, "missing cells are for a Mixture with missing="),
        (np.zeros((3, 2), "datetime64[s]"), TypeError, "datetime64"),
        (scipy.sparse.eye(4).tocsr(), TypeError, "Sparse data was passed"),
        (1e300 * X, ValueError, "too large to be squared"),
    ],
)
def test_data(estimator, data, error, words):
    with pytest.raises(error, match=words):
        estimator.fit(data)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"n_components": 0},
            ValueError,
            r"'n_components' parameter of Mixture .* in the range \[1, inf\)",
        ),
        ({"n_components": 21}, ValueError, "21 components cannot be fitted to 20 samples"),
        ({"n_components": 1.5}, TypeError, "'n_components' parameter of Mixture must be an int"),
        ({"n_components": True}, ValueError, "boolean `true`, expected usize"),
        ({"rank": 6}, ValueError, "rank 6 of mode 0 does not fit its side of 5"),
        ({"rank": 10**30}, ValueError, "rank == 1.*, must be <= 9223372036854775807"),
        ({"rank": (2, 5)}, ValueError, "rank 5 of mode 1 does not fit its side of 4"),
        ({"rank": (1, 2, 3)}, ValueError, r"3 rank\(s\) given for samples of order 2"),
        ({"rank": ()}, ValueError, "rank is empty"),
        ({"rank": 0}, ValueError, "'rank' parameter of Mixture must be an int in the range"),
        ({"rank": (2, 0)}, ValueError, "rank == 0, must be >= 1"),
        ({"rank": "two"}, TypeError, "rank"),
        ({"rank": 2.0}, TypeError, "rank"),
        ({"sample_shape": (4, 4)}, ValueError, "needs 16"),
        ({"sample_shape": (0, 20)}, ValueError, "positive integers"),
        ({"init_params": "nowhere"}, ValueError, "option `init_params` is 'nowhere'"),
        ({"init_params": 3}, TypeError, "init_params"),
        ({"algorithm": "magic"}, ValueError, "'algorithm' parameter of Mixture must be a str among"),
        ({"algorithm": "paper", "sample_shape": (20,)}, ValueError, "order 2"),
        ({"n_init": 0}, ValueError, "n_init"),
        ({"max_iter": -1}, ValueError, "max_iter"),
        ({"tol": -1.0}, ValueError, "'tol' parameter of Mixture must be a float in the range"),
        ({"tol": float("nan")}, ValueError, "'tol' parameter of Mixture must be a float in the range"),
        ({"tol": float("inf")}, ValueError, "'tol' parameter of Mixture must be a float in the range"),
        ({"tol": "small"}, TypeError, "tol"),
        ({"accelerate": "no"}, TypeError, "'accelerate' parameter of Mixture must be an instance of 'bool'"),
        ({"stop": "never"}, ValueError, "'stop' parameter of Mixture must be a str among {.*}. Got 'never'"),
        ({"precision": "half"}, ValueError, "'precision' parameter of Mixture must be a str among {.*}. Got 'half'"),
        ({"precision": None}, ValueError, "'precision' parameter of Mixture must be a str among {.*}. Got None"),
        ({"noise_floor": 0}, ValueError, "'noise_floor' parameter of Mixture must be a float in the range"),
        ({"noise_floor": 1.0}, ValueError, "'noise_floor' parameter of Mixture must be a float in the range"),
        ({"random_state": "seed"}, ValueError, "'random_state' parameter"),
        ({"checkpoint": 3}, TypeError, "'checkpoint' parameter"),
        ({"n_threads": 0}, ValueError, "n_threads"),
        # Just above what the library allows: should the check ever go missing, this must not take the machine down.
        ({"n_threads": 1025}, ValueError, "threads"),
        ({"callback": 3}, TypeError, "callback"),
    ],
)
def test_options(options, error, words):
    with pytest.raises(error, match=words):
        matmix.Mixture(**options).fit(X)


def test_masked_arrays_without_a_mask_in_use_are_arrays():
    plain = matmix.LowRank().fit(X).transform(X)
    np.testing.assert_array_equal(matmix.LowRank().fit(np.ma.array(X)).transform(X), plain)
    with pytest.raises(ValueError, match="holds NaN"):
        matmix.LowRank().fit(matmix.Parts([X, np.ma.masked_greater(X, 1)]))
    with pytest.raises(ValueError, match="missing cells are for a Mixture with missing="):
        matmix.LowRank().fit(X).transform(np.ma.masked_greater(X, 1))
    with pytest.raises(ValueError, match="missing cells are for a Mixture with missing="):
        matmix.LowRank().fit(X, sample_weight=np.ma.masked_less(np.arange(20.0), 3))


def test_equal_samples_too_large_to_be_squared():
    with pytest.raises(ValueError, match="sample 0 is too large to be squared"):
        matmix.Mixture().fit(np.full((5, 3), 1e160))


def test_weights():
    for weights, words in [
        (np.ones(19), r"sample_weight.shape == \(19,\), expected \(20,\)"),
        (-np.ones(20), "the weight of sample 0 is -1"),
        (np.full(20, np.nan), "Input sample_weight contains NaN"),
        (np.zeros(20), "at least one non-zero"),
        (np.ones((20, 2)), "1D"),
    ]:
        with pytest.raises(ValueError, match=words):
            matmix.Mixture().fit(X, sample_weight=weights)
        with pytest.raises(ValueError, match=words):
            matmix.LowRank().fit(X, sample_weight=weights)


def test_other_shapes_later():
    model = matmix.Mixture().fit(X)
    with pytest.raises(ValueError, match="X has 12 features, but Mixture is expecting 20"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"shape \(4, 5\)"):
        model.predict(X.transpose(0, 2, 1))
    with pytest.raises(ValueError, match=r"as transform gives them, shape \(N, 16\); got \(3, 7\)"):
        model.inverse_transform(np.zeros((3, 7)))
    with pytest.raises(ValueError, match="cores of shape"):
        model.rebuild(np.zeros((3, 7)))
    with pytest.raises(ValueError, match="component"):
        model.rebuild(np.zeros((1, 16)), [3])
    with pytest.raises(ValueError, match="negative"):
        model.rebuild(np.zeros((1, 16)), [-1])
    with pytest.raises(ValueError, match="2 components for 1 cores"):
        model.rebuild(np.zeros((1, 16)), [0, 0])
    with pytest.raises(ValueError, match="component"):
        model.get_covariance(5)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)
    for many in (2**62, 2**63 - 1, 10**14):
        with pytest.raises(MemoryError, match=f"{many} samples of 5×4 take .* memory"):
            model.sample(many)
    with pytest.raises(ValueError, match="rule"):
        model.reconstruct(X, rule="best")
    with pytest.raises(ValueError, match="sample 0 holds NaN"):
        model.transform(np.full((1, 5, 4), np.nan))


def test_options_of_the_others():
    for estimator, words in [
        (matmix.LowRank(center=3), "'center' parameter of LowRank"),
        (matmix.LowRank(tol="small"), "'tol' parameter of LowRank"),
        (matmix.GLRAM(n_threads=0), "'n_threads' parameter of GLRAM"),
        (matmix.PPCA(max_iter=1.5), "'max_iter' parameter of PPCA"),
        (matmix.NearestCore("mixture"), "'estimator' parameter of NearestCore"),
        (matmix.NearestCore(prefit="yes"), "'prefit' parameter of NearestCore"),
    ]:
        with pytest.raises(ValueError, match=words):
            estimator.fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="'tol' parameter of Mixture"):
        matmix.Mixture(tol=-1).partial_fit(X)


@pytest.mark.parametrize("method", ["predict", "transform", "reconstruct", "score", "bic", "posterior", "denoise"])
def test_not_fitted(method):
    with pytest.raises(matmix.NotFittedError, match="not fitted yet"):
        getattr(matmix.Mixture(), method)(X)
    for call in (
        matmix.Mixture().sample,
        matmix.Mixture().get_covariance,
        lambda: matmix.LowRank().save("x"),
    ):
        with pytest.raises(matmix.NotFittedError):
            call()


def test_recogniser():
    y = np.arange(20) % 3
    for model, args, words in [
        (matmix.NearestCore(), (X, y[:-1]), r"inconsistent numbers of samples: \[20, 19\]"),
        (matmix.NearestCore(), (X, None), "requires y"),
        (matmix.NearestCore(), (X, y + 0.5), "Unknown label type"),
        (matmix.NearestCore(distance="far"), (X, y), "'distance' parameter of NearestCore must be a str among"),
        (matmix.NearestCore(matmix.MP2DPCA()), (X, y), "every row"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(*args)
    with pytest.raises(matmix.NotFittedError):
        matmix.NearestCore(matmix.Mixture(), prefit=True).fit(X, y)
    with pytest.raises(ValueError, match="size of the gallery"):
        matmix.NearestCore().fit(X, y).kneighbors(X, 21)


def test_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot open"):
        matmix.load(tmp_path / "nothing.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not a model")
    with pytest.raises(ValueError, match="not a readable model file"):
        matmix.load(broken)
    for path in (tmp_path / "no" / "folder" / "model", "nodir/x"):
        for model in (matmix.LowRank(), matmix.Mixture()):
            with pytest.raises(FileNotFoundError, match="cannot write: No such file or directory") as raised:
                model.fit(X).save(path)
            assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, os.fspath(path))
            assert ".matmix-" not in str(raised.value)
    with pytest.raises(FileNotFoundError) as raised:
        matmix.datasets.open(tmp_path / "nothing.npy")
    assert raised.value.errno == errno.ENOENT
    with pytest.raises(OSError, match="it is a folder"):
        matmix.LowRank().fit(X).save(tmp_path)
    with pytest.raises(ValueError, match="no such embedded data"):
        matmix.datasets.open("demo:cats")
    with pytest.raises(ValueError, match="without a step"):
        matmix.datasets.open("demo:mnist", take=slice(0, 10, 2))


def test_nothing_panics():
    """Extreme but well-typed calls: each either works or raises what a caller of Python expects."""
    rng = np.random.default_rng(1)
    arrays = [
        np.zeros((4, 3)),
        np.full((6, 2, 2), 7, np.uint8),
        rng.normal(size=(1, 3)),
        rng.normal(size=(2, 1, 1, 1)),
        1e-320 * rng.normal(size=(9, 3)),
        1e150 * rng.normal(size=(9, 3)),
        1e200 * rng.normal(size=(9, 2, 2)),
        np.float32(3e38) * rng.normal(size=(9, 3)).astype(np.float32).clip(-1, 1),
        np.repeat(rng.normal(size=(1, 4, 3)), 12, axis=0),
        np.eye(12).reshape(12, 4, 3),
    ]
    options = itertools.product((1, 2, 4), (None, 1), ("kmeans", "random"), ("exact", "paper"))
    worked = 0
    for (k, rank, start, algorithm), x in itertools.product(options, arrays):
        model = matmix.Mixture(
            k, rank, init_params=start, algorithm=algorithm, random_state=0, max_iter=3, tol=0, n_init=2
        )
        try:
            model.fit(x)
            model.transform(x), model.denoise(x), model.bic(x), model.posterior(x), model.sample(3)
            worked += 1
        except (ValueError, TypeError):
            pass
        try:
            low = matmix.LowRank(rank).fit(x)
            low.inverse_transform(low.transform(x))
        except (ValueError, TypeError):
            pass
    assert worked > 100


def test_the_native_part_refuses_what_the_package_would_never_pass():
    from matmix import _matmix

    model = matmix.Mixture().fit(X).model_
    for x in (X[:, ::2], np.asfortranarray(X), X.astype(int), "x", None):
        with pytest.raises((ValueError, TypeError)):
            model.question(["core"]).answers(x, (5, 4))
    for shape in ((), (0,), (3, 3), (2**63, 2**63)):
        with pytest.raises((ValueError, OverflowError)):
            model.question(["core"]).answers(X, shape)
    with pytest.raises(ValueError, match="no model named"):
        model.question(["core"]).answers(X, (5, 4), preset="svd")
    with pytest.raises(ValueError, match="`taste` is no Question"):
        model.question(["taste"])
    with pytest.raises(ValueError, match="a model without noise has no answer to `component`"):
        matmix.LowRank().fit(X).model_.question(["component"]).answers(X, (5, 4))
    with pytest.raises(ValueError, match="not a readable task"):
        _matmix.Question.from_bytes(b"")
    with pytest.raises(ValueError, match="not a readable model file"):
        _matmix.MixtureModel.from_bytes(b"")
    with pytest.raises(ValueError, match="not a mixture"):
        _matmix.MixtureModel.from_bytes(matmix.LowRank().fit(X).model_.__reduce__()[1][0])
