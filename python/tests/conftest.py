"""Data that many tests use."""

import signal

import matmix
import numpy as np
import pytest


@pytest.fixture(scope="session")
def digits():
    """300 digits of three classes and their classes."""
    X, y = matmix.datasets.load_digits28(return_X_y=True)
    chosen = np.isin(y, (0, 1, 7))
    return X[chosen], y[chosen]


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C interrupts: a shell starts what runs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def fitted(digits):
    """A mixture that must not be changed."""
    return matmix.Mixture(3, rank=(4, 3), random_state=0).fit(digits[0])
