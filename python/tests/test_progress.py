"""Callbacks, progress lines and Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import matmix
import numpy as np
import pytest


def test_a_callback_sees_every_iteration_on_the_calling_thread(digits):
    seen = []

    def callback(progress):
        assert threading.current_thread() is threading.main_thread()
        if progress.step is None:
            seen.append((progress.restart, progress.iteration, progress.log_likelihood, progress.passes))
        assert progress.seconds > 0
        assert "iteration=" in repr(progress) and progress.max_iter == 4 and progress.n_init == 2

    model = matmix.Mixture(3, rank=2, random_state=0, n_init=2, max_iter=4, tol=0, callback=callback)
    model.fit(digits[0])
    assert [s[:2] for s in seen] == [(r, i) for r in range(2) for i in range(5)]
    kept = [s[2] for s in seen if s[0] == model.history_.restart]
    assert kept == model.lower_bounds_
    # Of all restarts, whichever was kept.
    assert [s[3] for s in seen] == sorted(s[3] for s in seen) and seen[-1][3] == model.passes_ == model.history_.passes
    rate = len(digits[0]) * model.passes_ / model.history_.seconds
    assert model.history_.samples == len(digits[0]) and model.history_.samples_per_second == pytest.approx(rate)


def test_a_low_rank_model_counts_its_passes(digits):
    model = matmix.GLRAM(rank=4).fit(digits[0])
    # One to begin with, and one per mode of every alternation.
    assert model.passes_ == model.history_.passes >= 2 * model.n_iter_
    assert model.history_.samples_per_second > 0
    assert np.isnan(matmix._base.History().samples_per_second)


@pytest.mark.parametrize("threads", [None, 1])
def test_a_callback_can_stop_the_fit(digits, threads):
    def stop(progress):
        return progress.iteration == 3

    def raise_stop(progress):
        if progress.iteration == 3:
            raise StopIteration

    for callback in (stop, raise_stop):
        model = matmix.Mixture(3, rank=2, random_state=0, callback=callback, n_threads=threads).fit(digits[0])
        assert model.n_iter_ == 3 and model.history_.stop == "stopped" and not model.converged_


def test_an_exception_of_the_callback_is_raised(digits):
    def callback(progress):
        raise KeyError("mine")

    model = matmix.Mixture(callback=callback)
    with pytest.raises(KeyError, match="mine"):
        model.fit(digits[0])
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("threads", [None, 1])
def test_ctrl_c_keeps_the_model(digits, threads):
    X = np.tile(digits[0], (10, 1, 1))
    model = matmix.Mixture(4, rank=4, random_state=0, max_iter=100_000, tol=0, n_threads=threads)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(matmix.FitInterruptedWarning, match="the model so far is kept"):
        model.fit(X)
    timer.join()
    assert model.history_.stop == "stopped" and model.n_iter_ < 100_000
    assert np.isfinite(model.score(X))


def test_ctrl_c_twice_does_not_wait_for_the_iteration(digits):
    X = np.tile(digits[0], (100, 1, 1))
    # Components that all explain every sample: none of them can be left out.
    options = {"rank": 6, "init_params": "random", "search": "none", "random_state": 0, "tol": 0}

    def seconds_of_an_iteration(n_components):
        times = []
        options.update(n_components=n_components, callback=lambda _: times.append(time.monotonic()))
        matmix.Mixture(**options, max_iter=1).fit(X)
        return times[-1] - times[-2]

    # An iteration that is long beside what a signal takes, however fast the machine.
    n_components = 60
    while (iteration := seconds_of_an_iteration(n_components)) < 1.5:
        assert n_components < 2000, f"{n_components} components take only {iteration} s"
        n_components *= 2
    threads, pressed = [], []

    def interrupt():
        for _ in range(2):
            time.sleep(iteration / 6)
            os.kill(os.getpid(), signal.SIGINT)
        pressed.append(time.monotonic())

    def callback(_):
        threads.append(threading.Thread(target=interrupt))
        threads[-1].start()

    try:
        with pytest.raises(KeyboardInterrupt):
            matmix.Mixture(**{**options, "callback": callback}, max_iter=2).fit(X)
        ended = time.monotonic()
    finally:
        for thread in threads:
            thread.join()
    assert len(pressed) == 1 and ended - pressed[0] < iteration / 3, f"an iteration takes {iteration} s"


def test_other_signals_are_raised(digits):
    def handler(signum, frame):
        raise TimeoutError("too long")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(TimeoutError, match="too long"):
            matmix.Mixture(3, rank=4, random_state=0, max_iter=1_000_000, tol=0).fit(digits[0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_verbose(digits, capfd, monkeypatch):
    model = matmix.Mixture(2, rank=2, random_state=0, max_iter=3, tol=0, verbose=1)
    model.fit(digits[0])
    assert "log-likelihood" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    model.fit(digits[0])
    last = capfd.readouterr().err.split("\r")[-1]
    assert last.startswith("iteration 3/3, log-likelihood ") and f", {model.passes_:.1f} passes at " in last
    assert last.rstrip().endswith(" samples/s")


def test_other_threads_run_during_a_fit(digits):
    X = np.tile(digits[0], (10, 1, 1))
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    matmix.Mixture(3, rank=4, random_state=0, max_iter=15, tol=0, n_threads=1).fit(X)
    done.set()
    thread.join()
    assert counted > 5


def test_what_is_optional_is_not_needed():
    """Without matplotlib, tqdm and a cluster the package imports, fits, answers and is copied."""
    script = textwrap.dedent("""
        import sys
        for name in ("matplotlib", "tqdm", "distributed", "h5py"):
            sys.modules[name] = None
        import copy, pickle, numpy as np, matmix
        X, y = matmix.datasets.load_digits28(return_X_y=True)
        model = matmix.Mixture(2, rank=3, random_state=0, max_iter=5, tol=0)
        assert repr(model) == "Mixture(max_iter=5, n_components=2, random_state=0, rank=3, tol=0)", repr(model)
        try:
            model.predict(X)
        except matmix.NotFittedError as error:
            assert isinstance(error, ValueError)
        else:
            raise AssertionError
        assert model.fit_transform(X).shape == (1000, 18)
        assert model.set_params(rank=2).get_params()["rank"] == 2
        assert pickle.loads(pickle.dumps(model)).score(X) == model.score(X)
        assert len(model.get_feature_names_out()) == 18
        nearest = matmix.NearestCore(matmix.LowRank(5)).fit(X[::2], y[::2])
        assert copy.deepcopy(nearest).score(X[1::2], y[1::2]) > 0.8
        nearest.set_params(estimator__rank=3)
        assert matmix.TwoDPCA(2).fit(X).transform(X).shape == (1000, 28, 2)
        try:
            matmix.plot.means(model)
        except ImportError:
            pass
        else:
            raise AssertionError
    """)
    subprocess.run([sys.executable, "-c", script], check=True)
