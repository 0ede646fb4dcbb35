"""Tasks that are large: millions of transitions, thousands of latent states, hundreds of actions.

    large.py make FOLDER [--seed N] [--only NAME,...]
    large.py run FOLDER --psifold PATH [--json OUT] [--limit SECONDS] [--only NAME,...]

Each has random transitions: an action leads to one of the latent states, but for a slip to any of
them, and some pairs of latent state and action pay one of a few values. Looks are numbers, several
for each latent state, or points around its centre, which is normal with deviation 6.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from runs import SURE_AND_WRONG, survey

SLIP = 0.1
LENGTH = 50  # steps of an episode
PAYS = 0.2  # share of pairs of latent state and action that pay
FEW = 5  # visits under which a data set can hardly tell what a pair does


@dataclass
class Large:
    transitions: int
    states: int
    actions: int = 4
    values: int = 4  # how many payments there are
    looks: int = 1  # of a latent state, in a table
    noise: float | None = None  # of the points, if they are seen instead; dimension 4


TASKS = {
    "vectors": Large(5_000_000, 50, noise=0.5),
    "vectors-touching": Large(5_000_000, 50, noise=1.0),
    "table": Large(5_000_000, 50, looks=20),
    "states-100000": Large(100_000, 2000, values=64),
    "states-1000000": Large(1_000_000, 2000, values=64),
    "actions": Large(1_000_000, 50, actions=500),
}


def drawn(task, rng):
    """Where each pair leads, what it pays, and the coarsest partition in which that agrees. Slips
    lead anywhere, from everywhere with the same odds: they tell nothing."""
    shape = (task.states, task.actions)
    leads = rng.integers(0, task.states, shape)
    values = np.concatenate([[0.0], np.arange(1, task.values) / 4.0])
    pays = values[rng.integers(1, len(values), shape)] * (rng.random(shape) < PAYS)
    block, count = np.zeros(task.states, np.int64), 1
    while True:
        rows = np.concatenate([pays, block[leads]], 1)
        names, block = np.unique(rows, axis=0, return_inverse=True)
        if len(names) == count:
            return leads, pays, block.astype(np.int32)
        count = len(names)


def walks(task, rng, leads, pays):
    """States, one more than actions in each episode, actions, and rewards of episodes."""
    episodes = task.transitions // LENGTH
    states = np.empty((episodes, LENGTH + 1), np.int32)
    actions = rng.integers(0, task.actions, (episodes, LENGTH))
    states[:, 0] = rng.integers(0, task.states, episodes)
    for t in range(LENGTH):
        slips = rng.random(episodes) < SLIP
        anywhere = rng.integers(0, task.states, episodes)
        states[:, t + 1] = np.where(slips, anywhere, leads[states[:, t], actions[:, t]])
    return states.reshape(-1), actions.reshape(-1), pays[states[:, :-1], actions].reshape(-1)


def seen(task, rng, states):
    if task.noise is None:
        return states * task.looks + rng.integers(0, task.looks, len(states), dtype=np.int32)
    centres = rng.normal(0, 6, (task.states, 4)).astype(np.float32)
    return centres[states] + rng.normal(0, task.noise, (len(states), 4)).astype(np.float32)


def make(folder, name, seed):
    started, task = time.time(), TASKS[name]
    rng = np.random.default_rng([seed, list(TASKS).index(name)])
    leads, pays, block = drawn(task, rng)
    states, actions, rewards = walks(task, rng, leads, pays)
    episodes = len(actions) // LENGTH
    pair = np.delete(states, np.arange(1, episodes + 1) * (LENGTH + 1) - 1) * task.actions + actions
    visits = np.bincount(pair, minlength=task.states * task.actions)
    np.savez(
        folder / f"{name}.npz",
        observations=seen(task, rng, states),
        actions=actions,
        rewards=rewards.astype(np.float32),
        episode_lengths=np.full(episodes, LENGTH),
        terminated=np.zeros(episodes, bool),
        truncated=np.ones(episodes, bool),
        n_actions=np.int64(task.actions),
    )
    np.save(folder / f"{name}.truth.npy", block[states])
    meta = {
        "name": name,
        "seed": seed,
        "transitions": len(actions),
        "latent_states": int(block.max()) + 1,
        "aliased_observations": 0,
        "pairs": len(visits),
        "pairs_under_5": int((visits < FEW).sum()),
    }
    (folder / f"{name}.json").write_text(json.dumps(meta, indent=1) + "\n")
    print(f"{name}: {meta['latent_states']} latent states ({time.time() - started:.0f} s)")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("make", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--psifold", type=Path, default="build/psifold", help="the program")
    parser.add_argument("--json", type=Path, metavar="OUT", help="the rows, for later")
    parser.add_argument("--limit", type=float, default=600, help="CPU seconds for each [600]")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.command == "make":
        for name in arguments.only:
            make(arguments.folder, name, arguments.seed)
        return 0
    rows = survey(
        arguments.folder, arguments.only, arguments.psifold, arguments.limit, arguments.json
    )
    return int(any(row["class"] == SURE_AND_WRONG for row in rows))


if __name__ == "__main__":
    sys.exit(main())
