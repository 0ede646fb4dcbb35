"""Trajectories from arrays, files, environments and Minari; hostile arrays."""

from pathlib import Path

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

import psifold


def arrays(**changes):
    """Two episodes, 0 1 2 and 0 1."""
    given = {
        "observations": np.array([0, 1, 2, 0, 1], np.int64),
        "actions": [1, 1, 1],
        "rewards": [0.0, 1.0, 0.0],
        "episode_lengths": [2, 1],
        "terminated": [True, False],
    }
    return {**given, **changes}


def test_arrays_are_not_copied():
    rows = np.random.default_rng(0).random((5, 3))
    data = psifold.Trajectories(**arrays(observations=rows))
    assert data.observations.__array_interface__["data"][0] == rows.ctypes.data
    assert np.shares_memory(data.observations, rows)
    assert data.observation_shape == (3,) and data.n_actions == 2
    episode = data[1]
    assert episode.truncated and not episode.terminated
    assert np.array_equal(episode.observations, rows[3:])
    assert [len(e.rewards) for e in data] == [2, 1]


def test_a_read_only_array_is_read():
    rows = np.array([0, 1, 2, 0, 1], np.int64)
    rows.flags.writeable = False
    assert len(psifold.Trajectories(**arrays(observations=rows))) == 2


good = np.array([0, 1, 2, 0, 1], np.int64)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"observations": good.astype(np.complex64)}, psifold.ShapeError, "complex64"),
        ({"observations": good.astype(">i8")}, psifold.ShapeError, "byte order"),
        ({"observations": np.array(list("abcde"))}, psifold.ShapeError, "psifold takes"),
        ({"observations": np.array([None] * 5)}, psifold.ShapeError, "object"),
        ({"observations": np.arange(10)[::2]}, psifold.ShapeError, "not contiguous"),
        ({"observations": np.zeros((5, 3), order="F")}, psifold.ShapeError, "not contiguous"),
        ({"observations": np.zeros((5, 0))}, psifold.ShapeError, "empty"),
        ({"observations": np.zeros((0, 3))}, psifold.ShapeError, "empty"),
        ({"observations": np.int64(3)}, psifold.ShapeError, "first axis"),
        ({"observations": np.zeros((5, 1, 1, 1, 1, 1))}, psifold.ShapeError, "at most 4"),
        ({"observations": good[:4]}, psifold.ShapeError, "5 observations, not 4"),
        ({"actions": [1, 1]}, psifold.ShapeError, "actions has shape"),
        ({"actions": [0.5, 1.0, 1.0]}, psifold.ShapeError, "actions is of type float64"),
        ({"actions": [1, 1, 2**40]}, psifold.DataError, "32-bit"),
        ({"actions": [1, 1, -1]}, psifold.DataError, "action"),
        ({"actions": [1, 1, 9], "n_actions": 3}, psifold.DataError, "action"),
        ({"rewards": [0.0, np.nan, 0.0]}, psifold.DataError, "reward"),
        ({"rewards": [0.0, np.inf, 0.0]}, psifold.DataError, "reward"),
        ({"rewards": ["a", "b", "c"]}, psifold.ShapeError, "rewards"),
        ({"episode_lengths": [3, 0.5]}, psifold.ShapeError, "whole numbers"),
        ({"episode_lengths": [4, -1]}, psifold.DataError, "negative"),
        ({"episode_lengths": []}, psifold.ShapeError, "whole numbers"),
        ({"terminated": [True]}, psifold.ShapeError, "terminated"),
        ({"terminated": [0, 256]}, psifold.DataError, "true or false"),
        ({"terminated": [0.0, 1.0]}, psifold.ShapeError, "float64, and should be true or false"),
        ({"n_actions": -1}, psifold.UsageError, "n_actions"),
        ({"n_actions": 2.5}, psifold.UsageError, "n_actions"),
    ],
)
def test_hostile_arrays_get_one_clear_exception(changes, error, words):
    with pytest.raises(error, match=words):
        psifold.Trajectories(**arrays(**changes))


def test_observations_that_are_no_numbers(points):
    rows = points.observations.copy()
    rows[len(rows) // 2] = np.nan
    lengths = np.diff(points.episode_offsets.astype(np.int64))
    data = psifold.Trajectories(rows, points.actions, points.rewards, lengths, points.terminated)
    with pytest.raises(psifold.DataError, match="not a number"):
        psifold.cluster(data)


def test_a_mapping_will_do(columns):
    lengths = np.diff(columns.episode_offsets.astype(np.int64))
    run = psifold.cluster(
        {
            "observations": columns.observations,
            "actions": columns.actions,
            "rewards": columns.rewards,
            "episode_lengths": lengths,
            "terminated": columns.terminated,
        }
    )
    assert run.n_states == 4
    with pytest.raises(psifold.UsageError, match="no data set"):
        psifold.cluster(3)
    with pytest.raises(psifold.UsageError, match="key='image'"):
        psifold.cluster(columns, key="image")


@pytest.mark.parametrize("name", ["data.npz", "folder"])
def test_files_and_back(columns, tmp_path, name):
    columns.save(tmp_path / name)
    with pytest.raises(psifold.UsageError, match="exists already"):
        columns.save(tmp_path / name)
    columns.save(tmp_path / name, replace=True)
    again = psifold.read(tmp_path / name)
    assert np.array_equal(again.observations, columns.observations)
    assert np.array_equal(again.rewards, columns.rewards)
    assert np.array_equal(again.terminated, columns.terminated)
    assert np.array_equal(again.rows([5, 0, 5]), columns.observations[[5, 0, 5]])
    assert again.rows([]).shape == (0,)
    for wrong in ([-1], [0.5], [[0]], 3):
        with pytest.raises(psifold.UsageError, match="numbers"):
            again.rows(wrong)
    with pytest.raises(psifold.PsifoldError):
        again.rows([10**9])
    run = psifold.cluster(tmp_path / name, seed=0)
    assert run.n_states == 4
    assert psifold.load(run.folder).data.n_episodes == 300


def test_what_is_wrong_with_data_is_said(columns):
    summary = columns.summary()
    assert summary["problems"] == [] and summary["rewards"][0][0] == 0.0


# ---- collecting -------------------------------------------------------------------------------


def test_collecting_twice_with_a_seed(corridor):
    one, two = (psifold.collect(corridor(), episodes=20, seed=7) for _ in range(2))
    other = psifold.collect(corridor(), episodes=20, seed=8)
    assert np.array_equal(one.observations, two.observations)
    assert np.array_equal(one.actions, two.actions)
    assert not np.array_equal(one.observations[:40], other.observations[:40])
    assert one.n_actions == 2 and set(one.actions) == {0, 1}  # the space starts at 3


def test_time_limits_are_no_ends(corridor):
    limited = gym.wrappers.TimeLimit(corridor(), 5)
    data = psifold.collect(limited, episodes=200, seed=0)
    lengths = np.diff(data.episode_offsets.astype(np.int64))
    assert lengths.max() == 5 and 0 < data.terminated.sum() < 200
    assert np.array_equal(data.truncated, ~data.terminated)
    for episode in data:
        assert (episode.observations[-1] == 9) == episode.terminated
    again = psifold.collect(corridor(), episodes=200, seed=0, max_steps=5)
    assert np.array_equal(again.observations, data.observations)


def test_a_policy_of_ones_own(corridor):
    data = psifold.collect(corridor(), episodes=5, policy=lambda cell: 4)
    assert set(data.actions) == {1} and data.terminated.all()


def test_dict_and_stacked_observations(corridor):
    def look(cell):
        return {"where": np.array([cell, 0.5], np.float16), "noise": np.zeros(1)}

    box = gym.spaces.Box(-1, 10, (2,), np.float16)
    space = gym.spaces.Dict({"where": box, "noise": gym.spaces.Box(0, 1, (1,))})
    with pytest.raises(psifold.UsageError, match="'where', or flatten"):
        psifold.collect(corridor(look, space), episodes=1)
    data = psifold.collect(corridor(look, space), episodes=3, key="where")
    assert data.observation_key == "where" and data.observation_dtype == np.float32
    stacked = gym.wrappers.FrameStackObservation(
        corridor(lambda cell: np.array([cell], np.float32), gym.spaces.Box(0, 10, (1,))), 3
    )
    data = psifold.collect(stacked, episodes=3)
    assert data.observation_shape == (3, 1)
    with pytest.raises(psifold.UsageError, match="key="):
        psifold.collect(corridor(), episodes=1, key="where")


def test_a_first_observation_of_whole_numbers_cuts_nothing_off(corridor):
    first = iter([[4, 0]])
    data = psifold.collect(corridor(lambda cell: next(first, [cell, 0.5])), episodes=3)
    assert data.observation_dtype == np.float64
    assert data.observations[0].tolist() == [4, 0] and set(data.observations[1:, 1]) == {0.5}


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (lambda cell: np.zeros(1 + (cell > 3)), r"shape \(.,\), and the first \(.,\)"),
        (lambda cell: np.zeros(2) if cell < 4 else 0.5, r"shape"),
        (lambda cell: (np.zeros(3), cell), "FlattenObservation"),
        (lambda cell: "abc", "of type <U3"),
    ],
)
def test_observations_that_are_no_rows_of_numbers(corridor, look, words):
    with pytest.raises(psifold.ShapeError, match=words):
        psifold.collect(corridor(look), episodes=20)


def test_rewards_are_one_number_a_step(corridor):
    env = gym.wrappers.TransformReward(corridor(), lambda r: np.array([r, -1.0]))
    with pytest.raises(psifold.ShapeError, match="one number a step"):
        psifold.collect(env, episodes=1)
    single = gym.wrappers.TransformReward(corridor(), lambda r: np.array([r], np.float32))
    plain = psifold.collect(corridor(), episodes=20)
    assert np.array_equal(psifold.collect(single, episodes=20).rewards, plain.rewards)


def test_continuous_actions_are_refused_with_a_sentence():
    with pytest.raises(psifold.UnsupportedError, match=r"Pendulum-v1 are Box.*Discrete"):
        psifold.collect(gym.make("Pendulum-v1"), episodes=1)
    with pytest.raises(psifold.UnsupportedError, match="vector"):
        psifold.collect(gym.make_vec("CartPole-v1", num_envs=2), episodes=1)


# ---- Minari -----------------------------------------------------------------------------------


@pytest.fixture
def minari_home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def buffers(env, episodes):
    """Random episodes as Minari's own buffers."""
    env.action_space.seed(0)
    made = []
    for number in range(episodes):
        observation, _ = env.reset(seed=number)
        rows, steps, over = [observation], [], False
        while not over:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, _ = env.step(action)
            rows.append(observation)
            steps.append((action, reward, terminated, truncated))
            over = terminated or truncated
        actions, rewards, ends, cuts = map(np.array, zip(*steps, strict=True))
        made.append(
            EpisodeBuffer(
                id=number,
                observations=np.array(rows),
                actions=actions,
                rewards=rewards,
                terminations=ends,
                truncations=cuts,
            )
        )
    return made


def dataset_of(env, name, episodes, storage="hdf5"):
    return minari.create_dataset_from_buffers(
        name,
        buffers(env, episodes),
        observation_space=env.observation_space,
        action_space=env.action_space,
        data_format=storage,
    )


@pytest.mark.parametrize("storage", ["hdf5", "arrow", "parquet"])
def test_minari_of_any_storage(minari_home, storage):
    lake = gym.make("FrozenLake-v1", is_slippery=False)
    dataset = dataset_of(lake, f"lake/{storage}-v0", 40, storage)
    data = psifold.data.as_trajectories(dataset)
    assert data.n_episodes == dataset.total_episodes and data.n_actions == 4
    for ours, theirs in zip(data, dataset.iterate_episodes(), strict=True):
        assert np.array_equal(ours.observations, theirs.observations)
        assert np.array_equal(ours.rewards, theirs.rewards)
        assert ours.terminated == bool(theirs.terminations[-1])
    part = dataset.filter_episodes(lambda episode: episode.id % 2 == 0)
    assert psifold.data.as_trajectories(part).n_episodes == part.total_episodes


def test_minari_from_trajectories(minari_home, columns, points):
    for data, name in [(columns, "columns/whole-v0"), (points, "points/whole-v0")]:
        made = data.to_minari(name)
        assert made.total_episodes == data.n_episodes and made.total_steps == data.n_transitions
        again = psifold.data.as_trajectories(minari.load_dataset(name))
        assert np.array_equal(again.observations, data.observations)
        assert np.array_equal(again.actions, data.actions)
        assert np.array_equal(again.terminated, data.terminated)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([5, 9, -7, 5, 5], np.int32),
        np.arange(10, dtype=np.int32).reshape(5, 2) - 4,
        np.arange(20, dtype=np.int64).reshape(5, 2, 2),
        np.zeros((5, 4, 4, 3), np.uint8),
        np.linspace(-1, 1, 5),
    ],
)
def test_minari_has_a_space_for_every_type(minari_home, rows):
    psifold.Trajectories(**arrays(observations=rows)).to_minari("all/types-v0")
    made = minari.load_dataset("all/types-v0")
    found = [np.asarray(episode.observations) for episode in made.iterate_episodes()]
    assert np.array_equal(np.concatenate(found), rows) and found[0].dtype == rows.dtype
    space = made.observation_space
    assert all(space.contains(row if rows.ndim > 1 else np.asarray(row)) for row in rows)
    assert list(minari.list_local_datasets()) == ["all/types-v0"]


def test_minari_refuses_what_is_there_or_has_no_version(minari_home, columns):
    columns.to_minari("columns/twice-v0")
    with pytest.raises(psifold.UsageError, match="exists already"):
        columns.to_minari("columns/twice-v0")
    for wrong in ("columns", "../outside-v0", ""):
        with pytest.raises(psifold.UsageError, match="no id for Minari"):
            columns.to_minari(wrong)


def test_minari_with_continuous_actions_is_refused(minari_home):
    dataset = dataset_of(gym.make("Pendulum-v1", max_episode_steps=5), "pendulum/short-v0", 2)
    with pytest.raises(psifold.UnsupportedError, match="pendulum/short-v0 are Box"):
        psifold.cluster(dataset)


def test_h5py_in_the_same_process(columns, tmp_path):
    columns.save(tmp_path / "folder")
    path = tmp_path / "folder" / "data" / "main_data.hdf5"
    for _ in range(3):
        with h5py.File(path) as file:
            rows = file["episode_0/observations"][:]
            data = psifold.read(tmp_path / "folder")  # while h5py has it open
        assert np.array_equal(rows, data[0].observations)
    with h5py.File(tmp_path / "new.h5", "w") as file:
        file["x"] = np.arange(10)
        psifold.read(tmp_path / "folder")
        file["y"] = np.arange(10)
    with h5py.File(tmp_path / "new.h5") as file:
        assert list(file) == ["x", "y"]


def test_several_files_are_one_data_set(tmp_path):
    parts = [psifold.generate("column-world", episodes=60, seed=seed) for seed in (1, 2)]
    paths = [tmp_path / "one.npz", str(tmp_path / "two.npz")]
    for part, path in zip(parts, paths, strict=True):
        part.save(path)
    data = psifold.read(paths)
    assert data.n_episodes == 120
    assert data.n_transitions == sum(part.n_transitions for part in parts)
    run = psifold.cluster(paths, seed=0)
    assert len(run.labels) == len(parts[0].observations) + len(parts[1].observations)
    assert run.data.n_episodes == 120  # found again by both paths
    kept = tuple(Path(path).resolve() for path in paths)
    assert run.manifest["data"]["paths"] == [str(path) for path in kept]
    assert psifold.load(run.folder).data.paths == kept
    with pytest.raises(psifold.UsageError):
        psifold.read([])
