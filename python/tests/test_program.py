"""The program that the package brings along."""

import os
import subprocess
import sys

import matmix
import numpy as np
import pytest

COMMANDS = [[sys.executable, "-m", "matmix"], [os.path.join(os.path.dirname(sys.executable), "matmix")]]


def run(command, *arguments, **options):
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("command", COMMANDS, ids=["module", "command"])
def test_the_program_comes_along(command, tmp_path):
    assert run(command, "--version").stdout == f"matmix {matmix.__version__}\n"
    fitted = ["fit", "demo:mnist", "-k", 2, "-r", 3, "--limit", 100, "--scale", "1/255", "-o", tmp_path / "m.mm"]
    done = run(command, *fitted)
    assert done.returncode == 0, done.stderr
    done = run(command, "score", tmp_path / "m.mm", "demo:mnist", "--limit", 100, "-o", tmp_path / "s.npy")
    assert done.returncode == 0, done.stderr
    X = matmix.datasets.load_digits28().data[:100]
    found = matmix.load(tmp_path / "m.mm").score_samples(X)
    assert np.allclose(found, np.load(tmp_path / "s.npy"), rtol=1e-9)


def test_errors_and_exit_codes_are_the_programs_own(tmp_path):
    command = COMMANDS[0]
    assert run(command, "fit").returncode == 2
    done = run(command, "info", tmp_path / "nothing.npy")
    assert done.returncode != 0 and done.stderr.startswith("error:") and "Traceback" not in done.stderr


def test_the_program_begins_without_scikit_learn():
    code = "import sys, matmix.__main__; print('sklearn' in sys.modules)"
    assert run([sys.executable], "-c", code).stdout == "False\n"


def test_whatever_is_promised_is_there_and_nothing_else():
    assert set(matmix.__all__) <= set(dir(matmix))
    for name in matmix.__all__:
        assert getattr(matmix, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'Mixtur'"):
        _ = matmix.Mixtur
