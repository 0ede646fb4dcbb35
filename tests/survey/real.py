#!/usr/bin/env python3
"""Survey of real tasks with exact truth: does psifold find it, and does it say so when it does not?

    real.py make FOLDER [--only NAME,...] [--seed S]     write the data sets, with their truth
    real.py run FOLDER --psifold PATH [--json OUT]       cluster each and compare
    real.py quick --psifold PATH                         three small ones, for every change
    real.py compare OUT OUT                              what two versions found in the same data

Every data set is NAME-v0 (written by the minari package), NAME.npz (the same as plain arrays),
NAME.truth.npy (the block of every observation, episode after episode, L + 1 each) and NAME.json.
The behaviour is uniformly random. PSIFOLD_SURVEY_SEED is the seed where --seed is not given;
`fresh` draws one, for figures on data that nobody has looked at.
"""

import argparse
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
from runs import ERROR, SURE_AND_WRONG, TIME_OUT, comparison, survey
from tasks import all_tasks
from truth import aliased, check, coverage, partition, self_check

MOST_EPISODES = 20_000
QUICK = {"frozenlake8": 50_000, "taxi": 30_000, "empty5": 30_000}


# --- making data sets ------------------------------------------------------------------------


def collect(task, seed):
    """Episodes under the random policy, as flat arrays, and the true state of every observation."""
    rng = np.random.default_rng([seed, zlib.crc32(task.name.encode())])
    task.begin(rng)
    named = hasattr(task, "key")
    observations, keys, actions, rewards, lengths, ended = [], [], [], [], [], []
    while len(actions) < task.transitions:
        task.reset()
        length, terminated = 0, False
        observations.append(task.observe())
        keys.append(task.key() if named else None)
        while not terminated and length < task.limit:
            action = (
                task.choose(rng) if hasattr(task, "choose") else int(rng.integers(task.n_actions))
            )
            reward, terminated = task.step(action)
            observations.append(task.observe())
            keys.append(None if terminated or not named else task.key())
            actions.append(action)
            rewards.append(reward)
            length += 1
        lengths.append(length)
        ended.append(terminated)
    ended = np.array(ended)
    return {
        "observations": np.stack(observations),
        "actions": np.array(actions, np.int64),
        "rewards": np.array(rewards, np.float64),
        "episode_lengths": np.array(lengths, np.int64),
        "terminated": ended,
        "truncated": ~ended,
        "n_actions": np.int64(task.n_actions),
    }, keys


def inner_and_last(data):
    """Which observations are no end, and which have an action after them."""
    last = np.cumsum(data["episode_lengths"] + 1) - 1
    inner = np.ones(len(data["observations"]), bool)
    inner[last[data["terminated"]]] = False
    acted = np.ones(len(inner), bool)
    acted[last] = False
    return inner, acted


def add_truth(task, data, keys):
    """latent_states into the data, and what there is to know about them."""
    inner, acted = inner_and_last(data)
    model = task.model(list(dict.fromkeys(key for key in keys if key is not None)))
    block = partition(model)
    finest = partition(model, whole_distribution=True)
    truth = np.array([block[key] for key in keys], np.int32)
    data["latent_states"] = truth
    before = [keys[i] for i in np.flatnonzero(acted)]
    after = [keys[i + 1] for i in np.flatnonzero(acted)]
    return {
        "states": len(model),
        "latent_states_reachable": len(set(block.values())),
        "latent_states_by_whole_distribution": len(set(finest.values())),
        "latent_states": len(np.unique(truth)),
        "aliased_observations": aliased(data["observations"], truth, inner),
        "largest_deviation": None
        if getattr(task, "noisy_rewards", False)
        else round(check(model, before, data["actions"], data["rewards"], after), 2),
        **coverage(model, task.n_actions, before, data["actions"]),
    }


def write_minari(folder, task, data):
    """The same episodes through the minari package, losslessly. It takes minutes where episodes are
    many and short (Blackjack): there the plain arrays must do."""
    shutil.rmtree(folder / f"{task.name}-v0", ignore_errors=True)
    if len(data["episode_lengths"]) > MOST_EPISODES:
        return
    os.environ["MINARI_DATASETS_PATH"] = str(
        folder.resolve()
    )  # it loses its way with a relative one
    import gymnasium as gym
    import minari
    from minari.data_collector import EpisodeBuffer

    episodes, row = [], 0
    for e, length in enumerate(data["episode_lengths"]):
        observation = row + e
        at_end = np.arange(length) == length - 1
        episodes.append(
            EpisodeBuffer(
                id=e,
                observations=data["observations"][observation : observation + length + 1],
                actions=data["actions"][row : row + length],
                rewards=data["rewards"][row : row + length],
                terminations=at_end & data["terminated"][e],
                truncations=at_end & data["truncated"][e],
                infos={},
            )
        )
        row += length
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # author, address and so on are missing
        minari.create_dataset_from_buffers(
            f"{task.name}-v0",
            episodes,
            observation_space=task.space(data["observations"]),
            action_space=gym.spaces.Discrete(task.n_actions),
            algorithm_name="uniform",
            jpeg_encoding=False,
        )


def make(folder, task, seed):
    started = time.time()
    about = folder / f"{task.name}.json"
    about.unlink(missing_ok=True)  # comes last: what has one is whole
    data, keys = collect(task, seed)
    meta = {
        "name": task.name,
        "seed": seed,
        "transitions": len(data["actions"]),
        "episodes": len(data["episode_lengths"]),
        "terminated": int(data["terminated"].sum()),
        "actions": task.n_actions,
        "observation": [str(data["observations"].dtype), *data["observations"].shape[1:]],
        "rewards": sorted({round(float(r), 6) for r in np.unique(data["rewards"])[:20]}),
    }
    truth = folder / f"{task.name}.truth.npy"
    truth.unlink(missing_ok=True)
    if hasattr(task, "model"):
        meta |= add_truth(task, data, keys)
        np.save(truth, data["latent_states"])
    np.savez(folder / f"{task.name}.npz", **data)
    if not getattr(task, "plain", False):
        write_minari(folder, task, data)
    about.write_text(json.dumps(meta, indent=1) + "\n")
    known = "truth unknown"
    if truth.exists():
        known = (
            "{latent_states} latent states, {pairs_under_5} of {pairs} pairs under 5 visits".format(
                **meta
            )
        )
    print(
        f"{task.name}: {meta['transitions']} transitions, {known} ({time.time() - started:.0f} s)",
        flush=True,
    )


def seed_in(path):
    """The seed that a data set was made with; None where there is no whole one."""
    return json.loads(path.read_text())["seed"] if path.exists() else None


def command_make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or arguments.tasks:
        if not (arguments.missing and seed_in(arguments.folder / f"{name}.json") == arguments.seed):
            make(arguments.folder, arguments.tasks[name](), arguments.seed)
    return 0


# --- running ---------------------------------------------------------------------------------


def verdict(rows):
    """Exit code: being wrong is forgiven, being wrong and certain is not."""
    return int(any(row["class"] == SURE_AND_WRONG for row in rows))


def command_run(arguments):
    there = [name for name in arguments.tasks if (arguments.folder / f"{name}.json").exists()]
    names = arguments.only or there
    return verdict(
        survey(arguments.folder, names, arguments.psifold, arguments.limit, arguments.json)
    )


def command_quick(arguments):
    """Also fails where a run fails or takes too long: these three are easy."""
    self_check()
    with tempfile.TemporaryDirectory(prefix="psifold-survey-") as folder:
        folder = Path(folder)
        for name, transitions in QUICK.items():
            make(folder, arguments.tasks[name](transitions), arguments.seed)
        rows = survey(folder, QUICK, arguments.psifold, arguments.limit)
    return verdict(rows) or int(any(row["class"] in (ERROR, TIME_OUT) for row in rows))


def command_compare(arguments):
    comparison(*(json.loads(path.read_text()) for path in (arguments.earlier, arguments.later)))
    return 0


def seed_of(text):
    """A number, or `fresh`, which is drawn and then told, so that the data can be made again."""
    if text != "fresh":
        return int(text)
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}", flush=True)
    return seed


def names_of(text, tasks):
    names = text.split(",")
    for name in names:
        if name not in tasks:
            raise argparse.ArgumentTypeError(
                f"no task is called {name}; there are {', '.join(tasks)}"
            )
    return names


def main(tasks, about):
    """The command line over these tasks."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(tasks=tasks)
    commands = parser.add_subparsers(required=True)
    for name, command in (("make", command_make), ("run", command_run), ("quick", command_quick)):
        options = commands.add_parser(name)
        options.set_defaults(command=command)
        if name != "quick":
            options.add_argument("folder", type=Path)
            options.add_argument(
                "--only", type=lambda text: names_of(text, tasks), metavar="NAME,..."
            )
        if name != "run":
            seed = os.environ.get("PSIFOLD_SURVEY_SEED", "0")
            options.add_argument(
                "--seed", type=seed_of, default=seed, help="a number, or fresh [%(default)s]"
            )
        if name != "make":
            options.add_argument("--psifold", type=Path, required=True, help="the program")
            options.add_argument(
                "--limit", type=float, default=400, help="CPU seconds for each [400]"
            )
        if name == "make":
            options.add_argument(
                "--missing", action="store_true", help="only what is not there with this seed"
            )
        if name == "run":
            options.add_argument("--json", type=Path, metavar="OUT", help="the rows, for later")
    options = commands.add_parser("compare")
    options.set_defaults(command=command_compare)
    options.add_argument("earlier", type=Path)
    options.add_argument("later", type=Path)
    arguments = parser.parse_args()
    return arguments.command(arguments)


if __name__ == "__main__":
    sys.exit(main(all_tasks(), __doc__))
