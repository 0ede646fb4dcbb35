"""What a run is good for: predictions, models, plans, environments, the estimator, the report."""

import json
import os
import pathlib
import random
import subprocess

import gymnasium as gym
import numpy as np
import pytest
import sklearn.base
from gymnasium.utils.env_checker import check_env
from sklearn.utils import estimator_checks

import psifold


def test_a_run_read_back_is_the_same(run, tmp_path):
    copy = run.save(tmp_path / "copy")
    again = psifold.load(tmp_path / "copy")
    for other in (copy, again):
        assert other.n_states == 4 and other.verdict == "certain" and other.advice == []
        assert np.array_equal(other.labels, run.labels)
        assert other.margin == run.margin and "nats" in other.verdict_sentence
    assert run.confidence.shape == run.labels.shape
    assert [step["clusters"] for step in run.refinements] == [3, 4, 4]
    assert repr(run) == "<psifold.Run: 4 latent states, certain>" and "certain" in str(run)


# ---- verdicts ---------------------------------------------------------------------------------


def steps_of_one(before, after, rewards, **more):
    """Episodes of one step each, all with action 0."""
    n = len(before)
    rows = np.stack([before, after], axis=1).reshape(2 * n, *np.shape(before)[1:])
    return psifold.Trajectories(rows, np.zeros(n, int), rewards, [1] * n, [True] * n, **more)


def test_an_action_that_nobody_took():
    """Two observations are one, as far as the only action goes that was ever taken."""
    places = np.tile(np.array([0, 1], np.int64), 200)
    run = psifold.cluster(steps_of_one(places, np.full(400, 2), np.ones(400), n_actions=2))
    assert (run.n_states, run.verdict) == (2, "undetermined")
    assert [(d["kind"], d["state"], d["other"]) for d in run.undetermined] == [("untried", -1, 1)]
    assert run.advice == ["action 1 was never taken: what it does is not known"]


def test_what_was_seen_a_few_times_only(quick):
    """Three of a thousand steps pay, and nobody can tell whether it is by where they began."""
    dice = np.random.default_rng(0)
    before, after = dice.random((2, 1000, 2), np.float32)
    rewards = np.zeros(1000)
    rewards[[100, 500, 900]] = 1.0
    run = psifold.cluster(steps_of_one(before, after, rewards), threads=1, **quick)
    assert (run.n_states, run.verdict) == (2, "undetermined")
    assert [(d["kind"], d["visits"]) for d in run.undetermined] == [("seldom", 3)]
    assert "seen 3 times only" in run.advice[0] and run.advice[0] in str(run)


def test_what_is_continuous_has_no_small_answer(tmp_path):
    """Every reward is 1, and an episode ends when the point has left: how long it lasts is a
    function of a number that no finite set of states has. The command says the same."""
    dice = random.Random(5)
    places, actions, lengths = [], [], []
    for _ in range(600):
        place, begin = dice.uniform(-0.5, 0.5), len(actions)
        places.append([place])
        while abs(place) <= 1:
            actions.append(dice.randrange(2))
            place = 1.3 * place + (0.17 if actions[-1] else -0.17)
            places.append([place])
        lengths.append(len(actions) - begin)
    rewards = np.ones(len(actions))
    data = psifold.Trajectories(np.array(places), actions, rewards, lengths, [True] * 600)
    run = psifold.cluster(data, threads=1)
    assert run.verdict == "no-small-answer" and "no small set" in run.verdict_sentence
    assert [(d["kind"], d["state"], d["other"]) for d in run.undetermined] == [("growth", -1, -1)]
    assert len(run.advice) == 1 and "cells of a grid" in run.advice[0]
    quarter, half, whole = run.manifest["result"]["growth"]
    assert quarter < half < whole == run.n_states
    data.save(tmp_path / "line.npz")
    found = command("cluster", tmp_path / "line.npz", "-o", tmp_path / "run", "--threads", 1)
    assert found["verdict"] == run.verdict and found["latent_states"] == run.n_states
    assert found["undetermined"] == run.undetermined and found["advice"] == run.advice


def command(*arguments):
    """What the command says, with --json."""
    program = pathlib.Path(os.environ["PSIFOLD_FLAT"]).parents[1] / "psifold"
    words = [str(program), *map(str, arguments), "--json", "--quiet"]
    return json.loads(subprocess.check_output(words))


def test_the_command_leaves_the_same_bytes(points, quick, tmp_path):
    points.save(tmp_path / "points.npz")
    options = [word for name, n in quick.items() for word in (f"--{name.replace('_', '-')}", n)]
    folder = tmp_path / "theirs"
    found = command(
        "cluster", tmp_path / "points.npz", "-o", folder, "--seed", 3, "--threads", 1, *options
    )
    run = psifold.cluster(tmp_path / "points.npz", seed=3, threads=1, progress=False, **quick)
    assert (run.n_states, run.verdict) == (found["latent_states"], found["verdict"])
    assert set(run.manifest["files"]) >= {"clusters.npy", "representation.safetensors"}
    for name in run.manifest["files"]:
        if name != "refinements.jsonl":  # it says how long each took
            assert (run.folder / name).read_bytes() == (folder / name).read_bytes(), name
    fresh, labels = psifold.generate("point-column-world", episodes=50, seed=9), tmp_path / "l.npy"
    fresh.save(tmp_path / "fresh.npz")
    command("assign", folder, tmp_path / "fresh.npz", "-o", labels, "--threads", 1)
    found, confidence = run.predict(fresh, return_confidence=True)
    assert np.array_equal(found, np.load(labels))
    assert np.array_equal(found == 0, fresh.latent_states == 0) and (found == 0).any()
    assert (confidence[found == 0] == 1.0).all()


def test_a_damaged_run_is_refused(run, tmp_path):
    run.save(tmp_path / "copy")
    path = tmp_path / "copy" / "clusters.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"\1\1\1\1")
    with pytest.raises(psifold.FormatError, match=r"clusters\.npy"):
        psifold.load(tmp_path / "copy")
    with pytest.raises(psifold.FileError):
        psifold.load(tmp_path / "nowhere")


def test_a_table_predicts_what_it_has_seen(run, columns):
    labels, confidence = run.predict(columns.observations, return_confidence=True)
    going = run.labels > 0
    assert np.array_equal(labels[going], run.labels[going]) and confidence.dtype == np.float32
    strange = np.array([-5, 10**9], columns.observations.dtype)
    labels, confidence = run.predict(strange, return_confidence=True)
    assert list(labels) == [-1, -1] and list(confidence) == [0.0, 0.0]


def test_a_network_predicts_what_it_has_not_seen(points_run):
    fresh = psifold.generate("point-column-world", episodes=50, seed=99)
    labels = points_run.predict(fresh.observations)
    going = fresh.latent_states > 0
    counts = np.zeros((points_run.n_states, fresh.latent_states.max() + 1), int)
    np.add.at(counts, (labels[going], fresh.latent_states[going]), 1)
    assert counts.max(axis=1).sum() > 0.97 * going.sum()
    far = np.full((3, 2), 1e4, fresh.observations.dtype)
    assert list(points_run.predict(far)) == [-1, -1, -1]
    assert (points_run.predict(fresh.observations, min_confidence=1.1) == -1).all()


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (np.zeros((4, 3), np.float32), psifold.ShapeError, "2 numbers|of 3"),
        (np.zeros((4, 2), np.uint8), psifold.ShapeError, "uint8"),
        (np.zeros((4, 2), np.float16), psifold.ShapeError, "float16"),
        (np.zeros((8, 2), np.float32)[::2], psifold.ShapeError, "contiguous"),
        (np.zeros((0, 2), np.float32), psifold.ShapeError, "empty"),
        (np.full((4, 2), np.nan, np.float32), psifold.DataError, "not a number"),
        ([[None, 1]], psifold.ShapeError, "object"),
    ],
)
def test_hostile_observations(points_run, rows, error, words):
    with pytest.raises(error, match=words):
        points_run.predict(rows)


def test_the_model(run):
    model = run.model
    assert model.n_states == 4 and len(model.M) == model.n_actions == 4
    rows = np.asarray(model.M[3].sum(axis=1)).ravel()
    assert list(rows) == [0.0, 1.0, 1.0, 1.0] and model.terminal.tolist() == [True] + [False] * 3
    assert model.w.shape == (4, 4) and model.w[3][3] == 1.0
    graph = model.to_networkx()
    assert graph.number_of_nodes() == 4 and graph.nodes[0]["terminal"]
    frame = model.to_pandas()
    assert len(frame) == graph.number_of_edges() == len(model.next)
    plan = run.plan(gamma=0.5)
    assert plan.converged and plan.policy.tolist() == [-1, 3, 3, 3]
    assert np.allclose(plan.value, [0.0, 0.25, 0.5, 1.0])
    assert plan.to_pandas().loc[3, "action"] == 3
    with pytest.raises(psifold.UsageError):
        run.plan(gamma=1.5)
    with pytest.raises(psifold.UsageError):
        run.plan(unseen="maybe")
    with pytest.raises(IndexError):
        model.M[4]


def test_quotients_of_tables_and_files(tmp_path, run):
    table = gym.make("FrozenLake-v1", is_slippery=False).unwrapped.P
    found = psifold.quotient(table)
    assert len(found.labels) >= 16 and found.n_states < len(found.labels)
    assert found.summary["defect"] == 0.0
    features = psifold.quotient(table, epsilon=1e-7)  # Algorithm 1 finds the same blocks
    assert features.labels.tolist() == found.labels.tolist()
    with pytest.raises(psifold.UsageError):
        psifold.quotient(table, epsilon=1e-7, gamma=1.0)
    best = found.plan(gamma=0.9).value[found.labels[0]]
    assert np.isclose(best, 0.9**5)
    run.export(tmp_path / "latent.drn")
    assert psifold.quotient(tmp_path / "latent.drn").n_states == 4
    with pytest.raises(psifold.PsifoldError):
        psifold.quotient({0: {0: [(0.5, 0, 0.0, False)]}})
    with pytest.raises(psifold.UsageError):
        psifold.quotient({0: {0: [(object(), 0, 0.0, False)]}})


def test_exports(points_run, run, tmp_path):
    for name in ("net.onnx", "net.safetensors", "model.umb"):
        points_run.export(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(psifold.MissingError, match="table"):
        run.export(tmp_path / "table.onnx")


# ---- Gymnasium --------------------------------------------------------------------------------


def lake():
    return gym.make("FrozenLake-v1", is_slippery=False)


@pytest.fixture(scope="module")
def lake_run():
    return psifold.cluster(psifold.collect(lake(), episodes=3000, seed=0), seed=0)


def test_environments_pass_gymnasium_s_own_check(lake_run, run):
    check_env(psifold.LatentObservation(lake(), lake_run), skip_render_check=True)
    check_env(run.to_env(), skip_render_check=True)


def test_latent_observations(lake_run):
    env = psifold.LatentObservation(lake(), lake_run)
    assert env.observation_space == gym.spaces.Discrete(lake_run.n_states)
    plain = lake()
    for seed in range(20):
        latent, _ = env.reset(seed=seed)
        seen, _ = plain.reset(seed=seed)
        over = False
        env.action_space.seed(seed)
        while not over:
            assert latent in env.observation_space
            expected = lake_run.predict(np.array([seen], np.int64))[0]
            assert latent == expected
            action = env.action_space.sample()
            latent, reward, terminated, truncated, _ = env.step(action)
            seen, same, *_ = plain.step(action)
            assert reward == same
            over = terminated or truncated


def test_vectors_of_environments(lake_run):
    made = gym.vector.SyncVectorEnv([lake] * 3)
    env = psifold.LatentObservation(made, lake_run)
    assert isinstance(env, psifold.LatentVectorObservation)
    latent, _ = env.reset(seed=0)
    assert latent.shape == (3,) and env.single_observation_space.n == lake_run.n_states
    for _ in range(50):
        latent, rewards, *_ = env.step(env.action_space.sample())
        assert env.observation_space.contains(latent) and rewards.shape == (3,)


def test_stacked_observations(ring, ring_run, tmp_path):
    assert (ring_run.n_states, ring_run.verdict, ring_run.stack) == (5, "certain", 2)
    plain = psifold.cluster(ring_run.data)
    assert plain.verdict == "not-markov" and any("--stack 2" in a for a in plain.advice)
    assert psifold.load(ring_run.save(tmp_path / "copy").folder).stack == 2
    # trajectories, one episode, and rows that are stacked already
    data = psifold.collect(ring(), episodes=20, seed=5)
    labels = ring_run.predict(data)
    again, sure = ring_run.predict(data, return_confidence=True)
    assert np.array_equal(labels, again) and (sure > 0.5).all()
    at = 0
    for episode in data:
        rows = episode.observations
        here = labels[at : at + len(rows)]
        at += len(rows)
        assert np.array_equal(ring_run.predict(np.ascontiguousarray(rows)), here)
        pairs = np.stack([np.concatenate([rows[:1], rows[:-1]]), rows], axis=1)
        assert np.array_equal(ring_run.predict(pairs), here)
        rewards = ring_run.model.reward[here[:-1], episode.actions]
        assert np.array_equal(rewards, episode.rewards)
    with pytest.raises(psifold.ShapeError):
        ring_run.predict(np.zeros((2, 3), np.int64))


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_environments_seen_by_a_run_that_stacks(ring, ring_run, mode):
    env = psifold.LatentObservation(ring(), ring_run)
    lengths = [3, 20, 4]  # episodes of a vector of environments end at different times
    made = gym.vector.SyncVectorEnv(
        [lambda n=n: ring(n) for n in lengths],
        autoreset_mode=getattr(gym.vector.AutoresetMode, mode),
    )
    many = psifold.LatentObservation(made, ring_run)
    reward = ring_run.model.reward
    for seed in range(5):
        latent, _ = env.reset(seed=seed)
        latents, _ = many.reset(seed=seed)
        over, over_once = np.zeros(3, bool), False
        for t in range(60):
            action, actions = t * seed % 3 % 2, (t + np.arange(3)) % 2
            if not over_once:
                expected = reward[latent, action]
                latent, got, _, over_once, _ = env.step(action)
                assert got == expected
            if mode == "DISABLED" and over.any():
                latents, _ = many.reset(options={"reset_mask": over})
                over[:] = False
            expected = reward[latents, actions]
            skipped = over & (mode == "NEXT_STEP")  # the step that begins an episode anew
            latents, got, _, over, _ = many.step(actions)
            assert np.array_equal(got[~skipped], expected[~skipped])


def test_what_was_never_seen_is_said(corridor):
    short = psifold.collect(corridor(n=5), episodes=100, seed=0)
    run = psifold.cluster(short)
    env = psifold.LatentObservation(corridor(), run)
    strange = 0
    latent, _ = env.reset(seed=0)
    for _ in range(200):
        latent, _, over, _, info = env.step(env.action_space.sample())
        assert latent in env.observation_space
        strange += info.get("latent_unknown", False)
        if over:
            env.reset()
    assert strange > 0
    strict = psifold.LatentObservation(corridor(), run, unknown="error")
    with pytest.raises(psifold.DataError, match="unlike anything"):
        for seed in range(50):
            strict.reset(seed=seed)


def test_the_latent_mdp_behaves_like_the_task(run):
    env = run.to_env()
    returns = []
    best = run.plan(gamma=0.95).policy
    for seed in range(20):
        state, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            state, reward, terminated, truncated, _ = env.step(best[state])
            total, over = total + reward, terminated or truncated
        returns.append(total)
    assert returns == [1.0] * 20
    with pytest.raises(psifold.ShapeError, match="distribution"):
        run.to_env(start=[1.0])
    with pytest.raises(IndexError, match="4 actions"):
        env.step(4)


# ---- scikit-learn -----------------------------------------------------------------------------


def test_the_estimator(columns, run):
    made = psifold.RewardPredictiveClusterer(seed=0)
    found = made.fit(columns)
    assert found is made and made.n_states_ == 4 and made.verdict_ == "certain"
    assert np.array_equal(made.labels_, run.labels)
    assert np.array_equal(made.fit_predict(columns), run.labels)
    assert np.array_equal(made.predict(columns.observations), run.predict(columns.observations))
    copy = sklearn.base.clone(made.set_params(seed=5))
    assert copy.get_params()["seed"] == 5 and not hasattr(copy, "run_")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        copy.predict(columns.observations)
    with pytest.raises(psifold.UsageError):
        psifold.RewardPredictiveClusterer(method="guess").fit(columns)


# The checks of check_estimator that do not call fit with a matrix, which is no data set here.
@pytest.mark.parametrize(
    "name",
    [
        "check_parameters_default_constructible",
        "check_no_attributes_set_in_init",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_mixin_order",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
    ],
)
def test_scikit_learn_s_own_checks(name):
    check = getattr(estimator_checks, name)
    check("RewardPredictiveClusterer", psifold.RewardPredictiveClusterer())


# ---- the report -------------------------------------------------------------------------------


def test_the_report_with_and_without_gnuplot(run, tmp_path, monkeypatch):
    made = run.report(tmp_path / "with.html")
    assert made["pictures"] and made["latent_states"] == 4
    monkeypatch.setenv("PATH", str(tmp_path))
    made = run.report(tmp_path / "without.html")
    assert made["figures"] == 0 and made["finished"]
    text = (tmp_path / "without.html").read_text()
    assert "gnuplot" in text
    assert os.listdir(tmp_path) and "<iframe srcdoc" in run._repr_html_()
