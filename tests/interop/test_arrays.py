"""Plain arrays: numpy reads what psifold saves, and psifold what numpy saves."""
import zipfile

import numpy as np
import pytest
from conftest import same

TYPES = ["uint8", "int32", "int64", "float32", "float64"]
SHAPES = [(), (7,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (0, 5)]


def values(dtype, shape):
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        return np.asarray(rng.normal(size=shape), dtype)
    return np.asarray(rng.integers(0, np.iinfo(dtype).max, shape), dtype)


def copy(tool, *arguments):
    done = tool.run("arrays", *arguments)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", TYPES)
def test_npy(tool, tmp_path, dtype):
    for shape in SHAPES:
        before = values(dtype, shape)
        np.save(tmp_path / "a.npy", before)
        copy(tool, tmp_path / "a.npy", tmp_path / "b.npy", dtype)
        same(np.load(tmp_path / "b.npy"), before)
        assert (tmp_path / "b.npy").read_bytes()[128:] == before.tobytes()
        mapped = np.load(tmp_path / "b.npy", mmap_mode="r") if before.size else before
        same(np.asarray(mapped), before)


@pytest.mark.parametrize("savez", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", TYPES)
def test_npz(tool, tmp_path, dtype, savez):
    before = {f"rank {len(shape)}, {np.prod(shape)} of ψ": values(dtype, shape) for shape in SHAPES}
    savez(tmp_path / "a.npz", **before)
    copy(tool, tmp_path / "a.npz", tmp_path / "b.npz", dtype, *before)
    with np.load(tmp_path / "b.npz") as after:
        assert list(after) == list(before)
        for name in before:
            same(after[name], before[name])
    with zipfile.ZipFile(tmp_path / "b.npz") as archive:
        assert archive.testzip() is None
        for entry in archive.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("stored", [">f4", "<f2", ">i8", "<i2", "<u4", "i1", "?"])
def test_other_types(tool, tmp_path, stored):
    before = np.array([[0, 1, 100], [7, 5, 3]]).astype(stored)
    for order in "CF":
        np.save(tmp_path / "a.npy", np.asarray(before, order=order))
        for dtype in TYPES:
            copy(tool, tmp_path / "a.npy", tmp_path / "b.npy", dtype)
            same(np.load(tmp_path / "b.npy"), before.astype(dtype))


@pytest.mark.parametrize(
    "bad, dtype, status",
    [
        (np.array(["a", "b"]), "int32", "PSI_EDATA"),
        (np.array([1 + 1j]), "float64", "PSI_EDATA"),
        (np.array([0.5]), "int32", "PSI_EDATA"),
        (np.array([np.nan]), "int64", "PSI_EDATA"),
        (np.array([300]), "uint8", "PSI_EDATA"),
        (np.array([2**53 + 1]), "float64", "PSI_EDATA"),
        (np.zeros((1, 1, 1, 1, 1)), "float64", "PSI_EDATA"),
        (np.array([(1, 2.0)], "i4,f8"), "float64", "PSI_EFORMAT"),
        (np.array([None]), "float64", "PSI_E"),
    ],
)
def test_refused(tool, tmp_path, bad, dtype, status):
    np.save(tmp_path / "a.npy", bad)
    np.savez(tmp_path / "a.npz", bad=bad)
    for name, extra in (("a.npy", []), ("a.npz", ["bad"])):
        done = tool.run("arrays", tmp_path / name, tmp_path / "b.npz", dtype, *extra)
        assert done.returncode != 0
        assert done.stderr.startswith(status), done.stderr
        assert name in done.stderr
        assert not (tmp_path / "b.npz").exists()
