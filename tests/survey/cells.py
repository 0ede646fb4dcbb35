"""Instances whose vectors are compared as cells or by features, for constants.py.

    cells.py make SCRATCH FOLDER

Numbers whose looks lie in clumps with empty space around them are a table to psifold, and ask
nothing of what cells and features are for. Here, of each kind below, from its first number on,
those instances are kept that take from a second to four of processor time and are seen as cells;
whether they are, a copy of psifold that says so tells (built in SCRATCH, the one of constants.py).
What the answers are plays no part in the choice.
"""

import argparse
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import constants
import numpy as np
import vectors
import wild
from runs import execute

LEAST, MOST = 1.0, 4.0  # CPU seconds
MOST_TRIED = 40  # of a kind

# what says that looks do not stand apart
SAYS = [
    (
        "cluster/apart.c",
        "if (!*apart) TRY(cluster_group_looks(run));",
        'if (!*apart) base_note(run->ctx, "seen as cells");\n'
        "    if (!*apart) TRY(cluster_group_looks(run));",
    )
]


def built_in(psifold, task, options, number):
    """Facts and arrays of one of psifold's own tasks; the number is its seed."""
    with tempfile.TemporaryDirectory(prefix="psifold-cells-") as scratch:
        path = pathlib.Path(scratch) / "data.npz"
        words = [str(number) if word == "NUMBER" else word for word in options]
        subprocess.run(
            [psifold, "generate", task, *words, "--seed", str(number), "-o", path, "--quiet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with np.load(path) as kept:
            data = dict(kept)
    return {
        "family": task,
        "latent_states": len(np.unique(data["latent_states"])),
        "weakest_pair_nats": None,
        "markov": True,
        "dimensions": int(data["observations"].shape[1]),
        "actions": int(data["n_actions"]),
        "transitions": len(data["actions"]),
        "parameters": words,
    }, data


def curves(number):
    """Rings and spirals: instances of that family alone."""
    n = len(vectors.FAMILIES)
    return vectors.instance(n * number + list(vectors.FAMILIES).index("curves"))


def kinds(psifold):
    """Name, first number, how many are wanted, and what makes an instance."""
    own = functools.partial(functools.partial, built_in, psifold)
    return [
        ("vectors", 3000, 3, vectors.instance),
        ("wild", 900, 4, wild.instance),
        ("curves", 200, 1, curves),
        ("points", 0, 2, own("point-column-world", ["--episodes", "1000"])),
        (
            "bits",
            0,
            2,
            own(
                "bit-lock",
                ["--states", "6", "--bits", "48", "--episodes", "4", "--instance", "NUMBER"],
            ),
        ),
    ]


def is_wanted(psifold, path):
    with tempfile.TemporaryDirectory(prefix="psifold-cells-") as scratch:
        command = [psifold, "cluster", path, "-o", f"{scratch}/run", "--seed", "0"]
        code, _, notes, seconds, _ = execute([*command, "--threads", "1"], 2 * MOST)
    return code == 0 and LEAST <= seconds <= MOST and "seen as cells" in notes, seconds, notes


def make(scratch, folder):
    tree = constants.copy_sources(scratch)
    constants.build(tree, SAYS)
    psifold = tree / "build/psifold"
    folder.mkdir(parents=True, exist_ok=True)
    found = 0
    for kind, first, wanted, instance in kinds(psifold):
        kept = 0
        for number in range(first, first + MOST_TRIED):
            if kept == wanted:
                break
            facts, data = instance(number)
            path = folder / f"{found:04d}-{kind}-{number}.npz"
            np.savez(path, **data)
            yes, seconds, notes = is_wanted(psifold, path)
            print(
                f"{kind} {number}, {facts['family']}: {seconds:.1f} s, "
                f"{'cells' if 'seen as cells' in notes else 'no cells'}"
                f"{', features' if 'features are learnt' in notes else ''}"
                f"{', kept' if yes else ''}",
                flush=True,
            )
            if not yes:
                path.unlink()
                continue
            path.with_suffix(".json").write_text(
                json.dumps({**facts, "number": found, "family": f"{kind}-{number}"}, indent=1)
                + "\n"
            )
            found, kept = found + 1, kept + 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["make"])
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    chosen = parser.parse_args()
    return make(chosen.scratch, chosen.folder)


if __name__ == "__main__":
    sys.exit(main())
