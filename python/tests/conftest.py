"""Data that many tests use."""

import faulthandler

import matmix
import numpy as np
import pytest


@pytest.fixture(scope="session")
def digits():
    """300 digits of three classes and their classes."""
    X, y = matmix.datasets.load_digits28(return_X_y=True)
    chosen = np.isin(y, (0, 1, 7))
    return X[chosen], y[chosen]


@pytest.fixture
def five_minutes():
    """Whatever waits for another process ends with a traceback instead of never."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def fitted(digits):
    """A mixture that must not be changed."""
    return matmix.Mixture(3, rank=(4, 3), random_state=0).fit(digits[0])
