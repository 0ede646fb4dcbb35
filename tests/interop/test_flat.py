"""D4RL and d3rlpy as h5py writes them, and .npz as numpy writes it."""
import h5py
import numpy as np
import pytest
from conftest import same


def table(rng, ends=(3, 7, 8, 12), terminal=(3, 12)):
    n = ends[-1] + 1
    return {
        "observations": rng.random((n, 4)).astype(np.float32),
        "actions": rng.integers(0, 3, n),
        "rewards": rng.normal(size=n),
        "terminals": np.isin(np.arange(n), terminal),
        "timeouts": np.isin(np.arange(n), ends) & ~np.isin(np.arange(n), terminal),
    }


def check_table(arrays, summary, data):
    """Episodes 0–3 (terminated), 4–7 (cut off), 8 (a single row, dropped), 9–12 (terminated)."""
    same(arrays["episode_lengths"], [4, 3, 4])
    keep = [0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12]
    same(arrays["actions"], data["actions"].ravel()[keep].astype("int32"))
    same(arrays["rewards"], data["rewards"].ravel()[keep].astype("float64"))
    same(arrays["terminated"], [True, False, True])
    same(arrays["truncated"], [False, True, False])
    rows = [0, 1, 2, 3, 3, 4, 5, 6, 7, 9, 10, 11, 12, 12]
    same(arrays["observations"], data["observations"][rows])
    assert summary["final_missing"] == [True, False, True]


def save(path, data, **options):
    with h5py.File(path, "w") as file:
        for name, values in data.items():
            file.create_dataset(name, data=values, **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": True},
        {"chunks": True, "compression": "gzip"},
        {"chunks": True, "shuffle": True, "fletcher32": True},
    ],
)
def test_d4rl(tool, tmp_path, options):
    data = table(np.random.default_rng(1))
    path = save(tmp_path / "data.anything", data, **options)
    check_table(*tool.dump(path), data)


def test_d4rl_columns_of_one(tool, tmp_path):
    data = table(np.random.default_rng(2))
    for name in ("actions", "rewards", "terminals", "timeouts"):
        data[name] = data[name][:, None]
    check_table(*tool.dump(save(tmp_path / "a.hdf5", data)), data)


def test_d4rl_with_next_observations_loses_nothing(tool, tmp_path):
    rng = np.random.default_rng(3)
    data = table(rng)
    data["next_observations"] = rng.random((13, 4)).astype(np.float32)
    arrays, summary = tool.dump(save(tmp_path / "a.hdf5", data))
    same(arrays["episode_lengths"], [4, 4, 1, 4])
    same(arrays["actions"], data["actions"].astype("int32"))
    assert not any(summary["final_missing"])
    expected = []
    for begin, end in [(0, 4), (4, 8), (8, 9), (9, 13)]:
        expected += [data["observations"][begin:end], data["next_observations"][end - 1 : end]]
    same(arrays["observations"], np.concatenate(expected))


@pytest.mark.parametrize(
    "stored, read",
    [
        (">f4", "float32"),
        ("<f2", "float32"),
        (">f8", "float64"),
        ("<i2", "int32"),
        (">i8", "int64"),
        ("<u2", "int32"),
        ("<u4", "int64"),
        ("<u8", "int64"),
        ("i1", "int32"),
        ("?", "uint8"),
    ],
)
@pytest.mark.parametrize("suffix", ["h5", "npz"])
def test_types_of_observations(tool, tmp_path, stored, read, suffix):
    rng = np.random.default_rng(4)
    data = table(rng)
    data["observations"] = (rng.integers(0, 100, (13, 2, 3)) - 3 * ("u" not in stored)).astype(stored)
    path = tmp_path / f"a.{suffix}"
    if suffix == "npz":
        np.savez(path, **data)
    else:
        save(path, data)
    arrays, summary = tool.dump(path)
    data["observations"] = data["observations"].astype(read)
    check_table(arrays, summary, data)


def test_a_type_that_is_not_known(tool, tmp_path):
    data = table(np.random.default_rng(5))
    data["observations"] = data["observations"].astype("complex64")
    tool.refuse(save(tmp_path / "a.h5", data), "PSI_EUNSUPPORTED", "observations")
    data["observations"] = np.full((13, 1), 2**63 + 5, dtype="u8")
    tool.refuse(save(tmp_path / "b.h5", data), "PSI_EDATA", "observations")


def test_continuous_actions(tool, tmp_path):
    data = table(np.random.default_rng(6))
    data["actions"] = np.random.default_rng(7).random(13)
    tool.refuse(save(tmp_path / "a.h5", data), "PSI_EDATA", "actions", "whole number")
    data["actions"] = np.zeros((13, 6))
    tool.refuse(save(tmp_path / "b.h5", data), "PSI_EDATA", "actions", "6 columns")


def test_d3rlpy_1(tool, tmp_path):
    data = table(np.random.default_rng(8))
    both = data["timeouts"] | data["terminals"]
    del data["timeouts"]
    data["episode_terminals"] = both.astype("float32")
    data["terminals"] = data["terminals"].astype("float32")
    data["discrete_action"] = True
    path = save(tmp_path / "a.h5", data)
    check_table(*tool.dump(path), data)
    with h5py.File(path, "r+") as file:
        del file["discrete_action"]
        file["discrete_action"] = False
    tool.refuse(path, "PSI_EUNSUPPORTED", "continuous")


def test_d3rlpy_2(tool, tmp_path):
    rng = np.random.default_rng(9)
    path = tmp_path / "a.h5"
    episodes = [(4, True), (5, False), (1, False), (3, True)]
    made = []
    with h5py.File(path, "w") as file:
        for i, (length, terminated) in enumerate(episodes):
            observations = rng.integers(0, 256, (length, 2, 6, 6), dtype=np.uint8)
            actions = rng.integers(0, 4, (length, 1))
            rewards = rng.random((length, 1)).astype(np.float32)
            file[f"observations_{i}"] = observations
            file[f"actions_{i}"] = actions
            file[f"rewards_{i}"] = rewards
            file[f"terminated_{i}"] = terminated
            made.append((observations, actions, rewards))
        file["columns"] = ["observations", "actions", "rewards", "terminated"]
        file["num_episodes"] = len(episodes)
        file["version"] = "2.1"
    arrays, summary = tool.dump(path)
    same(arrays["episode_lengths"], [4, 4, 3])
    same(arrays["terminated"], [True, False, True])
    same(arrays["actions"], np.concatenate([made[0][1], made[1][1][:4], made[3][1]])[:, 0].astype("int32"))
    same(arrays["rewards"], np.concatenate([made[0][2], made[1][2][:4], made[3][2]])[:, 0].astype("float64"))
    same(
        arrays["observations"],
        np.concatenate([made[0][0], made[0][0][-1:], made[1][0], made[3][0], made[3][0][-1:]]),
    )
    assert summary["final_missing"] == [True, False, True]


def ours(rng, dtype="uint8"):
    return {
        "observations": rng.integers(0, 200, (12, 3, 5)).astype(dtype),
        "actions": rng.integers(0, 3, 10),
        "rewards": rng.normal(size=10),
        "episode_lengths": np.array([4, 6]),
        "terminated": np.array([True, False]),
        "n_actions": np.array(7),
        "latent_states": rng.integers(0, 5, 12),
    }


def check_ours(arrays, data):
    for name in ("observations", "terminated", "episode_lengths", "rewards"):
        same(arrays[name], np.ascontiguousarray(data[name]))
    same(arrays["actions"], data["actions"].astype("int32"))
    same(arrays["latent_states"], data["latent_states"].astype("int32"))
    same(arrays["truncated"], ~data["terminated"])


@pytest.mark.parametrize("savez", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_npz(tool, tmp_path, savez, dtype):
    data = ours(np.random.default_rng(10), dtype)
    savez(tmp_path / "a.npz", **data)
    arrays, summary = tool.dump(tmp_path / "a.npz")
    check_ours(arrays, data)
    assert summary["n_actions"] == 7


def test_npz_round_trip_is_bit_equal(tool):
    path = tool.make("a.npz", "float32", 3)
    with np.load(path) as arrays:
        before = dict(arrays)
    after, _ = tool.dump(path)
    assert set(before) == set(after)
    for name in before:
        same(after[name], before[name])


def test_npz_in_fortran_order(tool, tmp_path):
    data = ours(np.random.default_rng(11), "float32")
    data["observations"] = np.asfortranarray(data["observations"])
    np.savez(tmp_path / "a.npz", **data)
    done = tool.run("dump", tmp_path / "a.npz", tmp_path / "b.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "b.npz") as arrays:
        check_ours(arrays, data)
    tool.refuse(tmp_path / "a.npz", "PSI_EUNSUPPORTED", "Fortran", options=["stream"])


def test_npz_with_version_2_headers(tool, tmp_path):
    import zipfile

    data = ours(np.random.default_rng(12))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        for name, values in data.items():
            with file.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.asanyarray(values), version=(2, 0))
    arrays, _ = tool.dump(tmp_path / "a.npz")
    check_ours(arrays, data)


def test_npz_d4rl_names(tool, tmp_path):
    data = table(np.random.default_rng(13))
    np.savez(tmp_path / "a.npz", **data)
    check_table(*tool.dump(tmp_path / "a.npz"), data)


def test_the_name_of_a_file_does_not_matter(tool, tmp_path):
    data = ours(np.random.default_rng(14))
    with open(tmp_path / "really-a-zip.hdf5", "wb") as file:
        np.savez(file, **data)
    check_ours(tool.dump(tmp_path / "really-a-zip.hdf5")[0], data)


def test_a_user_block_before_the_file(tool, tmp_path):
    data = table(np.random.default_rng(15))
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=1024) as file:
        for name, values in data.items():
            file.create_dataset(name, data=values, chunks=True)
    check_table(*tool.dump(path), data)
