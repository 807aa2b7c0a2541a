"""The mixture: `matmix.Mixture`."""

from __future__ import annotations

import json
import math
import numbers
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from . import _matmix
from ._blocks import in_memory
from ._elements import check_array, plain_array
from ._fitting import FitInterruptedWarning, MixtureFitting
from ._output import on_host
from ._validation import (
    Data,
    Samples,
    Seed,
    Sides,
    check_choice,
    check_integer,
    check_samples,
    check_seed,
    given,
)

REBUILT_BY = {"most_probable": "rebuilt", "weighted": "denoised"}
"""The rules of reconstruction, and the question that each of them is."""

__all__ = ["FitInterruptedWarning", "Mixture", "Posterior"]


class Posterior(NamedTuple):
    """What is known about the cores of samples.

    Attributes
    ----------
    mean : ndarray of shape (N, K, r_1, ..., r_D)
        The posterior means.
    variance : ndarray of shape (K, r_1, ..., r_D)
        The posterior variance of each entry. It does not depend on the sample, and the entries are independent.
    """

    mean: np.ndarray
    variance: np.ndarray


class Mixture(DensityMixin, MixtureFitting):
    """Mixture of multilinear probabilistic PCA for vectors, matrices and tensors.

    Component k explains a matrix as ``X = L B Rᵀ + M + noise`` with a small random core B; a vector as
    ``x = U b + m + noise``; a tensor with one loading matrix per mode. One component is probabilistic PCA (order 1)
    or PSOPCA (order 2); several are the mixture of PPCA or mixB2DPPCA.

    Parameters
    ----------
    n_components : int or "auto", default=1
        K, the number of components. (The size of the cores is `rank`.) "auto" chooses it among 1 to 10, by the
        likelihood of samples held out; `matmix.select` has more to say about that.
    rank : int, sequence of int, None or "auto", default=None
        The shape of the cores: one number for every mode or one per mode. None means ``min(4, side)`` in every mode;
        "auto" chooses it.
    noise : {"gaussian", "t"}, default="gaussian"
        The distribution of samples around the mean of their component: multivariate Student-t has heavier tails, so
        that outliers count less.
    dof : {"estimated", "shared"} or float, default="estimated"
        The degrees of freedom of ``noise="t"``: estimated for every component, one estimate for all, or given.
    missing : {"error", "nan"}, default="error"
        What NaN in the samples is: a mistake, or a cell that was not observed. Then also cells that masked arrays leave
        out, None and pandas' NA are; everything is computed from what was observed, and nothing is filled in first.
    sample_shape : tuple of int, optional
        The shape of one sample, for arrays that hold flattened samples in their rows: ``(28, 28)`` for X of shape
        (N, 784); one side may be −1, as in `numpy.reshape`. By default X says it: ``X.shape[1:]``. An X of more axes
        is flattened to vectors by ``sample_shape=-1``, but not brought into another shape.
    scale : float, optional
        What every value is multiplied with when it is read (1/255 for bytes, say), without a copy. A fitted model
        multiplies new samples the same way; another number, set after the fit, is used as it is.
    init_params : {"kmeans", "random"}, Mixture, MixtureModel or path, default="kmeans"
        Where to begin: k-means, the paper's random start, or a fitted model (itself, its `model_`, or its file). From a
        mixture or a file, samples are multiplied and cells left out as in its fit, as with `warm_start`.
    search : {"auto", "none"}, default="auto"
        Whether better clusters than those of k-means are searched for before the first iteration: from one component,
        by splits and merges. A better optimum, for about twice the time on small sets and for none on large ones.
    n_init : int, default=1
        How many times to begin; the fit with the largest log-likelihood is kept.
    max_iter : int, default=100
        The largest number of iterations, each a cycle over all modes.
    tol : float, default=1e-6
        Convergence tolerance: the relative change that ends the fit; 0 runs all iterations.
    stop : {"likelihood", "error"}, default="likelihood"
        The change of what: of the mean log-likelihood, as one of samples in units of about their standard deviation, or
        of the reconstruction error. Neither depends on the unit of X.
    accelerate : bool, default=True
        Whether the exact algorithm may guess, once it has become slow, where its iterations are heading; a guess is
        only kept if the likelihood does not fall.
    stages : bool, default=True
        Whether early iterations of the exact algorithm may see a part of the samples only, where there are thousands of
        them. Whether a fit has converged is always judged on all of them.
    algorithm : {"exact", "paper"}, default="exact"
        Exact EM, or Algorithm 1 of the paper as printed (matrices only, slow).
    random_state : int, RandomState, Generator or None, default=None
        An integer is the seed itself and gives the same bits as `--seed` in the shell and `seed` in Rust, on any
        number of threads. None takes a new seed from NumPy's global state.
    warm_start : bool, default=False
        Begin the next `fit` where the last one ended.
    verbose : int, default=0
        1 shows a progress line (with tqdm where it is installed).
    n_threads : int, optional
        How many threads fit; all cores by default.
    precision : {"auto", "single", "double"}, default="auto"
        What samples are contracted in; parameters and sums are always double. "auto" is double for f64 data, and for
        u8 and f32 single unless the noise of the model is so small that rounding would show.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        What computes `fit` and answers questions to a fitted model: the processor, an NVIDIA GPU, or a GPU where there
        is one and the work is worth the upload. Of samples that are elsewhere, it is what computes there, a Dask
        worker's own GPU. Missing cells and known labels are for the processor.
    output : {"numpy", "input"}, default="numpy"
        What answers about samples are: NumPy's arrays, or arrays of the library of X (PyTorch, CuPy, JAX) on the device
        of X. Attributes of the model are always NumPy's.
    noise_floor : float, default=1e-6
        The smallest noise variance of a component, relative to the mean variance of the data per element.
    prune : bool, default=False
        Whether columns of the loadings that explain no more than noise would in any component are dropped at the end,
        and the fit goes on without them. Without it, `history_.events` lists them.
    callback : callable, optional
        Called with a `Progress` after each step of a search, after the start and after each iteration, on the thread
        that called `fit`; a true value or `StopIteration` ends the fit and keeps the model.
    checkpoint : path, optional
        A file for the state of a long fit. If it is there, the fit goes on from it (and has the same bits as if nothing
        had happened); a state of other samples or options is an error.
    checkpoint_every : int, default=10
        After how many iterations the state is kept.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
    means_ : ndarray of shape (K, p_1, ..., p_D)
    loadings_ : list of ndarray of shape (K, p_d, r_d), one per mode
        For matrices the row loadings L and the column loadings R.
    noise_variances_ : ndarray of shape (K,)
    degrees_of_freedom_ : ndarray of shape (K,) or None
        Of Student-t noise; None if the noise is Gaussian.
    converged_ : bool
    n_iter_ : int
    passes_ : float
        Passes over all samples: one over a part counts as its share.
    lower_bound_ : float
        The mean log-likelihood per sample at the end (exact, not a bound; named as in scikit-learn).
    lower_bounds_ : list of float
        Its course.
    history_ : History
    n_batches_ : int
        How many batches `partial_fit` has seen; a fit counts as one.
    n_features_in_ : int
        The number of numbers in a sample.
    sample_shape_ : tuple of int
    input_ : Input
        What the model takes for input: `shape`, `scale`, `dtype` and `range` of the values, and, for images that the
        library has read, `resize` and `colour`; `missing` and `mask` tell which cells were not observed. None if a
        model file does not say it.
    rank_ : tuple of int
    choice_ : Choice or None
        What components and ranks were chosen from, if they were.
    model_ : MixtureModel
        The native model.

    Notes
    -----
    Results come in the form of the input: flattened for 2-D arrays, f32 for f32. Parameters and log-likelihoods are
    always f64. Ctrl-C during `fit` keeps the model so far and warns; a second one is raised.

    A fit that has not converged, or whose components are not supported by enough samples, warns with scikit-learn's
    `ConvergenceWarning`; `matmix fit` and the report have the same sentences. `history_.events` lists all events.

    References
    ----------
    F. Ju, Y. Sun, J. Gao, S. Liu, Y. Hu, *Mixture of Bilateral-Projection Two-dimensional Probabilistic Principal
    Component Analysis*, arXiv 1601.01431.

    Examples
    --------
    >>> import matmix
    >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
    >>> model = matmix.Mixture(n_components=3, rank=4, random_state=0).fit(X)
    >>> model.means_.shape, model.transform(X).shape, model.predict_proba(X).shape
    ((3, 28, 28), (1000, 48), (1000, 3))
    >>> cores, components = model.cores(X)
    >>> cores.shape, components.shape
    ((1000, 4, 4), (1000,))
    >>> model.rebuild(cores, components).shape
    (1000, 28, 28)
    """

    def __init__(
        self,
        n_components: int | str = 1,
        rank: Sides | str = None,
        *,
        noise: str = "gaussian",
        dof: str | float = "estimated",
        missing: str = "error",
        sample_shape: Sides = None,
        scale: float | None = None,
        init_params: Any = "kmeans",
        search: str = "auto",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-6,
        stop: str = "likelihood",
        accelerate: bool = True,
        stages: bool = True,
        algorithm: str = "exact",
        random_state: Seed = None,
        warm_start: bool = False,
        verbose: int = 0,
        n_threads: int | None = None,
        precision: str = "auto",
        device: str = "cpu",
        output: str = "numpy",
        noise_floor: float = 1e-6,
        prune: bool = False,
        callback: Callable[[_matmix.Progress], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.noise = noise
        self.dof = dof
        self.missing = missing
        self.sample_shape = sample_shape
        self.scale = scale
        self.init_params = init_params
        self.search = search
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.stop = stop
        self.accelerate = accelerate
        self.stages = stages
        self.algorithm = algorithm
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_threads = n_threads
        self.precision = precision
        self.device = device
        self.output = output
        self.noise_floor = noise_floor
        self.prune = prune
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    # -- questions about samples -----------------------------------------------------------------------------------

    def predict(self, X: Data) -> np.ndarray:
        """The most probable component of every sample, shape (N,)."""
        samples = self._check(X)
        return self._answer(samples, "component", each=self._rows_of(samples), dtype=np.int64)

    def predict_proba(self, X: Data) -> np.ndarray:
        """The responsibilities γ: how probable each component is for each sample, shape (N, K)."""
        samples = self._check(X)
        return self._answer(samples, "responsibilities", each=(*self._rows_of(samples), len(self.weights_)))

    def transform(self, X: Data) -> np.ndarray:
        """The cores of every sample under all components, side by side: the paper's representation of a sample.

        Returns
        -------
        ndarray of shape (N, K·r_1·…·r_D)
            `posterior` has the same numbers in the shape of the cores, `cores` those of the most probable component.
        """
        samples = self._check(X)
        return self._answer(samples, "all_cores", each=(math.prod(self._cores_of(samples)),))

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """The samples that the cores of all components stand for.

        Cores do not say how probable each component is: taken is the component whose core is most probable before any
        sample is seen, π_k N(B_k; 0, I). `reconstruct` and `rebuild` know the component.

        Parameters
        ----------
        X : array of shape (N, K·r_1·…·r_D)
            What `transform` returned.

        Returns
        -------
        ndarray of shape (N, p_1, ..., p_D), or (N, P) if the model was fitted to flattened samples
        """
        check_is_fitted(self)
        cores, width = check_array(on_host(X)), self._n_features_out
        if cores.ndim != 2 or cores.shape[1] != width:
            raise ValueError(
                f"the cores of all components are needed as transform gives them, shape (N, {width}); got {cores.shape}"
            )
        out = self.model_.inverse_transform(np.ascontiguousarray(cores, np.float64).ravel())
        samples = Samples(cores, self.sample_shape_, self._flat, given=given(self, X))
        return samples.answered(samples.like(out.reshape(len(cores), *self.sample_shape_)))

    def cores(self, X: Data) -> tuple[np.ndarray, np.ndarray]:
        """The core of every sample under its most probable component, and that component.

        Returns
        -------
        cores : ndarray of shape (N, r_1, ..., r_D), or (N, r_1·…·r_D) for 2-D input
        components : ndarray of shape (N,)
        """
        samples = self._check(X)
        rows, size = self._rows_of(samples), math.prod(self.rank_)
        both = self._ask(samples, "core", "component", each=(*rows, size + 1), dtype=np.float64)
        shape = (math.prod(rows) * size,) if samples.flat else (*rows, *self.rank_)
        cores = both[..., :-1].astype(samples.precision).reshape(samples.n, *shape)
        return samples.answered(cores), samples.answered(both[..., -1].astype(np.int64))

    def rebuild(self, cores: ArrayLike, components: ArrayLike | None = None) -> np.ndarray:
        """The samples that cores of known components stand for, ``L B Rᵀ + M``: the way back from `cores`.

        Parameters
        ----------
        cores : array of shape (N, r_1, ..., r_D) or (N, r_1·…·r_D)
        components : array of int of shape (N,), optional
            The component of each core; may be left out when there is only one.

        Returns
        -------
        ndarray of shape (N, p_1, ..., p_D), or (N, P) if the cores are flattened
        """
        check_is_fitted(self)
        kind, cores = given(self, cores), check_array(on_host(cores), what="cores")
        rank, size = self.rank_, int(np.prod(self.rank_))
        if cores.ndim < 2 or cores.size != cores.shape[0] * size or cores.shape[1:] not in ((size,), rank):
            raise ValueError(
                f"cores of shape (N, {size}) or (N, {', '.join(map(str, rank))}) are needed, got {cores.shape}"
            )
        n, k = cores.shape[0], len(self.weights_)
        if components is None:
            if k > 1:
                raise ValueError(
                    f"a core alone does not say which of the {k} components it belongs to: give the components that "
                    "came with it, or use reconstruct(X)"
                )
            components = np.zeros(n, np.int64)
        components = np.ascontiguousarray(on_host(components), dtype=np.int64)
        if components.shape != (n,):
            raise ValueError(f"{components.size} components for {n} cores; exactly one per core is needed")
        out = self.model_.rebuild(np.ascontiguousarray(cores, np.float64).ravel(), components)
        samples = Samples(cores, tuple(out.shape[1:]), cores.ndim == 2, given=kind)
        return samples.answered(samples.like(out))

    def reconstruct(self, X: Data, *, rule: str = "most_probable") -> np.ndarray:
        """Every sample rebuilt from its core, in the shape of X.

        Parameters
        ----------
        X : array of samples
        rule : {"most_probable", "weighted"}, default="most_probable"
            From the most probable component (the paper's rule), or from all of them weighted by the responsibilities.
        """
        question = REBUILT_BY[check_choice("rule", rule)]
        samples = self._check(X)
        return self._answer(samples, question, each=tuple(samples.array.shape[1:]))

    def denoise(self, X: Data) -> np.ndarray:
        """Every sample without its noise, in the shape of X: the posterior mean of the noiseless sample."""
        return self.reconstruct(X, rule="weighted")

    def impute(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
        draws: int | None = None,
        random_state: Seed = None,
        temper: float | str = "auto",
    ) -> Any:
        """Fills in cells that are missing (NaN, masked, None): their means given all observed cells of the sample.

        Parameters
        ----------
        X : array of samples
        return_std : bool, default=False
            Whether to return the standard deviation of every cell, too: 0 where it was observed.
        draws : int, optional
            Draw all missing cells of a sample together so many times instead (multiple imputation).
        random_state : int, RandomState, Generator or None
            Of the draws; by default the estimator's own.
        temper : {"auto", "none"} or float, default="auto"
            How far the observed cells of a sample are trusted: ``"none"`` is the exact posterior, a number below 1
            trusts them less. ``"auto"`` is 0.1 for samples of which a large region is missing, which a warning tells,
            and the exact posterior for the others.

        Returns
        -------
        X : ndarray in the shape of X, or of shape (draws, N, p_1, ..., p_D)
            Observed cells are as they were, times `scale` if there is one.
        std : ndarray in the shape of X
            Only with ``return_std=True``.

        Examples
        --------
        >>> import matmix
        >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
        >>> model = matmix.Mixture(rank=4, missing="nan", random_state=0).fit(X[:200])
        >>> broken = X[200:202].astype("f8")
        >>> broken[:, 10:12, 14] = float("nan")
        >>> filled, std = model.impute(broken, return_std=True)
        >>> int((std > 0).sum())
        4
        """
        in_memory(X, "imputation")
        check_is_fitted(self)
        if return_std and draws is not None:
            raise ValueError("draws show by themselves how uncertain cells are; leave out return_std")
        if not isinstance(temper, str) and (isinstance(temper, bool) or not isinstance(temper, numbers.Real)):
            problem = f"option `temper` is {temper!r}; it must be 'auto', 'none' or a number above 0 and at most 1"
            raise TypeError(problem)
        samples = check_samples(self, plain_array(X, "X", "nan"), reset=False)._replace(given=given(self, X))
        seldom = [event for event in self.history_.events if event["event"] == "seldom_observed"]
        for message in _matmix.fit_warnings("converged", json.dumps(seldom))[1]:
            warnings.warn(message, UserWarning, stacklevel=2)
        args, shape = (samples.array, samples.shape, self._preset), tuple(samples.array.shape)
        if draws is not None:
            seed = check_seed(self.random_state if random_state is None else random_state)
            count = check_integer("draws", draws, 1)
            drawn = self.model_.impute_draws(*args, scale=samples.scale, draws=count, seed=seed, temper=str(temper))
            return samples.answered(samples.typed(drawn.reshape(count, *shape)))
        values, deviations, tempered = self.model_.impute(*args, scale=samples.scale, temper=str(temper))
        if temper == "auto" and tempered:
            warnings.warn(
                f"{tempered} of the samples lack a large region; their observed cells were trusted less (temper=0.1). "
                "Say temper=0.1 for all samples, or temper='none' for the exact posterior.",
                UserWarning,
                stacklevel=2,
            )
        filled = samples.answered(samples.typed(values.reshape(shape)))
        return (filled, samples.answered(samples.typed(deviations.reshape(shape)))) if return_std else filled

    def reconstruction_error(self, X: Data) -> float:
        """The paper's e = sqrt(Σ‖X − X̂‖²/N), over observed cells."""
        return math.sqrt(float(self.squared_errors(X).mean()))

    def squared_errors(self, X: Data) -> np.ndarray:
        """‖X_n − X̂_n‖² of every sample, shape (N,), rebuilt by its most probable component."""
        return self._answer(self._check(X), "squared_error", each=(), dtype=np.float64, total=True)

    def score_samples(self, X: Data) -> np.ndarray:
        """ln p(X_n) of every sample, shape (N,)."""
        return self._answer(self._check(X), "log_likelihood", each=(), dtype=np.float64, total=True)

    def _typicality(self, samples: Samples) -> np.ndarray:
        """Scores that rank outliers: ln p(X_n) of complete samples, under the components that data support."""
        model, _ = self._supported()
        return self._answer(samples, "typicality", each=(), dtype=np.float64, total=True, model=model)

    def _supported(self) -> tuple[_matmix.MixtureModel, str | None]:
        """The mixture of the components that data support, and the warning about the others."""
        return self.model_.supported(self.history_.to_json())

    def score(self, X: Data, y: ArrayLike | None = None) -> float:
        """The mean log-likelihood per sample."""
        return float(self.score_samples(X).mean())

    def posterior(self, X: Data) -> Posterior:
        """Mean and variance of the cores of every sample under every component.

        Returns
        -------
        Posterior
            `mean` of shape (N, K, r_1, ..., r_D) and `variance` of shape (K, r_1, ..., r_D), that of samples without
            missing cells: with some missing it is larger.
        """
        samples = self._check(X)
        mean = self._ask(samples, "all_cores", each=self._cores_of(samples))
        variance = samples.typed(self.model_.posterior_variance())
        return Posterior(samples.answered(mean), samples.answered(variance))

    def bic(self, X: Data) -> float:
        """The Bayesian information criterion; smaller is better."""
        return self._criteria(X)[1]

    def aic(self, X: Data) -> float:
        """Akaike's information criterion; smaller is better."""
        return self._criteria(X)[2]

    def icl(self, X: Data) -> float:
        """The integrated completed likelihood: BIC, and a penalty for components that overlap; smaller is better."""
        return self._criteria(X)[3]

    def _criteria(self, X: Data) -> tuple[float, float, float, float]:
        """Log-likelihood, BIC, AIC and ICL."""
        samples = self._check(X)
        held = samples.held(self._preset, None, None, device=self.device)
        return self.model_.evaluate(
            held,
            samples.shape,
            self._preset,
            scale=samples.scale,
            missing=samples.missing,
            device=self.device,
        )

    # -- questions about the model ---------------------------------------------------------------------------------

    def sample(
        self, n_samples: int = 1, *, noise: bool = True, random_state: Seed = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws new samples.

        Parameters
        ----------
        n_samples : int, default=1
        noise : bool, default=True
            Whether to add the noise; without it one sees what the components can express.
        random_state : int, RandomState, Generator or None
            By default the estimator's own.

        Returns
        -------
        X : ndarray of shape (n_samples, p_1, ..., p_D)
        components : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        seed = check_seed(self.random_state if random_state is None else random_state)
        n = check_integer("n_samples", n_samples, 1)
        return self.model_.sample(n, seed, bool(noise))

    def report(
        self,
        X: Data,
        path: str | os.PathLike[str],
        *,
        y: ArrayLike | None = None,
        title: str = "",
        data: str = "",
        axes: Sequence[str | tuple[str, str]] = (),
        value: str | tuple[str, str] = "",
        colours: str = "auto",
        recognize: str | None = None,
        held_out: ArrayLike | None = None,
    ) -> None:
        """Writes one HTML file that shows the model and what it makes of samples; it opens in any browser, offline.

        Parameters
        ----------
        X : array of shape (N, p_1, p_2, …) or (N, P)
            The samples: those of the fit, or new ones.
        path : str or path
            The page. It appears whole or not at all.
        y : array of shape (N,), optional
            A label per sample: the map is coloured by them, and a table compares them with the components.
        title, data : str
            The heading, and the name of the data.
        axes : sequence of str or (name, unit)
            What the modes are, one for each, and the coordinates of their ends where they have some:
            ``["channel", "time (s)=0:2.5"]``.
        value : str or (name, unit)
            What the values are.
        colours : {"auto", "grey", "sequential", "diverging"}
            How values become colours.
        recognize : {"auto", "data", "paper", "weighted", "fisher"}, optional
            Adds a recognition experiment by this distance, as of `NearestCore`: every other sample of each label of `y`
            is known.
        held_out : array of samples, optional
            Samples that the model was not fitted to: the summary tells how well it does on them.

        Examples
        --------
        >>> import matmix, tempfile, os
        >>> X, y = matmix.datasets.load_digits28(return_X_y=True)
        >>> model = matmix.MixB2DPPCA(2, rank=3, random_state=0).fit(X[:200])
        >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> model.report(X[:200], path, y=y[:200], data="digits")
        >>> open(path, encoding="utf-8").read(15)
        '<!DOCTYPE html>'
        """
        in_memory(X, "a report")
        samples = self._check(X)
        options = {
            "title": title,
            "data": data,
            "colours": check_choice("colours", colours),
            "seed": self._described.get("seed"),
        }
        if recognize is not None and y is None:
            raise ValueError("option `recognize` needs labels: give them as y")
        labels = None if y is None else [str(label) for label in np.asarray(y).ravel()]
        others = None
        if held_out is not None:
            in_memory(held_out, "a report")
            checked = self._check(held_out)
            others = (checked.array, checked.shape, checked.scale)
        self.model_.report(
            samples.array,
            samples.shape,
            self._preset,
            scale=samples.scale,
            path=os.fspath(path),
            options=json.dumps(options),
            labels=labels,
            axes=[_named(axis) for axis in axes],
            value=_named(value),
            recognize=recognize,
            held_out=others,
            history=self.history_.to_json(),
            missing=samples.missing,
        )

    def get_covariance(self, component: int = 0) -> np.ndarray:
        """Covariance of the flattened samples of one component, shape (P, P); for small P only.

        With Student-t noise it is ν/(ν − 2) times the scale matrix, and an error if ν is at most 2.
        """
        check_is_fitted(self)
        return self.model_.covariance(check_integer("component", component, 0))

    def get_scale_matrix(self, component: int = 0) -> np.ndarray:
        """Scale matrix of one component over the flattened samples, shape (P, P); for small P only.

        The covariance if the noise is Gaussian. With Student-t noise it exists for any degrees of freedom.
        """
        check_is_fitted(self)
        return self.model_.scale_matrix(check_integer("component", component, 0))

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters, as BIC and AIC count them."""
        check_is_fitted(self)
        return int(self.model_.n_parameters)

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """The share of each component's variance that its cores explain, shape (K,); the rest is noise."""
        check_is_fitted(self)
        explained = np.prod([(u**2).sum(axis=(1, 2)) for u in self.loadings_], axis=0)
        size = np.prod([u.shape[1] for u in self.loadings_])
        return explained / (explained + size * self.noise_variances_)

    # -- for the published names and for notebooks -----------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_) * super()._n_features_out

    def _cores_of(self, samples: Samples) -> tuple[int, ...]:
        """The shape of the cores of one sample under all components."""
        return (*self._rows_of(samples), len(self.weights_), *self.rank_)

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield "samples", " × ".join(map(str, self.sample_shape_ or self.model_.shape))
        yield "cores", " × ".join(map(str, self.rank_))
        yield "components", str(len(self.weights_))
        yield (
            "weights",
            ", ".join(f"{w:.3g}" for w in self.weights_[:12]) + (", …" if len(self.weights_) > 12 else ""),
        )
        yield "noise variances", ", ".join(f"{v:.3g}" for v in self.noise_variances_[:12])
        if self.degrees_of_freedom_ is not None:
            yield "degrees of freedom", ", ".join(f"{v:.3g}" for v in self.degrees_of_freedom_[:12])
        yield "mean log-likelihood", f"{self.lower_bound_:.6g}"
        for event in self.history_.events:
            if event["event"] == "default_rank":
                half = " × ".join(map(str, event["half"]))
                yield (
                    "variance kept",
                    f"{event['kept']:.0%} with the default rank; about {event['half_keeps']:.0%} with cores of {half}",
                )
        yield "iterations", f"{self.n_iter_} ({self.history_.stop or 'unknown'})"
        if self.passes_:
            yield "passes", f"{self.passes_:.1f}"

    def _pictures(self) -> np.ndarray:
        return self.means_


def _named(axis: str | tuple[str, str]) -> str:
    """A name with its unit, if it has one, in brackets."""
    return axis if isinstance(axis, str) else f"{axis[0]} ({axis[1]})" if axis[1] else axis[0]
