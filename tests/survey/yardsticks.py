"""Yardsticks of others: two locks that others have defined, and what another program makes of small tables.

    yardsticks.py lock TASK --psifold PATH --size N --episodes N [--preset NAME] [--instances FROM TO]
    yardsticks.py table TASK --psifold PATH --size N --episodes N [--preset NAME] [--instances FROM TO]
    yardsticks.py alergia --psifold PATH

`lock` generates data of bit-lock (size: states on the ring) or rich-lock (size: steps of an episode) and
clusters them with default options. `table` does so with the number of the true latent state in the place of
each observation: what the data tell somebody who sees the states. Both fail if an answer is wrong and was
given as certain. `alergia` holds psifold against IoAlergia (AALpy, from PyPI) on tables.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from runs import execute, is_sure
from truth import misplaced

EXACT = 1e-4  # the share of observations that may be misplaced in an exact partition (docs/algorithm.md)
SIZE = {"bit-lock": "--states", "rich-lock": "--horizon"}


def generate(psifold, path, *options):
    command = [psifold, "generate", *map(str, options), "-o", path, "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with np.load(path) as data:
        return dict(data)


def cluster(psifold, path, truth, limit):
    """What psifold says: latent states, verdict, misplaced observations, CPU seconds, mebibytes."""
    with tempfile.TemporaryDirectory(prefix="psifold-yardstick-") as scratch:
        run = Path(scratch) / "run"
        command = [psifold, "cluster", path, "-o", run, "--json", "--seed", "0", "--quiet"]
        code, out, err, seconds, mebibytes = execute([str(word) for word in command], limit)
        if code != 0:
            return {"verdict": "time-out" if code is None else err.strip().splitlines()[-1], "cpu": seconds}
        answer = json.loads(out)
        wrong = misplaced(truth, np.load(run / "clusters.npy"))
    return {
        "found": answer["latent_states"],
        "verdict": answer["verdict"],
        "sure": is_sure(answer),
        "misplaced": wrong,
        "cpu": seconds,
        "mebibytes": mebibytes,
    }


def lock(arguments):
    """A row for every instance of a lock; True if one of them is wrong and certain."""
    print("| instance | transitions | true | found | misplaced | verdict | CPU s | MiB |\n" + "|---" * 8 + "|")
    failed = False
    for instance in range(*arguments.instances):
        with tempfile.TemporaryDirectory(prefix="psifold-yardstick-") as scratch:
            path = Path(scratch) / "data.npz"
            options = [SIZE[arguments.task], arguments.size, "--episodes", arguments.episodes, "--instance", instance]
            preset = ["--preset", arguments.preset] if arguments.preset else []
            data = generate(arguments.psifold, path, arguments.task, *options, *preset, "--seed", instance)
            truth = data["latent_states"]
            if arguments.command == "table":
                np.savez(path, **(data | {"observations": truth.astype(np.int64)}))
            row = cluster(arguments.psifold, path, truth, arguments.limit)
        true = len(np.unique(truth))
        wrong = row.get("found") != true or row["misplaced"] > EXACT * len(truth)
        failed |= bool(wrong and row.get("sure"))
        words = [instance, len(data["actions"]), true, row.get("found", ""), row.get("misplaced", ""), row["verdict"]]
        words += [f"{row['cpu']:.0f}", f"{row.get('mebibytes', 0):.0f}"]
        words += ["WRONG AND CERTAIN"] if wrong and row.get("sure") else []
        print("| " + " | ".join(map(str, words)) + " |", flush=True)
    return failed


# Tables small enough for a learner of automata.
TABLES = [
    ("column-world", ["--episodes", 300]),
    ("combination-lock", ["--episodes", 300, "--digits", "none", "--dials", 2, "--digits-per-dial", 4, "--broken", 2]),
    ("bit-lock", ["--episodes", 30, "--states", 5, "--max-steps", 100]),
    ("rich-lock", ["--episodes", 3000, "--horizon", 5]),
]


def traces(data, with_observations):
    """Episodes as pairs of an action and what came of it: the reward and whether it was the end, beside what
    is seen next if that is wanted. A Markov decision process begins with an output that all share and an
    action that shows where the episode begins; a Mealy machine of rewards alone has none."""
    found, at, row = [], 0, 0
    seen = data["observations"].reshape(len(data["latent_states"])).tolist()
    for length, ended in zip(data["episode_lengths"].tolist(), data["terminated"].tolist(), strict=True):
        trace = ["start", (-1, (seen[row], 0.0, False))] if with_observations else []
        for t in range(length):
            output = (float(data["rewards"][at + t]), bool(ended and t + 1 == length))
            trace.append((int(data["actions"][at + t]), (seen[row + t + 1], *output) if with_observations else output))
        found.append(trace)
        at, row = at + length, row + length + 1
    return found


def alergia(arguments):
    """IoAlergia of rewards alone, and of what is seen as well, beside psifold on the same tables."""
    from aalpy.learning_algs import run_Alergia

    print("| task | transitions | true | psifold, CPU s | of rewards, CPU s | of what is seen, CPU s |")
    print("|---" * 6 + "|")
    with tempfile.TemporaryDirectory(prefix="psifold-yardstick-") as scratch:
        for task, options in TABLES:
            path = Path(scratch) / f"{task}.npz"
            data = generate(arguments.psifold, path, task, *options, "--seed", 0)
            truth = data["latent_states"]
            if data["observations"].ndim > 1:  # as a table: the number of the latent state
                data["observations"] = truth.astype(np.int64)
                np.savez(path, **data)
            row = cluster(arguments.psifold, path, truth, arguments.limit)
            words = [task, len(data["actions"]), len(np.unique(truth))]
            words.append(f"{row.get('found', '')} {row['verdict']}, {row['misplaced']} misplaced, {row['cpu']:.1f}")
            for with_observations in (False, True):
                lines, began = traces(data, with_observations), time.process_time()
                model = run_Alergia(lines, automaton_type="mdp" if with_observations else "smm")
                words.append(f"{len(model.states)}, {time.process_time() - began:.1f}")
            print("| " + " | ".join(map(str, words)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("lock", "table", "alergia"):
        command = commands.add_parser(name)
        command.add_argument("--psifold", required=True)
        command.add_argument("--limit", type=float, default=600, help="CPU seconds")
        if name == "alergia":
            continue
        command.add_argument("task", choices=SIZE)
        command.add_argument("--size", type=int, required=True)
        command.add_argument("--episodes", type=int, required=True)
        command.add_argument("--preset")
        command.add_argument("--instances", type=int, nargs=2, default=(0, 1), metavar=("FROM", "TO"))
    arguments = parser.parse_args()
    sys.exit(alergia(arguments) if arguments.command == "alergia" else lock(arguments))


if __name__ == "__main__":
    main()
