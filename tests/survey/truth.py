"""What is true of a finite task: its coarsest reward-predictive partition, and how far an answer is
from it.

A model is a dict: state -> one list per action -> outcomes (probability, next state, reward). A
next state of None is the end of the episode. States are whatever the task uses as keys. The end of
a time limit is no end in this sense: the task would have gone on.
"""

from math import fsum

import numpy as np
from scipy.optimize import linear_sum_assignment

DIGITS = 9  # probabilities and rewards are sums of few fractions: what differs does so much earlier
FEW = 5  # visits of a state and action under which a data set can hardly tell what it does


def explore(starts, outcomes):
    """The model of all states that can be reached from starts; outcomes(state) is its row."""
    model, waiting = {}, list(starts)
    while waiting:
        state = waiting.pop()
        if state in model:
            continue
        model[state] = outcomes(state)
        waiting.extend(
            after
            for row in model[state]
            for probability, after, _ in row
            if after is not None and probability > 0 and after not in model
        )
    return model


def partition(model, whole_distribution=False):
    """state -> block, for the coarsest partition in which block and action determine the expected
    reward and the probability of each next block. The end is block 0. With whole_distribution the
    block must determine the joint distribution of reward and next block, which is what a program
    that predicts reward classes sees; where both agree, there is no question which of them was
    meant."""
    block = dict.fromkeys(model, 1)
    block[None] = 0
    count = 1
    while True:
        names = {}
        refined = {
            state: names.setdefault(
                (block[state], signature(rows, block, whole_distribution)), len(names) + 1
            )
            for state, rows in model.items()
        }
        refined[None] = 0
        if len(names) == count:
            return refined
        block, count = refined, len(names)


def signature(rows, block, whole_distribution):
    """What must be equal for two states to stay together, given the blocks so far."""
    found = []
    for row in rows:
        parts = {}
        for probability, after, reward in row:
            kind = (block[after], reward) if whole_distribution else block[after]
            parts.setdefault(kind, []).append(probability)
        expected = fsum(probability * reward for probability, _, reward in row)
        found.append(
            (
                round(expected, DIGITS) + 0.0,  # no minus zero
                tuple(
                    sorted((kind, round(fsum(sorted(ps)), DIGITS)) for kind, ps in parts.items())
                ),
            )
        )
    return tuple(found)


def coverage(model, n_actions, states, actions):
    """How often the data show each pair of a state that can be reached and an action."""
    number = {state: i for i, state in enumerate(model)}
    visits = np.zeros((len(number), n_actions), int)
    np.add.at(visits, ([number[state] for state in states], actions), 1)
    return {
        "pairs": int(visits.size),
        "fewest_visits": int(visits.min()),
        "pairs_under_5": int((visits < FEW).sum()),
        "states_never_left": int((visits.sum(1) == 0).sum()),
    }


def check(model, before, actions, rewards, after):
    """The model is held against the data, so that a mistake in it is no mistake of psifold's:
    nothing may happen that it excludes, and no outcome may be six standard deviations too frequent
    or rare. Returns the largest deviation."""
    visits, seen = {}, {}
    for state, action, reward, then in zip(
        before, actions.tolist(), rewards.tolist(), after, strict=True
    ):
        pair = (state, action)
        visits[pair] = visits.get(pair, 0) + 1
        seen.setdefault(pair, {}).setdefault((then, reward), 0)
        seen[pair][then, reward] += 1
    worst = 0.0
    for (state, action), count in visits.items():
        chance = {}
        for probability, then, reward in model[state][action]:
            chance[then, float(reward)] = chance.get((then, float(reward)), 0.0) + probability
        for outcome in seen[state, action]:
            assert chance.get(outcome, 0.0) > 0, (
                f"the model excludes {outcome} after {state}, {action}"
            )
        for outcome, probability in chance.items():
            variance = count * probability * (1 - probability)
            if variance > FEW:
                worst = max(
                    worst,
                    abs(seen[state, action].get(outcome, 0) - count * probability) / variance**0.5,
                )
    assert worst < 6, f"an outcome is {worst:.1f} standard deviations from what the model says"
    return worst


def aliased(observations, truth, inner):
    """How many observations that are no end are shown by states of different blocks: then no
    function of the observation is right, and being certain is wrong whatever was found."""
    if observations.dtype.kind == "f":
        return 0  # noise: no two are equal, and looks are far apart by construction
    seen = {}
    for i in np.flatnonzero(inner):
        seen.setdefault(observations[i].tobytes(), set()).add(int(truth[i]))
    return sum(len(blocks) > 1 for blocks in seen.values())


def misplaced(truth, labels):
    """How many observations are elsewhere under the best one-to-one matching of labels and blocks.
    Observations without a label (-1) are misplaced."""
    kept = labels >= 0
    if not kept.any():
        return len(truth)
    blocks, true_number = np.unique(truth[kept], return_inverse=True)
    names, found_number = np.unique(labels[kept], return_inverse=True)
    table = np.zeros((len(blocks), len(names)), int)
    np.add.at(table, (true_number, found_number), 1)
    return len(truth) - int(table[linear_sum_assignment(-table)].sum())


def self_check():
    """The real tasks hardly fold, so that a partition that is too fine would go unnoticed there.
    Here: a grid of three rows and four columns, where only the column matters and the row drifts;
    the last column pays and ends, in one row of the second version by the toss of a coin."""
    for lucky in (False, True):

        def outcomes(state, lucky=lucky):
            row, column = state
            drift = [(0.25, (row - 1) % 3), (0.75, (row + 1) % 3)]
            paid = (
                [(0.5, None, 2.0), (0.5, None, 0.0)] if lucky and row == 0 else [(1.0, None, 1.0)]
            )
            right = paid if column == 3 else [(p, (r, column + 1), 0.0) for p, r in drift]
            return [right, [(1.0, (r, column), 0.0) for r in [(row + 1) % 3]]]

        model = explore([(0, 0)], outcomes)
        assert len(model) == 12
        block = partition(model)
        assert len(set(block.values())) == 5
        assert all(block[state] == block[0, state[1]] for state in model if state)
        finer = partition(model, whole_distribution=True)
        assert len(set(finer.values())) == (13 if lucky else 5)
    labels = np.array([3, 3, 1, 1, 1, -1])
    assert misplaced(np.array([0, 0, 1, 1, 1, 1]), labels) == 1
    assert misplaced(np.array([0, 1, 1, 1, 1, 1]), labels) == 2
    assert aliased(np.array([5, 5, 6, 6]), np.array([1, 2, 3, 3]), np.ones(4, bool)) == 1
