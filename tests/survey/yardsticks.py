"""Yardsticks of others: two locks that others have defined, and what another program makes of small
tables.

    yardsticks.py lock TASK --psifold PATH --size N --episodes N [--preset NAME] [--instances FROM
    TO] yardsticks.py table TASK --psifold PATH --size N --episodes N [--preset NAME] [--instances
    FROM TO] yardsticks.py ladder TASK --psifold PATH --size N --episodes N... [--instances FROM TO]
    --json OUT yardsticks.py alergia --psifold PATH

`lock` generates data of bit-lock (size: states on the ring) or rich-lock (size: steps of an
episode) and clusters them with default options. `table` does so with the number of the true latent
state in the place of each observation: what the data tell somebody who sees the states. `ladder`
gives each instance more and more episodes, until the answer is exact and certain or out of time,
and says how many it took; a second call goes on where the first ended. They fail if an answer is
wrong and was given as certain. `alergia` holds psifold against IoAlergia (AALpy, from PyPI) on
tables; it needs requirements.txt as well.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from runs import clustering, execute, is_sure
from truth import misplaced

EXACT = 1e-4  # the share that may be misplaced in an exact partition (docs/algorithm.md)
SIZE = {"bit-lock": "--states", "rich-lock": "--horizon"}


def generate(psifold, path, *options):
    command = [psifold, "generate", *map(str, options), "-o", path, "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with np.load(path) as data:
        return dict(data)


def cluster(psifold, path, truth, limit, threads):
    """What psifold says: latent states, verdict, misplaced observations, CPU seconds, mebibytes."""
    with tempfile.TemporaryDirectory(prefix="psifold-yardstick-") as scratch:
        run = Path(scratch) / "run"
        command = clustering(psifold, path, run, "--threads", threads)
        code, out, err, seconds, mebibytes = execute(command, limit)
        if code != 0:
            return {
                "verdict": "time-out" if code is None else err.strip().splitlines()[-1],
                "cpu": seconds,
            }
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


def answer(arguments, episodes, instance):
    """What psifold makes of so many episodes of an instance, and whether it is exact."""
    with tempfile.TemporaryDirectory(prefix="psifold-yardstick-") as scratch:
        path = Path(scratch) / "data.npz"
        options = [
            SIZE[arguments.task],
            arguments.size,
            "--episodes",
            episodes,
            "--instance",
            instance,
        ]
        preset = ["--preset", arguments.preset] if arguments.preset else []
        data = generate(
            arguments.psifold, path, arguments.task, *options, *preset, "--seed", instance
        )
        truth = data["latent_states"]
        if arguments.command == "table":
            np.savez(path, **(data | {"observations": truth.astype(np.int64)}))
        row = cluster(arguments.psifold, path, truth, arguments.limit, arguments.threads)
    true = len(np.unique(truth))
    exact = row.get("found") == true and row["misplaced"] <= EXACT * len(truth)
    wrong = bool(row.get("sure") and not exact)
    return row | {
        "instance": instance,
        "episodes": episodes,
        "transitions": len(data["actions"]),
        "true": true,
        "exact": exact,
        "wrong_and_certain": wrong,
    }


def show_answers():
    print(
        "| instance | transitions | true | found | misplaced | verdict | CPU s | MiB |\n"
        + "|---" * 8
        + "|"
    )


def show_answer(row):
    words = [
        row["instance"],
        row["transitions"],
        row["true"],
        row.get("found", ""),
        row.get("misplaced", ""),
    ]
    words += [row["verdict"], f"{row['cpu']:.0f}", f"{row.get('mebibytes', 0):.0f}"]
    words += ["WRONG AND CERTAIN"] if row["wrong_and_certain"] else []
    print("| " + " | ".join(map(str, words)) + " |", flush=True)


def lock(arguments):
    """A row for every instance of a lock; True if one of them is wrong and certain."""
    show_answers()
    failed = False
    for instance in range(*arguments.instances):
        row = answer(arguments, arguments.episodes, instance)
        show_answer(row)
        failed |= row["wrong_and_certain"]
    return failed


def ladder(arguments):
    """More and more episodes of every instance, until it is exact and certain, or out of time."""
    rows = json.loads(arguments.json.read_text()) if arguments.json.exists() else []
    known = {(row["instance"], row["episodes"]): row for row in rows}
    show_answers()
    for instance in range(*arguments.instances):
        for episodes in arguments.episodes:
            row = known.get((instance, episodes))
            if row is None:
                row = answer(arguments, episodes, instance)
                rows.append(row)
                partial = arguments.json.with_name(arguments.json.name + ".part")
                partial.write_text(json.dumps(rows, indent=1) + "\n")
                partial.replace(arguments.json)
            show_answer(row)
            if row["verdict"] == "time-out" or (row["exact"] and row["sure"]):
                break  # more of it would take longer still
    show_ladder(
        [row for row in rows if row["instance"] in range(*arguments.instances)], arguments.episodes
    )
    return any(row["wrong_and_certain"] for row in rows)


def show_ladder(rows, sizes):
    """How many instances are exact and certain with so many episodes or fewer, and what those with
    so many answered."""
    of = len({row["instance"] for row in rows})
    print(
        "\n| transitions | run | exact | exact and certain | so far, of all | wrong and certain "
        "| time-out | CPU s: median, range |\n" + "|---" * 8 + "|"
    )
    needed = []
    for episodes in sizes:
        here = [row for row in rows if row["episodes"] == episodes]
        if not here:
            continue
        settled = [row for row in here if row["exact"] and row["sure"]]
        needed += [float(np.median([row["transitions"] for row in here]))] * len(settled)
        seconds = [row["cpu"] for row in here]
        transitions = sorted(row["transitions"] for row in here)
        words = [
            f"{transitions[0]}–{transitions[-1]}",
            len(here),
            sum(row["exact"] for row in here),
            len(settled),
        ]
        words += [f"{len(needed)} of {of}", sum(row["wrong_and_certain"] for row in here)]
        words += [sum(row["verdict"] == "time-out" for row in here)]
        words += [f"{np.median(seconds):.0f}, {min(seconds):.0f}–{max(seconds):.0f}"]
        print("| " + " | ".join(map(str, words)) + " |")
    median = np.median(needed + [np.inf] * (of - len(needed))) if of else np.inf
    print(
        f"\nexact and certain: {len(needed)} of {of}, median {median:.0f} transitions"
        + (f", from {min(needed):.0f} to {max(needed):.0f}" if needed else "")
    )


# Tables small enough for a learner of automata.
TABLES = [
    ("column-world", ["--episodes", 300]),
    (
        "combination-lock",
        [
            "--episodes",
            300,
            "--digits",
            "none",
            "--dials",
            2,
            "--digits-per-dial",
            4,
            "--broken",
            2,
        ],
    ),
    ("bit-lock", ["--episodes", 30, "--states", 5, "--max-steps", 100]),
    ("bit-lock", ["--episodes", 200, "--states", 20, "--max-steps", 100]),
    ("rich-lock", ["--episodes", 3000, "--horizon", 5]),
]
LAKES = [
    "frozenlake4-starts",
    "frozenlake4-slippery-starts",
    "frozenlake8-starts",
]  # of Gymnasium, tasks.py


def tables(psifold, path):
    """Name, data and truth of every table, which is left in path."""
    from real import add_truth, collect
    from tasks import all_tasks

    for name, options in TABLES:
        path.unlink(missing_ok=True)
        data = generate(psifold, path, name, *options, "--seed", 0)
        if data["observations"].ndim > 1:  # as a table: the number of the latent state
            data["observations"] = data["latent_states"].astype(np.int64)
            np.savez(path, **data)
        yield " ".join(map(str, [name, *options])), data, data["latent_states"]
    for name in LAKES:
        task = all_tasks()[name]()
        data, keys = collect(task, 0)
        add_truth(task, data, keys)
        np.savez(path, **data)
        yield name, data, data["latent_states"]


def traces(data, with_observations):
    """Episodes as pairs of an action and what came of it: the reward and whether it was the end,
    beside what is seen next if that is wanted. A Markov decision process begins with an output that
    all share and an action that shows where the episode begins; a Mealy machine of rewards alone
    has none."""
    found, at, row = [], 0, 0
    seen = data["observations"].reshape(len(data["latent_states"])).tolist()
    for length, ended in zip(
        data["episode_lengths"].tolist(), data["terminated"].tolist(), strict=True
    ):
        trace = ["start", (-1, (seen[row], 0.0, False))] if with_observations else []
        for t in range(length):
            output = (float(data["rewards"][at + t]), bool(ended and t + 1 == length))
            trace.append(
                (
                    int(data["actions"][at + t]),
                    (seen[row + t + 1], *output) if with_observations else output,
                )
            )
        found.append(trace)
        at, row = at + length, row + length + 1
    return found


def alergia(arguments):
    """IoAlergia of rewards alone, and of what is seen as well, beside psifold on the same
    tables."""
    from aalpy.learning_algs import run_Alergia

    print(
        "| task | transitions | true | psifold, CPU s | of rewards, CPU s "
        "| of what is seen, CPU s |"
    )
    print("|---" * 6 + "|")
    with tempfile.TemporaryDirectory(prefix="psifold-yardstick-") as scratch:
        path = Path(scratch) / "data.npz"
        for task, data, truth in tables(arguments.psifold, path):
            row = cluster(arguments.psifold, path, truth, arguments.limit, arguments.threads)
            words = [task, len(data["actions"]), len(np.unique(truth))]
            words.append(
                f"{row.get('found', '')} {row['verdict']}, {row['misplaced']} misplaced, "
                f"{row['cpu']:.1f}"
            )
            for with_observations in (False, True):
                lines, began = traces(data, with_observations), time.process_time()
                model = run_Alergia(lines, automaton_type="mdp" if with_observations else "smm")
                words.append(f"{len(model.states)}, {time.process_time() - began:.1f}")
            print("| " + " | ".join(map(str, words)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (
        ("lock", lock),
        ("table", lock),
        ("ladder", ladder),
        ("alergia", alergia),
    ):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--psifold", required=True)
        command.add_argument(
            "--limit", type=float, default=600, help="CPU seconds for one answer [600]"
        )
        command.add_argument("--threads", type=int, default=1, help="of one answer [1]")
        if name == "alergia":
            continue
        command.add_argument("task", choices=SIZE)
        command.add_argument("--size", type=int, required=True)
        many = {"nargs": "+"} if name == "ladder" else {}
        command.add_argument("--episodes", type=int, required=True, **many)
        command.add_argument("--preset")
        command.add_argument(
            "--instances", type=int, nargs=2, default=(0, 1), metavar=("FROM", "TO")
        )
        if name == "ladder":
            command.add_argument("--json", type=Path, required=True, help="where answers are kept")
    arguments = parser.parse_args()
    sys.exit(arguments.function(arguments))


if __name__ == "__main__":
    main()
