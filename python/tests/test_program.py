"""The program that the package brings along."""

import json
import os
import subprocess
import sys
import warnings

import matmix
import numpy as np
import pytest
from same_bits import assert_same_parameters
from sklearn.base import clone

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


MODULE = COMMANDS[0]


def in_the_shell(*arguments):
    done = run(MODULE, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_model_of_the_shell_is_fitted_again_as_it_was(tmp_path):
    X = np.random.default_rng(1).normal(size=(80, 5, 4)) + 5 * (np.arange(80) % 2)[:, None, None]
    X[3, 2, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    how = "-k 2 -r 2x3 --noise t --dof shared --missing nan --init random --seed 11 --tol 1e-3 --max-iter 7 --n-init 2"
    more = "--stop error --no-acceleration --no-stages --search none --precision double --noise-floor 1e-5 --prune"
    in_the_shell("fit", tmp_path / "x.npy", *how.split(), *more.split(), "-o", tmp_path / "m.mm")
    model = matmix.load(tmp_path / "m.mm")
    asked = {
        **{"n_components": 2, "rank": (2, 3), "noise": "t", "dof": "shared", "missing": "nan", "init_params": "random"},
        **{"random_state": 11, "tol": 1e-3, "max_iter": 7, "n_init": 2, "stop": "error", "accelerate": False},
        **{"stages": False, "search": "none", "precision": "double", "noise_floor": 1e-5, "prune": True},
    }
    assert {name: model.get_params()[name] for name in asked} == asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", matmix.ConvergenceWarning)
        again = clone(model).fit(X)
    assert_same_parameters(again, model)


def test_a_fit_warns_in_the_same_words_everywhere(tmp_path):
    X = np.random.default_rng(2).normal(size=(60, 4, 3))
    X[30:] += 4
    np.save(tmp_path / "x.npy", X)
    model = matmix.Mixture(2, rank=1, noise_floor=0.99, max_iter=2, init_params="random", search="none", random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    assert {warning.category for warning in caught} == {matmix.ConvergenceWarning}
    assert {warning.filename for warning in caught} == {__file__}
    unconverged, floor = (str(warning.message) for warning in caught)
    assert unconverged.startswith("the fit has not converged: ")
    assert floor.startswith("noise variance at its floor in components 0 and 1: ")
    how = [
        "-k",
        2,
        "-r",
        1,
        "--noise-floor",
        0.99,
        "--max-iter",
        2,
        "--init",
        "random",
        "--search",
        "none",
        "--seed",
        0,
    ]
    done = run(MODULE, "fit", tmp_path / "x.npy", *how, "-o", tmp_path / "m.mm")
    told = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert told == [f"warning: {unconverged}", f"warning: {floor}"]
    in_the_shell("report", tmp_path / "m.mm", tmp_path / "x.npy", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert unconverged[1:] + "." in page
    assert floor[1:] + "." in page
    # tol=0 asks for all iterations.
    done = run(MODULE, "fit", tmp_path / "x.npy", *how, "--tol", 0, "-o", tmp_path / "m.mm")
    assert [line for line in done.stderr.splitlines() if line.startswith("warning: ")] == [f"warning: {floor}"]
    with pytest.warns(matmix.ConvergenceWarning, match="^noise variance at its floor") as caught:
        model.set_params(tol=0).fit(X)
    assert len(caught) == 1


def test_every_command_that_writes_a_model_says_how_it_was_fitted(tmp_path):
    demo = ["demo:mnist", "--limit", 120, "--max-iter", 3, "--tol", 0, "--seed", 5]
    in_the_shell("select", *demo, "-k", "1..2", "--rank", 2, "--folds", 1, "-o", tmp_path / "select.mm")
    in_the_shell("fit", *demo, "-k", "1..2", "-r", 2, "-o", tmp_path / "fit.mm")
    in_the_shell("cluster", *demo, "-k", "1..2", "-r", 2, "-o", tmp_path)
    for name in ("select.mm", "fit.mm", "model.mm"):
        told = json.loads(in_the_shell("info", tmp_path / name, "--json"))
        assert None not in told["options"].values() and "threads" not in told["options"]
        model = matmix.load(tmp_path / name)
        assert (model.n_components, model.rank) == (told["n_components"], tuple(told["rank"]))
        assert (model.random_state, model.max_iter, model.tol) == (5, 3, 0)


def test_other_models_of_the_shell_keep_their_options(tmp_path):
    few = ["demo:mnist", "--limit", 60]
    in_the_shell("fit", *few, "--model", "glram", "-r", "3x2", "--max-iter", 7, "--tol", 1e-3, "-o", tmp_path / "g.mm")
    glram = matmix.load(tmp_path / "g.mm")
    assert (type(glram), glram.rank, glram.max_iter, glram.tol) == (matmix.GLRAM, (3, 2), 7, 1e-3)
    patches = ["--patches", 6, "--stride", 3, "-k", 2, "-r", 2, "--max-iter", 3, "--tol", 0, "--seed", 9]
    in_the_shell("fit", *few, *patches, "-o", tmp_path / "p.mm")
    fisher = matmix.PatchFisher.load(tmp_path / "p.mm")
    assert (fisher.n_components, fisher.iterations, fisher.random_state) == (2, 3, 9)


def test_the_shell_tells_how_python_fitted(tmp_path):
    X = matmix.datasets.load_digits28().data[:100]
    model = matmix.Mixture(2, rank=3, noise="t", random_state=7, tol=0, max_iter=3).fit(X)
    model.save(tmp_path / "m.mm")
    told = in_the_shell("info", tmp_path / "m.mm")
    for fact in ("components 2", "rank [3]", "noise t", "seed 7", "tol 0.0", "max_iter 3", "start kmeans"):
        assert f"{fact}," in told or f"{fact}\n" in told, fact
    assert "python" not in told and "null" not in told
    # Read and written again, with other plans for the next fit, it still says how it was fitted.
    again = matmix.load(tmp_path / "m.mm").set_params(random_state=8)
    again.save(tmp_path / "again.mm")
    assert in_the_shell("info", tmp_path / "again.mm") == told
    # A seed that was drawn is known, too, and what was chosen.
    auto = matmix.Mixture("auto", rank=2, tol=0, max_iter=2).fit(X)
    auto.save(tmp_path / "auto.mm")
    options = json.loads(in_the_shell("info", tmp_path / "auto.mm", "--json"))["options"]
    assert options["components"] == len(auto.weights_) and options["seed"] > 0
    for other in (matmix.LowRank(rank=3, tol=0.5), matmix.PatchFisher(2, rank=2, iterations=2, random_state=4)):
        other.fit(X).save(tmp_path / "other.mm")
        told = in_the_shell("info", tmp_path / "other.mm")
        assert ("tol 0.5" if isinstance(other, matmix.LowRank) else "seed 4") in told and "python" not in told


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
