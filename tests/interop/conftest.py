import json
import os
import subprocess

import numpy as np
import pytest

TOOL = os.environ["PSI_TOOL"]


class Tool:
    """psi_tool, and what it says."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, *arguments):
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)

    def make(self, name, dtype, rank):
        path = self.folder / name
        done = self.run("make", path, dtype, rank)
        assert done.returncode == 0, done.stderr
        return path

    def dump(self, path, *options):
        """The data set as psifold sees it: the arrays, and its summary. Read twice, in memory and
        from the file, which must not make a difference."""
        found = []
        for extra in ([], ["stream"]):
            out = self.folder / f"dump-{len(extra)}.npz"
            done = self.run("dump", path, out, *options, *extra)
            assert done.returncode == 0, done.stderr
            with np.load(out) as arrays:
                found.append((dict(arrays), json.loads(done.stdout)))
        for name, values in found[0][0].items():
            np.testing.assert_array_equal(values, found[1][0][name], err_msg=name)
        return found[0]

    def refuse(self, path, status, *words, options=()):
        done = self.run("dump", path, self.folder / "refused.npz", *options)
        assert done.returncode != 0
        assert done.stderr.startswith(status), done.stderr
        for word in words:
            assert word in done.stderr
        assert not (self.folder / "refused.npz").exists()


@pytest.fixture
def tool(tmp_path):
    return Tool(tmp_path)


def same(got, expected):
    """Bit-equal, and of one type."""
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()
