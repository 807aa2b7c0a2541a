"""The same numbers from Python, from Rust and from the shell, to the last bit."""

import os
import shutil
import subprocess
from pathlib import Path

import matmix
import numpy as np
import pytest
from same_bits import assert_same_parameters

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {"n_components": 3, "rank": 4, "max_iter": 20, "tol": 0, "random_state": 7}


@pytest.fixture(scope="module")
def ours():
    X, _ = matmix.datasets.load_digits28(return_X_y=True)
    return matmix.Mixture(**OPTIONS).fit(X)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo to run the Rust example")
def test_rust(ours, tmp_path):
    path = tmp_path / "rust.safetensors"
    # As `make test-rust` has built it: how much is optimised does not change a bit.
    command = ["cargo", "run", "--quiet", "--features", "matmix/ndarray", "--example", "fit_digits", "--", str(path)]
    subprocess.run([*command, "3", "4", "20", "7"], cwd=ROOT, check=True, capture_output=True)
    theirs = matmix.Mixture.load(path)
    assert_same_parameters(ours, theirs)
    X, _ = matmix.datasets.load_digits28(return_X_y=True)
    assert theirs.score_samples(X).tobytes() == ours.score_samples(X).tobytes()


@pytest.mark.skipif("MATMIX_BIN" not in os.environ, reason="MATMIX_BIN does not name the program")
def test_shell(ours, tmp_path):
    path = tmp_path / "shell.safetensors"
    program = [os.environ["MATMIX_BIN"], "fit", "demo:mnist", "-o", str(path)]
    options = ["--components", "3", "--rank", "4", "--max-iter", "20", "--tol", "0", "--seed", "7"]
    done = subprocess.run([*program, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_same_parameters(ours, matmix.Mixture.load(path))


def test_a_file_keeps_every_bit(ours, tmp_path):
    ours.save(tmp_path / "a.safetensors")
    assert_same_parameters(ours, matmix.load(tmp_path / "a.safetensors"))
    np.testing.assert_array_equal(
        ours.sample(3, random_state=1)[0],
        matmix.load(tmp_path / "a.safetensors").sample(3, random_state=1)[0],
    )
