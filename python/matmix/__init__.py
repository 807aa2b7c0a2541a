"""Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.

>>> import matmix
>>> X, y = matmix.datasets.load_digits28(return_X_y=True)
>>> model = matmix.Mixture(n_components=3, rank=4, random_state=0).fit(X)
>>> model.means_.shape
(3, 28, 28)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._matmix import Input, Progress, __version__

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning, NotFittedError

    from . import datasets, plot
    from ._base import History
    from ._blocks import Parts
    from ._choosing import Choice
    from ._files import load
    from .classifier import MixtureClassifier
    from .denoising import PatchDenoiser, denoise, estimate_sigma
    from .low_rank import LowRank
    from .mixture import FitInterruptedWarning, Mixture, Posterior
    from .nearest import NearestCore
    from .outliers import OutlierDetector
    from .patches import Patches, PatchFisher, PatchRecognizer
    from .published import GLRAM, MP2DPCA, MPCA, PPCA, PSOPCA, MixB2DPPCA, MixPPCA, TwoDPCA
    from .selection import Selection, select

# Modules are imported when they are first needed: scikit-learn takes a second, and the program begins here, too.
_HOME = {
    "sklearn.exceptions": ["ConvergenceWarning", "NotFittedError"],
    "._base": ["History"],
    "._blocks": ["Parts"],
    "._choosing": ["Choice"],
    "._files": ["load"],
    ".classifier": ["MixtureClassifier"],
    ".denoising": ["PatchDenoiser", "denoise", "estimate_sigma"],
    ".low_rank": ["LowRank"],
    ".mixture": ["FitInterruptedWarning", "Mixture", "Posterior"],
    ".nearest": ["NearestCore"],
    ".outliers": ["OutlierDetector"],
    ".patches": ["PatchFisher", "PatchRecognizer", "Patches"],
    ".published": ["GLRAM", "MP2DPCA", "MPCA", "PPCA", "PSOPCA", "MixB2DPPCA", "MixPPCA", "TwoDPCA"],
    ".selection": ["Selection", "select"],
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}
_MODULE |= {name: f".{name}" for name in ("datasets", "plot")}

__all__ = [
    "GLRAM",
    "MP2DPCA",
    "MPCA",
    "PPCA",
    "PSOPCA",
    "Choice",
    "ConvergenceWarning",
    "FitInterruptedWarning",
    "History",
    "Input",
    "LowRank",
    "MixB2DPPCA",
    "MixPPCA",
    "Mixture",
    "MixtureClassifier",
    "NearestCore",
    "NotFittedError",
    "OutlierDetector",
    "Parts",
    "PatchDenoiser",
    "PatchFisher",
    "PatchRecognizer",
    "Patches",
    "Posterior",
    "Progress",
    "Selection",
    "TwoDPCA",
    "__version__",
    "datasets",
    "denoise",
    "estimate_sigma",
    "load",
    "plot",
    "select",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_MODULE[name], __name__)
    found = module if _MODULE[name] == f".{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
