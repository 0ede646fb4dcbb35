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
SLOW = 2000  # rliable takes long for these
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


def check_interval(got, draws, tolerance):
    """Our bounds are the 2.5 % and 97.5 % points of rliable's resampled scores. They are compared by
    rank, not by value: tied scores put the draws on a grid, where two bootstraps may well end on
    neighbouring steps."""
    for bound, level in zip(got[1:], (0.025, 0.975)):
        below, up_to = numpy.mean(draws < bound - 1e-12), numpy.mean(draws <= bound + 1e-12)
        assert below <= level + tolerance and up_to >= level - tolerance, (got, level, below, up_to)


def iqm(x):
    """As metrics.aggregate_iqm, which takes many times as long: 20,000 draws are asked."""
    ordered = numpy.sort(x, axis=None)
    return ordered[ordered.size // 4:ordered.size - ordered.size // 4].mean()


def improvement(x, y):
    """As metrics.probability_of_improvement."""
    ahead = x[:, None] - y[None]
    return ((ahead > 0).mean() + (ahead >= 0).mean()) / 2


@pytest.mark.parametrize("x, y", cases())
def test_ours_are_rliables(x, y):
    """Of the scores and of resampled ones, to the last digits."""
    dice = numpy.random.default_rng(7)
    for _ in range(200):
        assert iqm(x) == pytest.approx(metrics.aggregate_iqm(x), rel=1e-12)
        assert improvement(x, y) == pytest.approx(metrics.probability_of_improvement(x, y),
                                                  rel=1e-12)
        x, y = (dice.choice(scores, len(scores)) for scores in (x, y))


@pytest.mark.parametrize("x, y", cases())
def test_statistics(tmp_path, x, y):
    found = ours(tmp_path, x, y)
    numpy.random.seed(0)  # rliable draws from numpy's own stream, whatever it is told
    # five standard deviations of the rank of a percentile in so many draws
    few, many = (5 * (0.025 * 0.975 * (1 / n + 1 / REPETITIONS)) ** 0.5 for n in (SLOW, REPETITIONS))
    assert found["iqm"][0] == pytest.approx(float(metrics.aggregate_iqm(x)), rel=1e-12)
    draws = library.StratifiedBootstrap(x).apply(lambda x: numpy.array([iqm(x)]), REPETITIONS)
    check_interval(found["iqm"], draws[:, 0], many)

    assert found["improvement"][0] == pytest.approx(
        float(metrics.probability_of_improvement(x, y)), rel=1e-12)
    draws = library.StratifiedIndependentBootstrap(x, y).apply(
        lambda x, y: numpy.array([improvement(x, y)]), SLOW)
    check_interval(found["improvement"], draws[:, 0], few)

    profile = library.score_distributions(x, THRESHOLDS)
    draws = library.StratifiedBootstrap(x).apply(
        lambda scores: library.score_distributions(scores, THRESHOLDS), SLOW)
    for i, got in enumerate(found["profile"]):
        assert got[0] == pytest.approx(float(profile[i]), rel=1e-12)
        check_interval(got, draws[:, i], few)


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
