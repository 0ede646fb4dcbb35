"""The real minari package reads what psifold writes, and psifold what minari writes."""
import io
import json
import os
import subprocess

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from conftest import same
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Tuple
from minari.data_collector import EpisodeBuffer
from PIL import Image


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


# --- what psifold writes ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("rank", [0, 1, 3, 4])
def test_minari_loads_what_psifold_writes(tool, datasets, dtype, rank):
    datasets.mkdir()
    tool.folder = datasets
    tool.make("made-up-v0", dtype, rank)
    data = minari.load_dataset("made-up-v0")
    assert data.id == "made-up-v0"
    assert data.total_episodes == 4 and data.total_steps == 24
    assert data.action_space == Discrete(5)
    assert minari.list_local_datasets()["made-up-v0"]["psifold"]["task_options"] == {"answer": 42}
    shape = (3, 40, 36, 2)[:rank]
    elements = int(np.prod(shape, dtype=int))
    row = 0
    for e, episode in enumerate(data.iterate_episodes()):
        length = 3 + 2 * e
        steps = np.arange(row, row + length)
        states = np.arange(row, row + length + 1)
        expected = (states[:, None] + np.arange(elements)) % 251
        same(episode.observations, expected.reshape(-1, *shape).astype(dtype))
        for observation in episode.observations:
            assert data.observation_space.contains(observation)
        same(episode.actions, steps % 4)
        same(episode.rewards, 0.1 * steps)
        same(episode.terminations, np.arange(length) == (length - 1 if e % 2 == 0 else -1))
        same(episode.truncations, np.arange(length) == (length - 1 if e % 2 == 1 else -1))
        same(episode.infos["latent_state"], (states % 3).astype("int32"))
        assert "total_steps=" in repr(episode)
        row += length + 1
    assert [m["total_steps"] for m in data.storage.get_episode_metadata(range(4))] == [3, 5, 7, 9]
    assert len(data.filter_episodes(lambda episode: bool(episode.terminations[-1]))) == 2
    assert len(data.sample_episodes(2)) == 2


def test_what_psifold_writes_is_the_same_every_time(tool):
    first = tool.make("a", "uint8", 3) / "data"
    second = tool.make("b", "uint8", 3) / "data"
    assert (first / "main_data.hdf5").read_bytes() == (second / "main_data.hdf5").read_bytes()
    assert tool.make("a.npz", "uint8", 3).read_bytes() == tool.make("b.npz", "uint8", 3).read_bytes()


# --- what minari writes ----------------------------------------------------------------------


def lengths(n=3):
    return [4 + 3 * e for e in range(n)]


def buffers(observe, act, rng, infos=None):
    made = []
    for e, T in enumerate(lengths()):
        made.append(
            EpisodeBuffer(
                observations=observe(T + 1),
                actions=[act() for _ in range(T)],
                rewards=[float(r) for r in rng.normal(size=T)],
                terminations=[False] * (T - 1) + [e % 2 == 0],
                truncations=[False] * (T - 1) + [e % 2 == 1],
                infos=infos or {},
            )
        )
    return made


def written(made, observation_space, action_space, **options):
    minari.create_dataset_from_buffers(
        "test/made-v0",
        made,
        observation_space=observation_space,
        action_space=action_space,
        **options,
    )
    return minari.load_dataset("test/made-v0")


def check(arrays, data, start=0, observations=lambda episode: episode.observations):
    episodes = list(data.iterate_episodes())
    same(arrays["episode_lengths"], [len(e) for e in episodes])
    same(arrays["actions"], np.concatenate([e.actions - start for e in episodes]).astype("int32"))
    same(arrays["rewards"], np.concatenate([e.rewards for e in episodes]).astype("float64"))
    same(arrays["terminated"], [bool(e.terminations[-1]) for e in episodes])
    same(arrays["truncated"], [bool(e.truncations[-1]) for e in episodes])
    same(arrays["observations"], np.concatenate([observations(e) for e in episodes]))


@pytest.mark.parametrize("start", [0, 2, -3])
@pytest.mark.parametrize("where", ["", "data", "data/main_data.hdf5"])
def test_images_and_an_action_space_that_does_not_start_at_0(tool, datasets, start, where):
    rng = np.random.default_rng(1)
    made = buffers(
        lambda n: [rng.integers(0, 256, (3, 28, 28), dtype=np.uint8) for _ in range(n)],
        lambda: np.int64(rng.integers(start, start + 5)),
        rng,
    )
    data = written(made, Box(0, 255, (3, 28, 28), np.uint8), Discrete(6, start=start))
    arrays, summary = tool.dump(datasets / "test/made-v0" / where)
    check(arrays, data, start)
    assert summary["n_actions"] == 6 == arrays["n_actions"]
    assert summary["shape"] == [3, 28, 28] and summary["dtype"] == "uint8"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_vectors(tool, datasets, dtype):
    rng = np.random.default_rng(2)
    made = buffers(
        lambda n: [(100 * rng.random(7)).astype(dtype) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    data = written(made, Box(0, 100, (7,), dtype), Discrete(2))
    check(tool.dump(datasets / "test/made-v0")[0], data)


def test_discrete_observations(tool, datasets):
    rng = np.random.default_rng(3)
    made = buffers(
        lambda n: [np.int64(rng.integers(9)) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    data = written(made, Discrete(9), Discrete(2))
    arrays, summary = tool.dump(datasets / "test/made-v0")
    check(arrays, data)
    assert summary["shape"] == [] and summary["dtype"] == "int64"


def test_binary_observations(tool, datasets):
    rng = np.random.default_rng(3)
    made = buffers(
        lambda n: [rng.integers(0, 2, 5, dtype=np.int8) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    data = written(made, MultiBinary(5), Discrete(2))
    arrays, _ = tool.dump(datasets / "test/made-v0")
    check(arrays, data, observations=lambda e: e.observations.astype("int32"))


def test_large_arrays_whose_chunks_split_the_rows(tool, datasets):
    rng = np.random.default_rng(4)
    made = buffers(
        lambda n: [rng.random((4, 50, 70)).astype(np.float32) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    data = written(made, Box(0, 1, (4, 50, 70), np.float32), Discrete(2))
    with h5py.File(datasets / "test/made-v0/data/main_data.hdf5") as file:
        assert file["episode_0/observations"].chunks[1:] != (4, 50, 70)
    check(tool.dump(datasets / "test/made-v0")[0], data)


def test_dict_observations_need_a_choice(tool, datasets):
    rng = np.random.default_rng(5)
    made = buffers(
        lambda n: {
            "image": [rng.integers(0, 256, (8, 8), dtype=np.uint8) for _ in range(n)],
            "inner": {"position": [rng.random(2) for _ in range(n)]},
        },
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    space = Dict(
        image=Box(0, 255, (8, 8), np.uint8), inner=Dict(position=Box(0, 1, (2,), np.float64))
    )
    data = written(made, space, Discrete(2))
    path = datasets / "test/made-v0"
    arrays, _ = tool.dump(path, "image")
    check(arrays, data, observations=lambda e: e.observations["image"])
    arrays, _ = tool.dump(path, "inner/position")
    check(arrays, data, observations=lambda e: e.observations["inner"]["position"])
    tool.refuse(path, "PSI_EUSAGE", "image", "inner/position")
    tool.refuse(path, "PSI_EUSAGE", "image", "inner/position", options=["colour"])


def test_a_run_remembers_the_choice(tool, datasets):
    """A walk along five cells, the last of them terminal: clustered by one entry of a Dict, and
    read again by commands that are not told which."""
    rng = np.random.default_rng(9)
    made = []
    for _ in range(200):
        cells, actions = [0], []
        while cells[-1] < 4:
            actions.append(np.int64(rng.integers(2)))
            cells.append(max(0, cells[-1] + (1 if actions[-1] else -1)))
        T = len(actions)
        made.append(
            EpisodeBuffer(
                observations={
                    "cell": [np.int64(cell) for cell in cells],
                    "noise": [rng.random(2) for _ in cells],
                },
                actions=actions,
                rewards=[0.0] * (T - 1) + [1.0],
                terminations=[False] * (T - 1) + [True],
                truncations=[False] * T,
                infos={},
            )
        )
    written(made, Dict(cell=Discrete(5), noise=Box(0, 1, (2,), np.float64)), Discrete(2))
    path, run = datasets / "test/made-v0", tool.folder / "run"

    def psifold(*arguments):
        done = subprocess.run(
            [os.environ["PSIFOLD"], *map(str, arguments)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    psifold("cluster", path, "--key", "cell", "-o", run, "-q")
    assert json.loads((run / "manifest.json").read_text())["data"]["observation_key"] == "cell"
    found = json.loads(psifold("evaluate", run, path, "--json"))
    assert found["latent_states"] == 5
    assert found["sequence_error"]["mean"] < 1e-6
    psifold("verify", run, path)
    psifold("assign", run, path, "-o", tool.folder / "labels.npy")
    labels = np.load(tool.folder / "labels.npy")
    cells = np.concatenate([episode.observations["cell"] for episode in made])
    assert len(set(zip(labels.tolist(), cells.tolist()))) == 5
    psifold("report", run, "-o", tool.folder / "report.html")
    assert "cannot be read" not in (tool.folder / "report.html").read_text()
    refused = subprocess.run(
        [os.environ["PSIFOLD"], "evaluate", run, path, "--key", "noise"], capture_output=True
    )
    assert refused.returncode != 0


def test_tuple_observations(tool, datasets):
    rng = np.random.default_rng(6)
    made = buffers(
        lambda n: (
            [np.int64(rng.integers(3)) for _ in range(n)],
            [rng.random(2).astype(np.float32) for _ in range(n)],
        ),
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    data = written(made, Tuple([Discrete(3), Box(0, 1, (2,), np.float32)]), Discrete(2))
    arrays, _ = tool.dump(datasets / "test/made-v0", "_index_1")
    check(arrays, data, observations=lambda e: e.observations[1])


@pytest.mark.parametrize("shape", [(40, 48), (40, 48, 3)])
@pytest.mark.parametrize("alike", [False, True])
def test_jpeg_frames(tool, datasets, shape, alike):
    """Frames of one length become (T+1, nbytes), others a string of bytes per frame."""
    rng = np.random.default_rng(7)
    smooth = np.add.outer(np.arange(40), np.arange(48))

    def observe(n):
        frames = []
        for i in range(n):
            step = 0 if alike else int(rng.integers(1, 90))
            grey = (smooth + step) % 256 if alike else (smooth * step) % 256
            frame = grey.astype(np.uint8)
            frames.append(frame if len(shape) == 2 else np.stack([frame, 255 - frame, frame], -1))
        return frames

    made = buffers(observe, lambda: np.int64(rng.integers(2)), rng)
    data = written(made, Box(0, 255, shape, np.uint8), Discrete(2))
    with h5py.File(datasets / "test/made-v0/data/main_data.hdf5") as file:
        stored = file["episode_0/observations"]
        assert (stored.ndim == 2) == alike
    arrays, summary = tool.dump(datasets / "test/made-v0")
    check(arrays, data)  # the same pixels as Pillow's
    assert summary["shape"] == list(shape)


def test_images_stored_without_jpeg(tool, datasets):
    rng = np.random.default_rng(8)
    made = buffers(
        lambda n: [rng.integers(0, 256, (40, 48, 3), dtype=np.uint8) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    data = written(made, Box(0, 255, (40, 48, 3), np.uint8), Discrete(2), jpeg_encoding=False)
    check(tool.dump(datasets / "test/made-v0")[0], data)


def test_a_damaged_jpeg_frame_is_refused(tool, datasets):
    rng = np.random.default_rng(9)
    made = buffers(
        lambda n: [rng.integers(0, 256, (40, 48), dtype=np.uint8) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    written(made, Box(0, 255, (40, 48), np.uint8), Discrete(2))
    path = datasets / "test/made-v0/data/main_data.hdf5"
    with h5py.File(path, "r+") as file:
        frames = file["episode_1/observations"]
        frames[2] = frames[2][:20]
    tool.refuse(path, "PSI_EFORMAT", "JPEG")


def test_a_frame_of_another_size_is_refused(tool, datasets):
    rng = np.random.default_rng(10)
    made = buffers(
        lambda n: [rng.integers(0, 256, (40, 48), dtype=np.uint8) for _ in range(n)],
        lambda: np.int64(rng.integers(2)),
        rng,
    )
    written(made, Box(0, 255, (40, 48), np.uint8), Discrete(2))
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((48, 40), np.uint8)).save(buffer, format="JPEG")
    path = datasets / "test/made-v0/data/main_data.hdf5"
    with h5py.File(path, "r+") as file:
        file["episode_1/observations"][2] = np.frombuffer(buffer.getvalue(), np.uint8)
    tool.refuse(path, "PSI_EDATA", "48", "40")


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CartPole-v1"])
def test_a_real_environment(tool, datasets, name):
    env = gym.make(name, max_episode_steps=12)
    env.action_space.seed(1)
    made = []
    for seed in range(8):
        observation, _ = env.reset(seed=seed)
        episode = EpisodeBuffer(seed=seed, observations=[observation], actions=[], infos={})
        done = False
        while not done:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, _ = env.step(action)
            episode.observations.append(observation)
            episode.actions.append(action)
            episode.rewards.append(reward)
            episode.terminations.append(terminated)
            episode.truncations.append(truncated)
            done = terminated or truncated
        made.append(episode)
    data = written(made, env.observation_space, env.action_space)
    arrays, summary = tool.dump(datasets / "test/made-v0")
    check(arrays, data)
    assert summary["n_actions"] == env.action_space.n


def test_continuous_actions_are_refused(tool, datasets):
    rng = np.random.default_rng(11)
    made = buffers(
        lambda n: [rng.random(3) for _ in range(n)], lambda: rng.random(2).astype(np.float32), rng
    )
    written(made, Box(0, 1, (3,), np.float64), Box(0, 1, (2,), np.float32))
    tool.refuse(datasets / "test/made-v0", "PSI_EUNSUPPORTED", "Box", "Discrete")
