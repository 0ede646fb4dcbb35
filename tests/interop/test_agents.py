"""Our statistics beside rliable's, our event files in TensorBoard's hands."""
import json
import os
import subprocess

import numpy
import pytest
from rliable import library, metrics
from tensorboard.backend.event_processing import event_accumulator

TOOLS = os.environ.get("PSIFOLD_TOOLS") or os.path.dirname(os.environ["PSI_TOOL"])
TOOL = os.path.join(TOOLS, "agent_tool")
REPETITIONS = 20000
SLOW = 1000  # rliable takes long for these
THRESHOLDS = [0.0, 0.02, 0.03, 0.04, 0.05, 0.08]


def ours(tmp_path, x, y):
    """x, y: (runs, tasks), as rliable wants them."""
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({"x": x.T.tolist(), "y": y.T.tolist(), "thresholds": THRESHOLDS}))
    done = subprocess.run([TOOL, "statistics", path, str(REPETITIONS)], stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


def cases():
    for seed, (runs_x, runs_y, tasks) in enumerate([(5, 5, 3), (20, 20, 3), (7, 4, 1), (3, 3, 2)]):
        random = numpy.random.default_rng(seed)
        x = random.gamma(4, 0.01, (runs_x, tasks))
        y = random.gamma(3, 0.01, (runs_y, tasks))
        if seed == 0:  # ties
            x, y = x.round(2), y.round(2)
        yield x, y


def near(got, expected, spread):
    """Two bootstraps of the same scores agree up to their own noise."""
    assert abs(got[1] - expected[0]) < 0.05 * spread, (got, expected)
    assert abs(got[2] - expected[1]) < 0.05 * spread, (got, expected)


@pytest.mark.parametrize("x, y", cases())
def test_statistics(tmp_path, x, y):
    found = ours(tmp_path, x, y)
    random = numpy.random.RandomState(0)
    # the interquartile mean and its stratified bootstrap interval
    score, interval = library.get_interval_estimates(
        {"x": x}, lambda s: numpy.array([metrics.aggregate_iqm(s)]), reps=REPETITIONS,
        random_state=random)
    assert found["iqm"][0] == pytest.approx(float(score["x"][0]), rel=1e-12)
    near(found["iqm"], interval["x"][:, 0], interval["x"][1, 0] - interval["x"][0, 0])
    # probability of improvement
    score, interval = library.get_interval_estimates(
        {"p": (x, y)}, metrics.probability_of_improvement, reps=SLOW, random_state=random)
    assert found["improvement"][0] == pytest.approx(float(score["p"]), rel=1e-12)
    low, high = numpy.ravel(interval["p"])
    assert abs(found["improvement"][1] - low) < 0.06 and abs(found["improvement"][2] - high) < 0.06
    # performance profiles
    score, interval = library.create_performance_profile(
        {"x": x}, numpy.array(THRESHOLDS), reps=SLOW)
    share = 1 / x.size + 0.02  # a percentile may fall on either side of a step of one run
    for i, (estimate, low, high) in enumerate(found["profile"]):
        assert estimate == pytest.approx(float(score["x"][i]), rel=1e-12)
        assert abs(low - interval["x"][0, i]) < share and abs(high - interval["x"][1, i]) < share


def test_tensorboard_reads_the_curve(tmp_path):
    subprocess.run([TOOL, "events", tmp_path / "events.out.tfevents.psifold"], check=True)
    events = event_accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {
        "episode/steps", "episode/reward", "episode/reward_per_step", "episode/truncated",
        "agent/epsilon", "agent/loss"}
    steps = events.Scalars("episode/steps")
    assert [(e.step, e.value) for e in steps] == [(1, 100), (2, 200), (3, 300), (4, 400), (5, 800)]
    assert [e.wall_time for e in steps] == [1.75e9 + 10 * i for i in range(5)]
    assert [e.step for e in events.Scalars("agent/loss")] == [3, 4, 5]
    assert [e.value for e in events.Scalars("agent/epsilon")] == [1, 0.75, 0.5, 0.25, 0]
    assert [e.value for e in events.Scalars("episode/truncated")] == [1, 0, 0, 0, 0]
