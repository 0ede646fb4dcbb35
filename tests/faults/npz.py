"""Small .npz files without numpy."""
import json
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|b1": "?", "|u1": "B"}


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


def save_model(path, names, states=2, compressed=False, **more):
    """Every state has one choice, which leads to the first one; names is the JSON, or its bytes."""
    text = names if isinstance(names, bytes) else json.dumps(names).encode()
    offsets = ("<i8", (states + 1,), list(range(states + 1)))
    arrays = {"choices": offsets, "offsets": offsets, "next": ("<i4", (states,), [0] * states),
              "probability": ("<f8", (states,), [1.0] * states),
              "action": ("<i4", (states,), [0] * states),
              "initial": ("|u1", (states,), [1] + [0] * (states - 1)),
              "names": ("|u1", (len(text),), list(text))}
    save(path, compressed, **{**arrays, **more})
