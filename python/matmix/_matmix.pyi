"""The native part of matmix. Arrays are C-contiguous u8, f32 or f64; `shape` is that of one sample."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CHOICES",
    "DEFAULTS",
    "PRESETS",
    "Elsewhere",
    "Input",
    "LowRankModel",
    "MixtureModel",
    "PatchDenoiserModel",
    "PatchFisherModel",
    "PatchGallery",
    "PatchWindows",
    "Preset",
    "Progress",
    "Question",
    "Recognizer",
    "SumTree",
    "__version__",
    "count_skipped",
    "default_preset",
    "described",
    "detector_size",
    "digits",
    "estimate_noise",
    "files_of",
    "fit_batch",
    "fit_low_rank",
    "fit_mixture",
    "fit_patch_denoiser",
    "fit_patch_fisher",
    "fit_warnings",
    "load_model",
    "merge_sums",
    "open",
    "program",
    "run_task",
    "select_mixture",
    "tree_levels",
    "wanted_rows",
]

__version__: str
CHOICES: dict[str, list[str]]
DEFAULTS: str
PRESETS: dict[str, Preset]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Reading = tuple[tuple[int, int] | None, bool, str | None, NDArray[np.bool_] | None]
_Opened = tuple[NDArray[Any], tuple[_Ints, list[str]] | None, str, str, _Reading]

@final
class Preset:
    """A model by the name it was published under."""

    @property
    def name(self) -> str: ...
    @property
    def is_mixture(self) -> bool: ...
    @property
    def takes_vectors(self) -> bool: ...
    @property
    def flattens(self) -> bool: ...

@final
class Input:
    """What a model takes for input: the shape, the values and, for images, how they are read."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def scale(self) -> float: ...
    @property
    def dtype(self) -> str: ...
    @property
    def range(self) -> tuple[float, float] | None: ...
    @property
    def resize(self) -> tuple[int, int] | None: ...
    @property
    def colour(self) -> bool: ...
    @property
    def patches(self) -> tuple[list[int], list[int]] | None: ...
    @property
    def missing(self) -> str | None: ...
    @property
    def mask(self) -> NDArray[np.bool_] | None: ...
    @property
    def like_contrast(self) -> bool: ...
    def factor(self, x: NDArray[Any] | Elsewhere, shape: Sequence[int]) -> float: ...
    def hides(self, shape: Sequence[int], told: bool) -> bool: ...
    def observed(self, x: NDArray[Any], shape: Sequence[int], told: bool) -> NDArray[Any]: ...
    @staticmethod
    def of(
        x: NDArray[Any] | Elsewhere,
        shape: Sequence[int],
        scale: float,
        *,
        resize: tuple[int, int] | None = None,
        colour: bool = False,
        missing: str | None = None,
        mask: NDArray[np.bool_] | None = None,
    ) -> Input: ...
    @staticmethod
    def from_json(json: str) -> Input: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Progress:
    """Where a fit stands."""

    @property
    def restart(self) -> int: ...
    @property
    def n_init(self) -> int: ...
    @property
    def iteration(self) -> int: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def share(self) -> float: ...
    @property
    def passes(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def log_likelihood(self) -> float: ...
    @property
    def reconstruction_error(self) -> float: ...
    @property
    def step(self) -> str | None: ...
    @property
    def n_components(self) -> int | None: ...

@final
class MixtureModel:
    """A fitted mixture."""

    @property
    def shape(self) -> list[int]: ...
    @property
    def rank(self) -> list[int]: ...
    @property
    def weights(self) -> _Floats: ...
    @property
    def parameters(self) -> dict[str, _Floats | list[_Floats] | None]: ...
    @property
    def classes(self) -> tuple[list[str], _Ints] | None: ...
    @property
    def n_parameters(self) -> int: ...
    def question(self, names: Sequence[str]) -> Question: ...
    def supported(self, history: str) -> tuple[MixtureModel, str | None]: ...
    def recognizer(self, answers: _Floats, classes: _Ints, distance: str) -> Recognizer: ...
    def inverse_transform(self, cores: _Floats) -> _Floats: ...
    def rebuild(self, cores: _Floats, components: _Ints) -> _Floats: ...
    def report(
        self,
        x: NDArray[Any],
        shape: Sequence[int],
        preset: str | None = None,
        *,
        scale: float,
        path: str,
        options: str,
        labels: list[str] | None,
        axes: list[str],
        value: str,
        recognize: str | None,
        held_out: tuple[NDArray[Any], Sequence[int], float] | None,
        history: str,
        missing: str = "error",
    ) -> None: ...
    def posterior_variance(self) -> _Floats: ...
    def evaluate(
        self,
        x: NDArray[Any] | Elsewhere,
        shape: Sequence[int],
        preset: str | None = None,
        *,
        scale: float = 1.0,
        missing: str = "error",
        device: str = "cpu",
    ) -> tuple[float, float, float, float]: ...
    def impute(
        self,
        x: NDArray[Any],
        shape: Sequence[int],
        preset: str | None = None,
        *,
        scale: float = 1.0,
        temper: str = "auto",
    ) -> tuple[_Floats, _Floats, int]: ...
    def impute_draws(
        self,
        x: NDArray[Any],
        shape: Sequence[int],
        preset: str | None = None,
        *,
        scale: float = 1.0,
        draws: int,
        seed: int,
        temper: str = "auto",
    ) -> _Floats: ...
    def sample(self, n: int, seed: int, noise: bool) -> tuple[_Floats, _Ints]: ...
    def scale_matrix(self, component: int) -> _Floats: ...
    def covariance(self, component: int) -> _Floats: ...
    def save(self, path: str, name: str | None, input: Input | None, options: str, history: str) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> MixtureModel: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class LowRankModel:
    """A fitted low-rank model."""

    @property
    def shape(self) -> list[int]: ...
    @property
    def rank(self) -> list[int]: ...
    @property
    def mean(self) -> _Floats: ...
    @property
    def loadings(self) -> list[_Floats]: ...
    @property
    def explained_variance(self) -> list[_Floats]: ...
    @property
    def explained_variance_ratio(self) -> list[_Floats]: ...
    def question(self, names: Sequence[str]) -> Question: ...
    def recognizer(self, answers: _Floats, classes: _Ints, distance: str) -> Recognizer: ...
    def inverse_transform(self, cores: _Floats) -> _Floats: ...
    def save(self, path: str, name: str | None, input: Input | None, options: str, history: str) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> LowRankModel: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Question:
    """Some questions to a model about every sample; pickled, the bytes of a pass."""

    def answers(
        self,
        x: NDArray[Any],
        shape: Sequence[int],
        *,
        preset: str | None = None,
        scale: float = 1.0,
        first: int = 0,
        threads: int | None = None,
        missing: str = "error",
        device: str = "cpu",
    ) -> _Floats: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Question: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Recognizer:
    """Known samples by what was answered about them."""

    @property
    def distance(self) -> str: ...
    def neighbours(self, answers: _Floats, count: int) -> tuple[_Floats, _Ints, _Ints]: ...
    @staticmethod
    def from_bytes(bytes: bytes, components: int | None) -> Recognizer: ...

@final
class Elsewhere:
    """Samples that a callable runs passes over: bytes of a task in, bytes of its sums out."""

    def __new__(
        cls,
        run: Callable[[bytes], bytes],
        abandon: Callable[[], object],
        n: int,
        dtype: str,
        scale: float = 1.0,
        missing: str = "error",
    ) -> Elsewhere: ...

@final
class SumTree:
    """The sums of parts that come one after the other, added as `tree_levels` says."""

    def __new__(cls) -> SumTree: ...
    def push(self, sums: bytes) -> None: ...
    def finish(self) -> bytes: ...

@final
class PatchWindows:
    """Which windows of images are samples, and what is done to them."""

    def __new__(
        cls,
        x: NDArray[Any],
        shape: Sequence[int],
        *,
        size: Sequence[int],
        stride: Sequence[int],
        contrast: str,
        count: int | None,
        seed: int,
    ) -> PatchWindows: ...
    def shape_of(self, x: NDArray[Any], shape: Sequence[int]) -> tuple[list[int], str]: ...
    def cut(self, x: NDArray[Any], shape: Sequence[int], first: int, end: int) -> NDArray[Any]: ...

@final
class PatchFisherModel:
    """A mixture over the patches of images, and a grid."""

    @property
    def mixture(self) -> MixtureModel: ...
    @property
    def patches(self) -> tuple[list[int], list[int]]: ...
    @property
    def grid(self) -> int: ...
    def width(self, shape: Sequence[int]) -> int: ...
    def features(self, x: NDArray[Any], shape: Sequence[int], scale: float) -> NDArray[np.float32]: ...
    def save(self, path: str, input: Input, options: str) -> None: ...
    @staticmethod
    def load(path: str, grid: int) -> tuple[PatchFisherModel, Input | None, str]: ...
    @staticmethod
    def from_parts(bytes: bytes, patches: str, grid: int) -> PatchFisherModel: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class PatchGallery:
    """A gallery of known images, compared by their patches."""

    def __new__(
        cls,
        fisher: PatchFisherModel,
        x: NDArray[Any],
        shape: Sequence[int],
        scale: float,
        classes: _Ints,
        names: Sequence[str],
        ridge: float,
    ) -> PatchGallery: ...
    def save(self, path: str, input: Input, options: str) -> None: ...
    @staticmethod
    def load(path: str) -> tuple[PatchGallery, PatchFisherModel, list[str], Input | None, str]: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> PatchGallery: ...
    def neighbours(self, x: NDArray[Any], shape: Sequence[int], scale: float, count: int) -> tuple[_Floats, _Ints]: ...
    def predict(self, x: NDArray[Any], shape: Sequence[int], scale: float) -> _Ints: ...
    def scores(self, x: NDArray[Any], shape: Sequence[int], scale: float) -> _Floats: ...

@final
class PatchDenoiserModel:
    """A mixture over patches without noise."""

    @property
    def mixture(self) -> MixtureModel: ...
    def denoise(self, x: NDArray[Any], shape: Sequence[int], scale: float, noise: float) -> _Floats: ...
    def save(self, path: str, input: Input, options: str) -> None: ...
    @staticmethod
    def load(path: str) -> tuple[PatchDenoiserModel, Input | None, str]: ...
    @staticmethod
    def from_parts(bytes: bytes, patches: str, grid: int) -> PatchDenoiserModel: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def fit_mixture(
    x: NDArray[Any] | Elsewhere,
    shape: Sequence[int],
    *,
    preset: str | None,
    weights: _Floats | None,
    scale: float,
    options: str,
    start: str | MixtureModel,
    device: str,
    callback: Callable[[Progress], Any] | None,
    classes: _Ints | None = None,
) -> tuple[MixtureModel, str, bool]: ...
def select_mixture(
    x: NDArray[Any] | Elsewhere,
    shape: Sequence[int],
    *,
    preset: str | None,
    weights: _Floats | None,
    scale: float,
    options: str,
    selection: str,
    callback: Callable[[Progress], Any] | None,
) -> tuple[MixtureModel, str, bool]: ...
def detector_size(
    x: NDArray[Any] | Elsewhere,
    shape: Sequence[int],
    *,
    preset: str,
    weights: _Floats | None,
    scale: float,
    options: str,
) -> tuple[int, int, bool]: ...
def fit_batch(
    x: NDArray[Any],
    shape: Sequence[int],
    *,
    preset: str | None,
    weights: _Floats | None,
    scale: float,
    options: str,
    start: str | MixtureModel,
    device: str,
    model: MixtureModel | None,
    batches: int,
) -> tuple[MixtureModel, int, float]: ...
def fit_low_rank(
    x: NDArray[Any] | Elsewhere,
    shape: Sequence[int],
    *,
    preset: str | None,
    weights: _Floats | None,
    scale: float,
    options: str,
) -> tuple[LowRankModel, list[float], float, str]: ...
def program(arguments: Sequence[str]) -> int: ...
def run_task(
    task: bytes,
    x: NDArray[Any],
    shape: Sequence[int],
    *,
    preset: str | None,
    weights: _Floats | None,
    scale: float,
    first: int,
    threads: int | None,
    missing: str = "error",
    classes: _Ints | None = None,
    device: str = "cpu",
) -> bytes: ...
def merge_sums(sums: Sequence[bytes]) -> bytes: ...
def default_preset(order: int, components: int) -> str: ...
def described(options: str, start: str | MixtureModel) -> str: ...
def fit_warnings(stop: str, events: str) -> tuple[str | None, list[str]]: ...
def tree_levels(parts: int) -> list[list[tuple[int, int]]]: ...
def wanted_rows(task: bytes, shape: Sequence[int], preset: str | None) -> list[int] | None: ...
def count_skipped(sums: bytes, skipped: int, shape: Sequence[int], preset: str | None) -> bytes: ...
def files_of(spec: str) -> list[Path]: ...
def open(
    spec: str,
    *,
    options: str,
    like: Input | None,
) -> _Opened: ...
def digits() -> _Opened: ...
def load_model(path: str) -> tuple[MixtureModel | LowRankModel, str | None, Input | None, str, str, bool]: ...
def fit_patch_fisher(
    x: NDArray[Any],
    shape: Sequence[int],
    *,
    scale: float,
    options: str,
) -> PatchFisherModel: ...
def fit_patch_denoiser(
    x: NDArray[Any],
    shape: Sequence[int],
    *,
    scale: float,
    noise: float | None,
    options: str,
) -> PatchDenoiserModel: ...
def estimate_noise(x: NDArray[Any], shape: Sequence[int], scale: float) -> float: ...
