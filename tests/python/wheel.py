"""The listing of the README from an installed wheel, and nothing of this machine's beside it.

usage: python wheel.py README.md [Taxi-v4]

No development package is needed: of all libraries that the process has loaded, only those that
every Linux has come from outside of the environment. No gnuplot or Graphviz is there, either.
"""

import os
import pathlib
import re
import sys

os.environ["PATH"] = os.path.dirname(sys.executable)

import gymnasium as gym
import h5py
import numpy as np

import psifold

assert pathlib.Path(psifold.__file__).is_relative_to(sys.prefix), psifold.__file__
# the first thing that README.md shows, as it stands where there is a Taxi-v3
fence, listing = re.search(r"^```(\w*)\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S).groups()
assert fence == "python" and "Taxi-v3" in listing, listing
if sys.argv[2:] == ["Taxi-v4"]:
    listing = listing.replace("Taxi-v3", "Taxi-v4")
made = {}
exec(listing, made)

data, run, env = made["data"], made["run"], made["env"]
page = run._repr_html_()
labels, confidence = run.predict(data.observations, return_confidence=True)
graph, matrix, policy = run.model.to_networkx(), run.model.M[0], run.plan(gamma=0.95).policy
exact = psifold.quotient(env.unwrapped.P)
assert (run.n_states, run.verdict, run.advice) == (401, "certain", [])
assert env.observation_space == gym.spaces.Discrete(401)
assert "iframe" in page and "gnuplot" in page
assert graph.number_of_nodes() == matrix.shape[0] == len(policy) == 401
assert len(labels) == len(confidence) == len(data.observations) and (labels >= 0).all()
assert len(exact.labels) >= 500

# the wheel's own HDF5 and h5py's, side by side
data.save("taxi", replace=True)
with h5py.File("taxi/data/main_data.hdf5") as file:
    assert np.array_equal(file["episode_3/observations"][:], data[3].observations)
    assert psifold.read("taxi").n_transitions == data.n_transitions

# what every Linux has: PEP 600's list for this glibc, as far as it is needed
COMMON = ("ld-linux", "libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libutil.so")
COMMON += ("libgcc_s.so", "libstdc++.so", "libz.so", "libresolv.so", "libexpat.so", "libcrypt.so")
with open("/proc/self/maps") as file:
    loaded = {line.split()[-1] for line in file if ".so" in line}
own = [path for path in loaded if "psifold.libs" in path or "libpsifold" in path]
assert len(own) > 10, own
# the interpreter's own modules (ssl, bz2, lzma, ctypes) have brought these
COMMON += ("libcrypto.so", "libssl.so", "libbz2.so", "liblzma.so", "libffi.so")
interpreter = {os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}
names = {os.path.basename(path).split("-")[0] for path in own}
outside = [
    path
    for path in loaded
    if not any(os.path.realpath(path).startswith(prefix) for prefix in interpreter)
    and not os.path.basename(path).startswith(COMMON)
    and os.path.basename(path).split(".")[0] in names
]
assert not outside, f"taken from this machine: {outside}"
print(f"{len(own)} libraries of the wheel's own; {run}")
