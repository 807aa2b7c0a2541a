"""Mixtures of bilateral probabilistic PCA for samples that are matrices or tensors.

>>> import matmix
>>> X, y = matmix.datasets.load_digits28(return_X_y=True)
>>> model = matmix.Mixture(n_components=3, rank=4, random_state=0).fit(X)
>>> model.means_.shape
(3, 28, 28)
"""

from sklearn.exceptions import ConvergenceWarning, NotFittedError

from . import datasets, plot
from ._base import History
from ._blocks import Parts
from ._choosing import Choice
from ._files import load
from ._matmix import Input, Progress, __version__
from .denoising import PatchDenoiser, denoise, estimate_sigma
from .low_rank import LowRank
from .mixture import FitInterruptedWarning, Mixture, Posterior
from .nearest import NearestCore
from .outliers import OutlierDetector
from .patches import Patches, PatchFisher, PatchRecognizer
from .published import GLRAM, MP2DPCA, MPCA, PPCA, PSOPCA, MixB2DPPCA, MixPPCA, TwoDPCA
from .selection import Selection, select

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
