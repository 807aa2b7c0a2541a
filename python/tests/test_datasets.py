"""What the program reads, Python reads."""

import matmix
import numpy as np
import pytest


def test_digits():
    digits = matmix.datasets.load_digits28()
    assert digits.data.shape == (1000, 28, 28) and digits.data.dtype == np.uint8
    assert (np.bincount(digits.target) == 100).all()
    assert digits["name"] == "demo:mnist" and "data" in dir(digits)


def test_npy_and_npz(tmp_path):
    X = np.arange(24.0).reshape(4, 2, 3)
    np.save(tmp_path / "x.npy", X)
    opened = matmix.datasets.open(tmp_path / "x.npy", shape=(3, 2), take=slice(1, None))
    np.testing.assert_array_equal(opened.data, X[1:].reshape(3, 3, 2))
    assert opened.target is None
    np.savez(tmp_path / "x.npz", images=X.astype(np.float32), labels=np.array(["b", "a", "b", "a"]))
    opened = matmix.datasets.open(f"{tmp_path / 'x.npz'}:images", exclude=["a"], scale=0.5)
    np.testing.assert_array_equal(opened.data, X[::2].astype(np.float32) / 2)
    assert list(opened.target) == ["b", "b"] and opened.format == ".npz"
    (tmp_path / "labels.txt").write_text("1\n2\n1\n3\n")
    opened = matmix.datasets.open(tmp_path / "x.npy", labels=tmp_path / "labels.txt", limit=3)
    assert list(opened.target) == [1, 2, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": float("nan")}, "option `scale` is nan"),
        ({"missing": "nothing"}, "option `missing` is `nothing`; it must be nan, error"),
        ({"resize": (0, 3)}, "option `resize` is 0×3"),
        ({"limit": 0}, "option `limit` is 0"),
        ({"limit": 2.5}, "invalid type: floating point"),
        ({"take": (3, 1)}, "option `take`"),
    ],
)
def test_what_cannot_be_meant_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        matmix.datasets.open("demo:mnist", **options)
