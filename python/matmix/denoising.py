"""Images without their noise, by a mixture over their patches."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from . import _matmix
from ._elements import check_array
from ._validation import Seed, Sides
from .patches import OF_EVERY_PATCH_MODEL, PatchModel

if TYPE_CHECKING:
    from typing_extensions import Self


class PatchDenoiser(PatchModel):
    """Takes noise out of images: the mean of the posterior means of all patches over a pixel.

    Parameters
    ----------
    n_components : int, default=16
        K of the mixture over patches, whose means have been taken off.
    rank : int or sequence of int, optional
        The sides of its cores; 5 per mode by default.
    size : int or sequence of int, default=8
        The sides of the patches.
    max_patches : int, default=20000
        The mixture is fitted to so many patches, drawn at random.
    iterations : int, default=20
        The largest number of iterations of the fit.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    mixture_ : the mixture over patches without noise
    sigma_ : float or None
        The noise that `fit_noisy` was told of, or found.

    Examples
    --------
    >>> import matmix, numpy as np
    >>> X, _ = matmix.datasets.load_digits28(return_X_y=True)
    >>> clean = X[:200] / 255
    >>> model = matmix.PatchDenoiser(8, size=7, random_state=0).fit(clean[:150])
    >>> noisy = clean[150:] + np.random.default_rng(0).normal(scale=0.2, size=(50, 28, 28))
    >>> error = np.mean((model.denoise(noisy, sigma=0.2) - clean[150:]) ** 2)
    >>> bool(error < 0.4 * 0.2**2)
    True
    """

    _kind = "patch_denoiser"
    _parameter_constraints: ClassVar[dict[str, Any]] = dict(OF_EVERY_PATCH_MODEL)

    def __init__(
        self,
        n_components: int = 16,
        rank: Sides = None,
        *,
        size: Any = 8,
        max_patches: int = 20_000,
        iterations: int = 20,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.rank = rank
        self.size = size
        self.max_patches = max_patches
        self.iterations = iterations
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fits the mixture to patches of images without noise, shape (N, p_1, ..., p_D)."""
        return self._fit(X, None)

    def fit_noisy(self, X: ArrayLike, sigma: float | None = None) -> Self:
        """Fits the mixture to patches of noisy images, which may be those that are to be denoised.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D)
        sigma : float, optional
            The standard deviation of the noise; estimated if not given.

        Returns
        -------
        self
        """
        return self._fit(X, estimate_sigma(X) if sigma is None else float(sigma))

    def _fit(self, X: ArrayLike, sigma: float | None) -> Self:
        samples, options = self._fitting(X)
        self.model_ = _matmix.fit_patch_denoiser(
            samples.array,
            samples.shape,
            scale=samples.scale,
            noise=sigma,
            options=options,
        )
        self.sigma_ = sigma
        return self

    def denoise(self, X: ArrayLike, sigma: float | None = None) -> np.ndarray:
        """Images without their noise, in the shape they came in; they may have another size than those of the fit.

        Parameters
        ----------
        X : array of shape (N, p_1, ..., p_D)
        sigma : float, optional
            The standard deviation of the noise; that of `fit_noisy`, or estimated, if not given.

        Returns
        -------
        ndarray of the shape of X
        """
        check_is_fitted(self)
        images = check_array(X)
        shape = images.shape[1:]
        scale = 1.0 if self.input_ is None else self.input_.factor(images, shape)
        if sigma is None:
            sigma = self.sigma_ if self.sigma_ is not None else _matmix.estimate_noise(images, shape, scale)
        return self.model_.denoise(images, shape, scale, float(sigma))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the file of a model of patches (``matmix fit --patches 8 --contrast kept``), whoever wrote it."""
        model, input, options = _matmix.PatchDenoiserModel.load(os.fspath(path))
        denoiser = cls()
        denoiser._adopt_file(model, input, options)
        denoiser.sigma_ = None
        return denoiser


def estimate_sigma(X: ArrayLike) -> float:
    """The standard deviation of noise that was added to every pixel, by what is left of images where they are smooth.

    Parameters
    ----------
    X : array of shape (N, p_1, ..., p_D)

    Returns
    -------
    float
    """
    images = check_array(X)
    return _matmix.estimate_noise(images, images.shape[1:], 1.0)


def denoise(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    model: PatchDenoiser | None = None,
    size: Any = 8,
    n_components: int = 16,
    rank: Sides = None,
    random_state: Seed = 0,
) -> np.ndarray:
    """One image without its noise.

    Parameters
    ----------
    image : array of shape (p_1, ..., p_D)
        Grey (rows, columns), with colours as a third axis, or a volume.
    sigma : float, optional
        The standard deviation of the noise; estimated if not given.
    model : PatchDenoiser, optional
        Fitted to images without noise. Without one, a mixture is fitted to the noisy image itself.
    size, n_components, rank, random_state
        Of that mixture, as of `PatchDenoiser`.

    Returns
    -------
    ndarray of the shape of `image`

    Examples
    --------
    >>> import matmix, numpy as np
    >>> rows, columns = np.mgrid[:64, :64]
    >>> clean = ((rows // 8 + columns // 16) % 2).astype(float)
    >>> noisy = clean + np.random.default_rng(0).normal(scale=0.2, size=clean.shape)
    >>> bool(np.mean((matmix.denoise(noisy) - clean) ** 2) < 0.2 * 0.2**2)
    True
    """
    one = check_array(image, what="image")[np.newaxis]
    if model is None:
        model = PatchDenoiser(n_components, rank, size=size, random_state=random_state).fit_noisy(one, sigma)
    return model.denoise(one, sigma)[0]
