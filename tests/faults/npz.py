"""Small .npz files without numpy."""
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|b1": "?"}


def npy(descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}{CODES[descr]}", *values))


def save(path, compressed=False, **arrays):
    """Every array is (descr, shape, values)."""
    how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(*array), how)


def save_trajectories(path, actions, rewards, length=5, **more):
    """Episodes of the same length, each terminated, with observations of two numbers."""
    n, episodes = len(actions), len(actions) // length
    observations = [(i * 37 % 101) / 101 for i in range(2 * (n + episodes))]
    save(path, observations=("<f4", (n + episodes, 2), observations), actions=("<i8", (n,), actions),
         rewards=("<f8", (n,), rewards), episode_lengths=("<i8", (episodes,), [length] * episodes),
         terminated=("|b1", (episodes,), [True] * episodes), **more)
