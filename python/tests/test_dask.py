"""Dask: the same bits as in one process, whatever the number of workers and whatever was killed."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import matmix
import numpy as np
import pytest
from matmix import _blocks, _matmix
from same_bits import assert_same_bits
from sklearn.base import clone

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
from matmix import _dask  # noqa: E402

STEP = 40
OPTIONS = {"n_components": 3, "rank": 3, "random_state": 1, "max_iter": 4, "tol": 0}

pytestmark = [
    pytest.mark.filterwarnings("ignore:the fit has not converged"),
]


@pytest.fixture(scope="module")
def X(digits):
    return digits[0]


@pytest.fixture(scope="module")
def lazy(X):
    return da.from_array(X, chunks=(STEP, -1, -1))


@pytest.fixture(scope="module")
def serial(X):
    """The fit in one process, with the same parts."""
    return matmix.Mixture(**OPTIONS).fit(parts(X))


@pytest.fixture(scope="module")
def cluster():
    """Two workers of one thread each, on this machine only."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "30s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


def parts(X):
    return matmix.Parts([X[start : start + STEP] for start in range(0, len(X), STEP)])


# -- the same bits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_without_a_cluster(serial, lazy, scheduler):
    with dask.config.set(scheduler=scheduler):
        assert_same_bits(matmix.Mixture(**OPTIONS).fit(lazy), serial)


def test_on_a_cluster(serial, lazy, cluster):
    seen = []
    model = matmix.Mixture(**OPTIONS, callback=lambda progress: seen.append((progress.iteration, progress.step))).fit(
        lazy
    )
    assert_same_bits(model, serial)
    assert [iteration for iteration, step in seen if step is None] == [0, 1, 2, 3, 4]
    assert seen[0] == (0, "begin")
    again = pickle.loads(pickle.dumps(model.set_params(callback=None)))
    assert_same_bits(again, serial)


@pytest.mark.parametrize(
    "estimator",
    [
        matmix.LowRank(rank=3),
        matmix.GLRAM(rank=3),
        matmix.PPCA(rank=4, max_iter=2, tol=0),
        matmix.MP2DPCA(2, rank=3, random_state=0, max_iter=2, tol=0),
        matmix.Mixture(3, rank=3, random_state=0, max_iter=2, tol=0, n_init=2, init_params="random"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_model_on_a_cluster(X, lazy, cluster, estimator):
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    weights[STEP : 2 * STEP] = 0
    here = clone(estimator).fit(parts(X), sample_weight=weights)
    assert_same_bits(clone(estimator).fit(lazy, sample_weight=weights), here)


def test_empty_blocks_and_blocks_across_samples(X, serial):
    """Blocks that hold nothing change nothing; a sample is made whole first."""
    cut = da.from_array(X, chunks=((STEP,) * 3 + (len(X) - 3 * STEP,), (14, 14), 28)).rechunk({0: STEP})
    gaps = da.concatenate([cut[:0], cut[:STEP], cut[STEP:STEP], cut[STEP:]])
    with dask.config.set(scheduler="synchronous"):
        assert_same_bits(matmix.Mixture(**OPTIONS).fit(gaps), serial)
        np.testing.assert_array_equal(serial.transform(gaps).compute(), serial.transform(X))


def test_large_parameters_are_one_entry_of_the_graph(serial, lazy, monkeypatch):
    monkeypatch.setattr(_dask, "INLINE_BYTES", 0)
    with dask.config.set(scheduler="synchronous"):
        assert_same_bits(matmix.Mixture(**OPTIONS).fit(lazy), serial)


# -- faults ------------------------------------------------------------------------------------------------------------


def on_a_worker():
    """The pid of the worker this runs on; None where the client looks at the array."""
    try:
        distributed.get_worker()
    except ValueError:
        return None
    return os.getpid()


def once(folder, name):
    """True for the first caller of all processes."""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def test_a_worker_killed_in_the_middle_of_an_iteration(serial, lazy, cluster, tmp_path):
    pids = set(cluster.run(os.getpid).values())

    def kill_one(block, folder=tmp_path):
        # The 30th time a block is read, well within an iteration, its worker is gone; the nanny starts another one.
        if on_a_worker() is not None and len(block) and once(folder, f"read-{time.monotonic_ns()}-{os.getpid()}"):
            done = sum(1 for name in os.listdir(folder) if name.startswith("read"))
            if done >= 30 and once(folder, "killed"):
                (folder / "victim").write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
        return block

    array = lazy.map_blocks(kill_one, dtype=lazy.dtype, meta=np.empty((0, 28, 28), np.uint8))
    model = matmix.Mixture(**OPTIONS).fit(array)
    assert int((tmp_path / "victim").read_text()) in pids
    assert_same_bits(model, serial)
    cluster.wait_for_workers(2, timeout=60)


def test_a_client_killed_and_resumed(X, lazy, cluster, tmp_path):
    """SIGKILL for the client between two checkpoints; another client goes on, and the bits are the same."""
    options = {**OPTIONS, "max_iter": 12}
    for number, start in enumerate(range(0, len(X), STEP)):
        np.save(tmp_path / f"part{number:02}.npy", X[start : start + STEP])
    state = tmp_path / "state.mm"
    script = tmp_path / "client.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, signal, sys
            import distributed, matmix

            def callback(progress):
                if sys.argv[1] == "die" and progress.iteration == 7:
                    os.kill(os.getpid(), signal.SIGKILL)

            with distributed.Client({cluster.scheduler.address!r}):
                X = matmix.Parts({str(tmp_path / "part*.npy")!r}).to_dask()
                model = matmix.Mixture(
                    **{options!r}, checkpoint={str(state)!r}, checkpoint_every=3, callback=callback
                )
                model.fit(X)
                model.set_params(callback=None).save({str(tmp_path / "model.mm")!r})
            """
        )
    )

    def client(what):
        return subprocess.run([sys.executable, str(script), what], capture_output=True, text=True, timeout=120)

    assert client("die").returncode == -signal.SIGKILL and state.exists()
    assert not (tmp_path / "model.mm").exists()
    went_on = client("live")
    assert went_on.returncode == 0, went_on.stderr
    assert_same_bits(matmix.load(tmp_path / "model.mm"), matmix.Mixture(**options).fit(parts(X)))


def test_a_lost_chunk_is_noticed(lazy, monkeypatch):
    """The statistics of one block vanish, or arrive twice, in the third pass."""
    merge = _dask._merge
    for doubled in (False, True):
        calls = []

        def tampered(sums, calls=calls, doubled=doubled):
            calls.append(len(sums))
            if len(calls) == 5:
                sums = [*sums, sums[-1]] if doubled else sums[:-1]
            return merge(sums)

        monkeypatch.setattr(_dask, "_merge", tampered)
        with (
            dask.config.set(scheduler="synchronous"),
            pytest.raises(ValueError, match="a part was lost or counted twice"),
        ):
            matmix.Mixture(**OPTIONS).fit(lazy)
        assert len(calls) >= 5


@pytest.mark.parametrize("doubled", [False, True])
def test_a_lost_chunk_is_noticed_on_a_cluster(lazy, cluster, monkeypatch, doubled):
    """From the fifth pass on, the tree forgets the statistics of the last of eight blocks, or adds them twice."""
    calls = []

    def tampered(parts):
        levels = _matmix.tree_levels(parts)
        calls.append(parts)
        if parts == 8 and len(calls) > 4:
            return [[(0, 8), (7, 8)], [(0, 2)]] if doubled else [[(0, 7)]]
        return levels

    monkeypatch.setattr(_dask, "_matmix", SimpleNamespace(tree_levels=tampered))
    with pytest.raises(ValueError, match="a part was lost or counted twice"):
        matmix.Mixture(**OPTIONS).fit(lazy)


def test_blocks_that_were_only_in_the_memory_of_a_dead_worker(X, cluster):
    workers = cluster.run(os.getpid)
    victim = next(iter(workers))
    held = cluster.scatter(X[:STEP], workers=[victim])
    gone = da.from_delayed(dask.delayed(held), (STEP, 28, 28), np.uint8)
    os.kill(workers[victim], signal.SIGKILL)
    deadline = time.monotonic() + 60
    while held.status != "lost" and held.status != "cancelled" and time.monotonic() < deadline:
        time.sleep(0.05)
    with (
        pytest.warns(RuntimeWarning, match="run again"),
        pytest.raises(RuntimeError, match="only in the memory of a worker"),
    ):
        matmix.Mixture(**OPTIONS).fit(gone)
    cluster.wait_for_workers(2, timeout=60)


def test_a_pass_that_fails_is_run_again_and_not_for_ever(serial, lazy, cluster, monkeypatch):
    compute = cluster.compute
    for failures in (1, _dask.RETRIES + 1):
        left = [failures]

        def failing(root, left=left):
            if left[0]:
                left[0] -= 1
                raise distributed.KilledWorker("a task", SimpleNamespace(address="tcp://gone"), 4)
            return compute(root)

        monkeypatch.setattr(cluster, "compute", failing)
        with pytest.warns(RuntimeWarning, match="is run again"):
            if failures == 1:
                assert_same_bits(matmix.Mixture(**OPTIONS).fit(lazy), serial)
            else:
                with pytest.raises(RuntimeError, match=f"failed {failures} times"):
                    matmix.Mixture(**OPTIONS).fit(lazy)


def test_an_answer_that_comes_just_when_waiting_for_it_ends(monkeypatch):
    def late(future, timeout):
        future.answered = True
        raise distributed.TimeoutError

    monkeypatch.setattr(distributed, "wait", late)
    future = SimpleNamespace(answered=False, done=lambda: future.answered, result=lambda: 42)
    assert _dask._result(future, lambda: False) == 42


def test_a_scheduler_that_is_gone(lazy, monkeypatch):
    def compute(root):
        raise distributed.comm.CommClosedError("nobody there")

    monkeypatch.setattr(_dask, "_client", lambda: SimpleNamespace(status="closed", compute=compute))
    with pytest.raises(RuntimeError, match=r"the connection to the Dask scheduler was lost.*checkpoint"):
        matmix.Mixture(**OPTIONS).fit(lazy)


def test_ctrl_c_twice_does_not_wait_for_a_cluster_that_never_answers(tmp_path):
    script = tmp_path / "stuck.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, threading, time
            import dask.array as da, distributed, matmix

            def interrupt():
                for _ in range(2):
                    time.sleep(1)
                    os.kill(os.getpid(), signal.SIGINT)

            if __name__ == "__main__":
                scheduler = distributed.LocalCluster(
                    n_workers=0, processes=True, host="127.0.0.1", dashboard_address=None
                )
                with scheduler, distributed.Client(scheduler):
                    threading.Thread(target=interrupt).start()
                    try:
                        matmix.Mixture(2).fit(da.zeros((100, 8, 8), chunks=(50, 8, 8)))
                    except KeyboardInterrupt:
                        print("left")
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "left\n", done.stderr


def test_an_error_in_a_block_is_the_users_error(X, cluster):
    holed = X / 255
    holed[150, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"sample 150 holds NaN at position \[2, 1\]"):
        matmix.Mixture(**OPTIONS).fit(da.from_array(holed, chunks=(STEP, -1, -1)))


def test_a_block_that_lies_about_its_shape(lazy):
    lying = lazy.map_blocks(lambda block: block[:-1], dtype=lazy.dtype, meta=np.empty((0, 28, 28), np.uint8))
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="the Dask array says"):
        matmix.Mixture(**OPTIONS).fit(lying)


# -- nothing is gathered -----------------------------------------------------------------------------------------------


def test_the_client_reads_no_block(X, cluster, tmp_path):
    """Every block says where it is read: never on the client, and what comes back is small."""

    def signed(block, folder=tmp_path):
        (folder / f"{os.getpid()}").touch()
        return block

    many = np.concatenate([X] * (8400 // len(X) + 1))
    array = da.from_array(many, chunks=(300, -1, -1)).map_blocks(
        signed, dtype=np.uint8, meta=np.empty((0, 28, 28), np.uint8)
    )
    came_back = []
    run = _dask.DaskBlocks.run

    def counted(self, *args):
        sums = run(self, *args)
        came_back.append(len(sums))
        return sums

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dask.DaskBlocks, "run", counted)
        matmix.Mixture(**{**OPTIONS, "max_iter": 1}).fit(array)
    readers = {int(name) for name in os.listdir(tmp_path)}
    assert readers and os.getpid() not in readers
    # 4,096 samples for the search, each with its number, are the most that ever comes back.
    assert max(came_back) < 4096 * (784 + 8) + 1000 < many.nbytes


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score_samples", "reconstruct"])
def test_questions_are_lazy(X, lazy, serial, method):
    def never(block):
        raise AssertionError("computed")

    waiting = lazy.map_blocks(never, dtype=lazy.dtype, meta=np.empty((0, 28, 28), np.uint8))
    assert getattr(serial, method)(waiting).shape == getattr(serial, method)(X).shape
    answer = getattr(serial, method)(lazy)
    assert isinstance(answer, da.Array) and answer.chunks[0] == lazy.chunks[0]
    wanted = getattr(serial, method)(X)
    assert answer.dtype == wanted.dtype and answer.shape == wanted.shape
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(answer.compute(), wanted)


def test_questions_on_a_cluster(X, lazy, serial, cluster):
    model = clone(serial).set_params(callback=lambda progress: None)  # not to be sent anywhere
    model._adopt(serial.model_, serial.history_)
    model.sample_shape_, model.n_features_in_ = serial.sample_shape_, serial.n_features_in_
    np.testing.assert_array_equal(model.transform(lazy).compute(), serial.transform(X))
    assert model.score(lazy) == pytest.approx(serial.score(X), rel=1e-12)
    assert model.bic(lazy) == pytest.approx(serial.bic(X), rel=1e-12)
    low = matmix.LowRank(rank=2).fit(lazy)
    np.testing.assert_array_equal(low.fit_transform(lazy).compute(), low.transform(X))


def test_what_travels_is_the_question(lazy, serial, cluster):
    """No estimator, and nothing that it holds, goes to the workers; what they find names samples of the whole set."""

    class Untransportable:
        def __reduce__(self):
            raise AssertionError("was pickled")

    model = clone(serial).set_params(random_state=1)
    model.__dict__.update(serial.__dict__, callback=Untransportable(), extra=Untransportable())
    components = model.predict(lazy)
    cores, their_components = model.cores(lazy)
    assert isinstance(cores, da.Array) and cores.chunks[0] == lazy.chunks[0]
    wanted = serial.cores(lazy.compute())
    np.testing.assert_array_equal(components.compute(), wanted[1])
    np.testing.assert_array_equal(their_components.compute(), wanted[1])
    np.testing.assert_array_equal(cores.compute(), wanted[0])
    assert model.icl(lazy) == pytest.approx(serial.icl(lazy.compute()), rel=1e-12)
    holed = lazy.compute().astype(float)
    holed[150, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"sample 150 holds NaN at position \[2, 1\]"):
        model.transform(da.from_array(holed, chunks=(STEP, -1, -1))).compute()


@pytest.mark.parametrize("estimator", [matmix.Mixture(**OPTIONS), matmix.LowRank(rank=3)])
@pytest.mark.parametrize("distance", ["data", "paper", "weighted", "fisher"])
def test_the_nearest_are_found_where_the_samples_are(X, lazy, cluster, estimator, distance):
    class Untransportable(matmix.NearestCore):
        def __reduce_ex__(self, protocol):
            raise AssertionError("was pickled")

    names = np.array(["odd", "even", "neither"])[np.arange(len(X)) % 3]
    known = Untransportable(estimator, distance=distance).fit(X[::2], names[::2])
    found = known.predict(lazy)
    assert isinstance(found, da.Array) and found.chunks[0] == lazy.chunks[0] and found.dtype == names.dtype
    np.testing.assert_array_equal(found.compute(), known.predict(X))
    _, places = known.kneighbors(X)
    np.testing.assert_array_equal(known.predict(X), names[::2][places[:, 0]])


def test_flat_samples_and_single_precision(X, serial):
    flat = da.from_array(X.reshape(len(X), -1).astype(np.float32), chunks=(STEP, 300))
    with dask.config.set(scheduler="synchronous"):
        model = matmix.Mixture(**OPTIONS, sample_shape=(28, 28)).fit(flat)
        cores = model.transform(flat)
        assert cores.shape == (len(X), 27) and cores.dtype == np.float32
        np.testing.assert_array_equal(cores.compute(), model.transform(flat.compute()))


# -- other ways in -----------------------------------------------------------------------------------------------------


def test_xarray_and_zarr(X, lazy, serial, tmp_path):
    xarray, zarr = pytest.importorskip("xarray"), pytest.importorskip("zarr")
    with dask.config.set(scheduler="synchronous"):
        labelled = xarray.DataArray(lazy, dims=("n", "y", "x"))
        assert_same_bits(matmix.Mixture(**OPTIONS).fit(labelled), serial)
        array = zarr.create_array(str(tmp_path / "x.zarr"), shape=X.shape, chunks=(STEP, 28, 28), dtype=X.dtype)
        array[:] = X
        assert_same_bits(matmix.Mixture(**OPTIONS).fit(da.from_zarr(str(tmp_path / "x.zarr"))), serial)


def test_many_files(X, serial, cluster, tmp_path):
    for number, start in enumerate(range(0, len(X), STEP)):
        np.save(tmp_path / f"part{number:02}.npy", X[start : start + STEP])
    files = matmix.Parts(str(tmp_path / "*.npy"))
    array = files.to_dask()
    assert array.shape == X.shape and array.dtype == np.uint8 and array.numblocks[0] == len(files.blocks)
    assert_same_bits(matmix.Mixture(**OPTIONS).fit(array), serial)


def test_what_cannot_be_used_is_said(X, lazy, serial):
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        matmix.Mixture().fit(lazy[lazy[:, 0, 0] >= 0])
    with pytest.raises(TypeError, match="not a Dask array"):
        matmix.Mixture().fit(dask.delayed(X))
    with pytest.raises(ValueError, match="756 features, but Mixture is expecting 784"):
        serial.predict(lazy[:, :, 1:])
    with pytest.raises(TypeError, match="a step on a batch is taken in this process"):
        matmix.Mixture().partial_fit(lazy)
    with pytest.raises(TypeError, match="the gallery of NearestCore needs its samples in memory"):
        matmix.NearestCore().fit(lazy, np.zeros(len(X)))
    with pytest.raises(TypeError, match="a report needs its samples in memory"):
        serial.report(lazy, "never.html")
    with pytest.raises(ValueError, match="Complex data not supported"):
        matmix.Mixture().fit(lazy.astype(complex))
    assert isinstance(_blocks.as_blocks(lazy), _dask.DaskBlocks)
