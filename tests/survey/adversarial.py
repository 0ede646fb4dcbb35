"""A survey of tasks that tempt a program to be wrong and certain (adversaries.py, hidden.py), as
tables and as vectors.

    adversarial.py make FOLDER FROM TO [--only FAMILY]
    adversarial.py run FOLDER --psifold PATH [--json OUT] [--limit SECONDS] [--only FAMILY] [--jobs
    N]

As in vectors.py, with these differences. No draw is thrown away because its data tell too little.
The truth is that of the whole task: where states differ that no data could tell apart, because an
action was never taken, the partition to be found is the one that the data show, and being certain
of it is wrong. Where what is observed does not tell the latent state, being certain is wrong
whatever was found.

Every fourth instance of a family is shown as vectors in one to eight dimensions. Instances 0 to
1081, 30000 to 30819 and 40000 to 40122 were looked at in development; others are to be looked at
when nothing is changed any more.
"""

import argparse
import json
import pathlib
import sys

import adversaries
import hidden
import latent
import looks
import numpy as np
from traps import walk
from vectors import add_runner, run

# Instance n is of family n modulo their number.
FAMILIES = {
    one.__name__: one
    for one in (
        adversaries.far,
        adversaries.close,
        adversaries.odd_guise,
        adversaries.guises,
        adversaries.certain_guises,
        adversaries.seldom,
        adversaries.never,
        adversaries.short,
        adversaries.trapped,
        adversaries.ending,
        adversaries.many,
        adversaries.mazes,
        adversaries.copies,
        adversaries.leak,
        adversaries.levers,
        adversaries.shifting,
        adversaries.heavy,
        adversaries.uneven,
        adversaries.rounded,
        adversaries.nearly,
        adversaries.gambles,
        adversaries.arrival,
        hidden.aliased,
        hidden.counter,
        hidden.rooms_and_counter,
        hidden.mixture,
        hidden.weather,
        hidden.cue,
        hidden.toggle,
        hidden.sticky,
        hidden.second,
        hidden.delayed,
        hidden.missing,
        hidden.confused,
        hidden.late,
        hidden.lasting_noise,
        hidden.drift,
        hidden.parity,
        hidden.clock,
        hidden.nothing,
        hidden.beside,
    )
}


def same_partition(one, other):
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return pairs == len(np.unique(one)) == len(np.unique(other))


def as_shown(task, observed, walks):
    """The task with the actions that the data show, for every state that looks the same."""
    visits = np.zeros((int(observed.max()) + 1, task.policy.shape[1]))
    at = walks.steps()
    np.add.at(visits, (observed[walks.states[at]], walks.actions), 1)
    return latent.Task(task.move, task.reward, task.start, visits[observed], task.ends)


def restricted(task, states):
    """Only these states can be reached: what leads to others, and never did, leads nowhere else."""
    start, present = np.zeros(len(task.ends)), np.zeros(len(task.ends), bool)
    present[states] = True
    start[states] = 1 / len(states)
    move = task.move * present
    total = move.sum(2, keepdims=True)
    move = np.divide(move, total, out=np.zeros_like(move), where=total > 0)
    return latent.Task(move, task.reward, start, task.policy, task.ends)


def truth_of(trap, walks):
    """The block of every row, whether being certain of it can be right, and why not."""
    task = trap.task
    observed = np.arange(len(task.ends)) if trap.seen is None else trap.seen
    present = np.unique(walks.states)
    every = latent.Task(task.move, task.reward, task.start, np.ones_like(task.policy), task.ends)
    whole, _ = latent.minimise(restricted(every, present))
    shown, one_answer = latent.minimise(restricted(as_shown(task, observed, walks), present))
    markov = trap.markov
    if markov is None:  # what is observed must tell the block
        pairs = np.unique(np.stack([observed[present], whole[present]]), axis=1)
        markov = len(np.unique(pairs[0])) == pairs.shape[1]
    decided = one_answer and same_partition(whole[present], shown[present])
    truth = np.unique(shown[walks.states], return_inverse=True)[1].astype(np.int32)
    return truth, bool(markov and one_answer), bool(decided)


def hidden_nats(trap, walks):
    """Nats by which the whole task explains what is seen better than the best law of the next
    observation and reward, given observation and action: what knowing the task could tell a program
    at most."""
    task, observed = trap.task, trap.seen
    first = np.concatenate([[0], np.cumsum(walks.lengths + 1)[:-1]])
    start = np.cumsum(walks.lengths) - walks.lengths
    belief = np.tile(task.start, (len(first), 1)) * (
        observed[None] == observed[walks.states[first]][:, None]
    )
    belief /= belief.sum(1, keepdims=True)
    total = 0.0
    for t in range(int(walks.lengths.max())):
        on = np.flatnonzero(walks.lengths > t)
        action, paid = walks.actions[start[on] + t], walks.rewards[start[on] + t]
        seen = observed[walks.states[first[on] + t + 1]]
        for a in range(task.policy.shape[1]):
            for r in np.unique(paid[action == a]):
                chosen = (action == a) & (paid == r)
                mean = task.reward[:, a]
                odds = (mean if r else 1 - mean) if task.coins else np.abs(mean - r) < latent.SAME
                ahead = belief[on[chosen]] @ (task.move[:, a] * odds)
                ahead *= observed[None] == seen[chosen][:, None]
                total += np.log(ahead.sum(1)).sum()
                belief[on[chosen]] = ahead / ahead.sum(1, keepdims=True)
    at = walks.steps()
    pair = observed[walks.states[at]] * task.policy.shape[1] + walks.actions
    then = np.stack(
        [pair, observed[walks.states[at + 1]], np.unique(walks.rewards, return_inverse=True)[1]]
    )
    joint, n = np.unique(then, axis=1, return_counts=True)
    visits = np.bincount(pair)
    return float(total - (n * np.log(n / visits[joint[0]])).sum())


def shown_as(trap, rng, observed, dimensions):
    """Indices in no order; or vectors, nine standard deviations apart."""
    n = int(observed.max()) + 1
    if dimensions is None:
        return rng.permutation(n)[observed].astype(np.int64)
    look, _ = looks.blobs(rng, n, dimensions)
    return look(rng, observed, None).astype(np.float32)


def drawn(number):
    name = list(FAMILIES)[number % len(FAMILIES)]
    variant = number // len(FAMILIES)
    rng = np.random.default_rng([number, 0x616476])
    trap = FAMILIES[name](rng, variant)
    walks = walk(trap, rng)
    truth, markov, decided = truth_of(trap, walks)
    observed = walks.states if trap.seen is None else trap.seen[walks.states]
    if trap.blur:
        observed = trap.blur(rng, observed, walks)
    rewards = trap.pay(rng, walks) if trap.pay else walks.rewards
    dimensions = int(rng.integers(1, 9)) if variant % 4 == 3 and observed.max() < 100 else None
    observations = shown_as(trap, rng, observed, dimensions)
    n_actions = trap.task.policy.shape[1]
    facts = {
        "number": number,
        "family": name,
        "dimensions": dimensions or 0,
        "markov": markov,
        "decided": decided,
        "latent_states": int(truth.max()) + 1,
        "observations": len(np.unique(observed)),
        "actions": n_actions,
        "transitions": len(walks.actions),
        "episodes": len(walks.lengths),
        "weakest_pair_nats": None,
        "parameters": trap.parameters,
    }
    if truth.max() < 100 and markov:
        facts["weakest_pair_nats"] = latent.weakest_pair(truth, walks, n_actions)
    if not markov and trap.seen is not None and not trap.pay and not trap.blur:
        facts["hidden_nats"] = hidden_nats(trap, walks)
    data = dict(
        observations=observations,
        actions=walks.actions.astype(np.int32),
        rewards=rewards,
        episode_lengths=walks.lengths,
        terminated=walks.terminated,
        truncated=~walks.terminated,
        n_actions=np.int64(n_actions),
        latent_states=truth,
    )
    return name, facts, data


def make(folder, first, last, only):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, last):
        if only and list(FAMILIES)[number % len(FAMILIES)] != only:
            continue
        name, facts, data = drawn(number)
        path = folder / f"{number:04d}-{name}"
        np.savez(path.with_suffix(".npz"), **data)
        path.with_suffix(".json").write_text(json.dumps(facts, indent=1, default=float) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="write instances FROM to TO - 1")
    maker.add_argument("folder", type=pathlib.Path)
    maker.add_argument("first", type=int, metavar="FROM")
    maker.add_argument("last", type=int, metavar="TO")
    maker.add_argument("--only", choices=FAMILIES, help="this family only")
    add_runner(commands, FAMILIES)
    chosen = parser.parse_args()
    if chosen.command == "make":
        make(chosen.folder, chosen.first, chosen.last, chosen.only)
        return 0
    return int(run(chosen))


if __name__ == "__main__":
    sys.exit(main())
