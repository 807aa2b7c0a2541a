"""A process that was forked after its parent had worked can work, too: it has none of the parent's threads."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PROGRAM = """
import multiprocessing, os, sys, warnings
import matmix, numpy as np
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(200, 6, 5))
y = np.arange(200) % 3

def mixture(seed, X=X):
    model = matmix.Mixture(2, rank=2, random_state=seed, max_iter=5).fit(X)
    return model.score(X), float(model.transform(X).sum()), float(model.sample(3)[0].sum())

def parts(seed):
    return mixture(seed, matmix.Parts([X[:70], X[70:]]))

def low_rank(seed):
    blocks = matmix.Parts([X[:90], X[90:]])
    models = [matmix.LowRank(2).fit(X), matmix.LowRank(2, n_threads=1).fit(blocks)]
    return [float(model.transform(X).sum()) for model in models]

def batches(seed):
    return matmix.Mixture(2, rank=2, random_state=seed).partial_fit(X).partial_fit(X).score(X)

def nearest(seed):
    return matmix.NearestCore(matmix.LowRank(2)).fit(X, y).score(X, y)

def digits(seed):
    return float(matmix.datasets.load_digits28(return_X_y=True)[0].sum())

WORK = [mixture, parts, low_rank, batches, nearest, digits]

def work(what):
    return [WORK[what](seed) for seed in range(2)]

def nested(what):
    '''In a child of a child, after the child has worked, and in the child again.'''
    before = work(what)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(work(what)).encode())
        os._exit(0)
    os.close(writer)
    answer = os.fdopen(reader).read()
    os.waitpid(child, 0)
    return before, answer, work(what)

if __name__ == "__main__":
    expected = [work(what) for what in range(len(WORK))]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(work, range(len(WORK))).get(100) == expected, "in a child"
        for (before, within, after), known in zip(pool.map_async(nested, range(len(WORK))).get(100), expected):
            assert before == after == known and within == repr(known), "in a child of a child"
    assert [work(what) for what in range(len(WORK))] == expected, "in the parent"
    print("done")
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_forked_child_fits(threads, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "RAYON_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=110, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
