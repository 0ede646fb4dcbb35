"""Would a wheel's build compile what the build folder has compiled?

usage: python same_commands.py SOURCE BUILD SCRATCH

Configures as pyproject.toml does and holds every compiler command of the library against that of
the build folder: the same file with the same flags, but for -g, which a wheel does without.
"""

import json
import pathlib
import subprocess
import sys

source, build, scratch = (pathlib.Path(word).resolve() for word in sys.argv[1:])
subprocess.run(
    [
        *("cmake", "-S", source, "-B", scratch, "-G", "Ninja", "-DSKBUILD=2"),
        *("-DCMAKE_BUILD_TYPE=Release", "-DPSI_TESTS=OFF"),
    ],
    check=True,
    stdout=subprocess.DEVNULL,
)


def commands(folder):
    """The library's files, and how each is compiled."""
    entries = json.loads((folder / "compile_commands.json").read_text())
    return {
        entry["file"].replace(str(folder), "BUILD"): entry["command"]
        .replace(str(folder), "BUILD")
        .replace(" -g ", " ")
        for entry in entries
        if "psi_objects.dir" in entry["command"] or "psi_python.dir" in entry["command"]
    }


wheel, here = commands(scratch), commands(build)
assert len(wheel) > 200, len(wheel)
assert wheel == here, sorted(set(wheel.items()) ^ set(here.items()))[:4]
assert "libpsifold_flat.so" in (scratch / "build.ninja").read_text()
print(f"{len(wheel)} files would be compiled as they were")
