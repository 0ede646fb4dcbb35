"""Makes the seed inputs of the data set fuzzers with h5py and numpy: run in the interop environment,
make_corpus.py CORPUS_FOLDER. Small on purpose, and the same every time."""
import io
import pathlib
import sys
import zipfile

import h5py
import numpy as np

root = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(1)


def hdf5(name, fill):
    path = root / "hdf5" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w", libver="earliest") as file:
        fill(file)
    return path.read_bytes()


def minari(observations, **options):
    def fill(file):
        for e, T in enumerate([2, 3]):
            group = file.create_group(f"episode_{e}")
            group.create_dataset("observations", data=observations(T + 1), **options)
            group["actions"] = rng.integers(0, 3, T)
            group["rewards"] = rng.random(T)
            group["terminations"] = np.arange(T) == T - 1
            group["truncations"] = np.zeros(T, bool)

    return fill


def frames(n):
    from PIL import Image

    out = np.empty(n, object)
    for i in range(n):
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(buffer, format="JPEG", quality=10)
        out[i] = np.frombuffer(buffer.getvalue(), np.uint8)
    return out


def flat():
    n = 8
    return {
        "observations": rng.random((n, 2)).astype(np.float32),
        "actions": rng.integers(0, 3, n),
        "rewards": rng.random(n),
        "terminals": np.arange(n) % 4 == 3,
        "timeouts": np.zeros(n, bool),
    }


def d3rlpy(file):
    for i, L in enumerate([2, 3]):
        file[f"observations_{i}"] = rng.integers(0, 256, (L, 2, 2), dtype=np.uint8)
        file[f"actions_{i}"] = rng.integers(0, 3, (L, 1))
        file[f"rewards_{i}"] = rng.random((L, 1))
        file[f"terminated_{i}"] = i == 0
    file["num_episodes"] = 2
    file["version"] = "2.1"


def dictionary(file):
    group = file.create_group("episode_0")
    group["observations/image"] = rng.integers(0, 256, (3, 2, 2), dtype=np.uint8)
    group["actions"] = np.array([0, 1])
    group["rewards"] = np.array([0.0, 1.0])
    group["terminations"] = np.array([False, True])
    group["truncations"] = np.array([False, False])


whole = [
    hdf5("minari-chunked", minari(lambda n: rng.integers(0, 256, (n, 2, 3, 3), dtype=np.uint8), chunks=(1, 2, 2, 3))),
    hdf5("minari-contiguous", minari(lambda n: rng.random((n, 3)))),
    hdf5("minari-gzip", minari(lambda n: rng.random((n, 3)), chunks=True, compression="gzip")),
    hdf5("minari-jpeg", minari(frames, dtype=h5py.vlen_dtype(np.uint8))),
    hdf5("minari-dict", dictionary),
    hdf5("d3rlpy", d3rlpy),
    hdf5("d4rl", lambda file: [file.create_dataset(k, data=v) for k, v in flat().items()]),
]
(root / "hdf5" / "truncated").write_bytes(whole[0][: len(whole[0]) // 2])
(root / "hdf5" / "header-only").write_bytes(whole[0][:96])
damaged = bytearray(whole[6])
damaged[2000:2100] = b"\xff" * 100
(root / "hdf5" / "damaged").write_bytes(damaged)
(root / "hdf5" / "empty").write_bytes(b"")


def npz(name, arrays, save=np.savez):
    path = root / "npz" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        save(file, **arrays)
    return path.read_bytes()


ours = {
    "observations": rng.integers(0, 256, (7, 2, 2), dtype=np.uint8),
    "actions": rng.integers(0, 3, 5),
    "rewards": rng.random(5),
    "episode_lengths": np.array([2, 3]),
    "terminated": np.array([True, False]),
    "n_actions": np.array(3),
    "latent_states": rng.integers(0, 3, 7),
}
first = npz("ours", ours)
npz("ours-compressed", ours, np.savez_compressed)
npz("ours-fortran", {**ours, "observations": np.asfortranarray(ours["observations"])})
npz("d4rl", flat())
npz("text", {**ours, "rewards": np.array(["a"] * 5)})
(root / "npz" / "truncated").write_bytes(first[: len(first) // 2])
damaged = bytearray(first)
damaged[200:260] = b"\xff" * 60
(root / "npz" / "damaged").write_bytes(damaged)
with zipfile.ZipFile(root / "npz" / "huge-shape", "w") as file:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"
    header = header.ljust(117) + b"\n"
    for name in ("observations", "actions", "rewards", "terminals"):
        file.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def npy(name, array, tail=None):
    with open(root / "npz" / name, "wb") as file:
        np.save(file, array)
        if tail is not None:
            file.truncate(file.tell() + tail)


counted = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
npy("array", counted)
npy("array-fortran", np.asfortranarray(counted.astype(">f4")))
npy("array-short", counted, -4)
npy("array-long", counted, 4)
npy("array-number", np.array(2.5, np.float16))
npy("array-text", np.array(["a", "bc"]))
