"""What half and twice of every constant of the method do.

    constants.py SCRATCH --data FOLDER... [--only NAME,...] [--limit SECONDS] [--jobs N]

Copies the sources to SCRATCH, changes one constant at a time there, builds, and clusters the
instances in the folders, which vectors.py, textbook.py, adversarial.py or wild.py have made. Prints
a table of how many answers of each class there are and how many are not what they were, and keeps
it in SCRATCH/constants.json: a second call goes on where the first ended. `constants.py --check`
says whether every constant is where this page has it.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

CLASSES = (
    "exact, certain",
    "exact, not certain",
    "wrong, not certain",
    "WRONG AND CERTAIN",
    "error",
    "time-out",
)
ROOT = pathlib.Path(__file__).resolve().parents[2]


def number(file, line, *others):
    """A constant that is one number: `line` has {} in its place, others are what stands there, as
    it is first."""
    return [[(file, line.format(others[0]), line.format(other))] for other in others[1:]]


def shared_law(share):
    """Two states share the law of a family with that probability, as edits of the three places that
    know it."""
    return [
        (
            "evidence/law.c",
            "if (bayes_factor < -30.0) return bayes_factor + M_LN2;\n"
            "    return M_LN2 - log1p(exp(-bayes_factor));",
            f"if (bayes_factor < -30.0) return bayes_factor - log({1 - share});\n"
            f"    return -log({share} + {1 - share} * exp(-bayes_factor));",
        ),
        (
            "evidence/groups.c",
            "double most = M_LN2 * (double)",
            f"double most = -log({share}) * (double)",
        ),
        ("evidence/groups.c", "most -= M_LN2;", f"most += log({share});"),
        (
            "evidence/group.c",
            "return alone - M_LN2 * (double)",
            f"return alone + log({share}) * (double)",
        ),
    ]


def same_outcomes(share):
    """Two laws are independent with that probability, else they share their outcomes."""
    return [
        (
            "evidence/law.c",
            "return high - M_LN2 + (low - high > -30.0 ? log1p(exp(low - high)) : 0.0);",
            "(void)low;\n    "
            f"return high + log({share} * exp(a - high) + {1 - share} * exp(b - high));",
        )
    ]


def outcome_prior(draws):
    return [
        (
            "evidence/law.c",
            "psi_log_rising(first + 0.5, second) - psi_log_rising(0.5, second)",
            f"psi_log_rising(first + {draws}, second) - psi_log_rising({draws}, second)",
        ),
        (
            "evidence/law.c",
            "const double prior = 0.5 * support->kinds;",
            f"const double prior = {draws} * support->kinds;",
        ),
    ]


def new_group(weight):
    return [
        (
            "evidence/law.c",
            "- psi_log_rising(1.0, m - 1.0)",
            f"- psi_log_rising(1.0, m - 1.0) - log({weight})",
        )
    ]


# name: the edits of each variant, (file below src/, what stands there, what replaces it)
CONSTANTS = {
    "share of a law, 1/4 and 3/4 for 1/2": [shared_law(0.25), shared_law(0.75)],
    "laws with the same outcomes, 1/4 and 3/4 for 1/2": [same_outcomes(0.75), same_outcomes(0.25)],
    "prior of an outcome": [outcome_prior(0.25), outcome_prior(1.0)],
    "weight of a new group": [new_group(0.5), new_group(2.0)],
    "margin over mixtures": number("evidence/group.c", "BLEND_MARGIN = {};", 20.0, 10.0, 40.0),
    "margin of large groups": number("evidence/group.c", "LARGE_MARGIN = {};", 50.0, 25.0, 100.0),
    "observations of a cell": number("problem/looks_tree.c", "CELL = {},", 8, 4, 16),
    "rows that a tree grows from": number(
        "problem/looks_tree.c", "MOST_GROWN = {} }};", "1 << 18", "1 << 17", "1 << 19"
    ),
    "bins of a gap": number("problem/looks_tree.c", "enum {{ BINS = {} }};", 32, 16, 64),
    "steps below a gap": number("problem/apart.c", "BELOW = {} ", 32, 16, 64),
    "rows of the shortest tree": number("problem/apart.c", "MOST_SAMPLED = {},", 4096, 2048, 8192),
    "a gap by chance": number("problem/apart.c", "ALLOWED = {};", 0.01, 0.005, 0.02),
    "rows between two clumps": number("problem/apart.c", "BETWEEN = {};", "1e-3", "5e-4", "2e-3"),
    "visits of a look": number("cluster/clustering.h", "CLUSTER_FEWEST_VISITS = {} ", 4, 2, 8),
    "deviations of a stranger": number("problem/looks.c", "DEVIATIONS = {} ", 2, 1, 4),
    "nearest rows": number("problem/looks.h", "LOOKS_NEAREST = {} ", 9, 5, 18),
    "rows of a branch": number("problem/looks.c", "BRANCH = {} ", 48, 24, 96),
    "share of repeats": number(
        "problem/outcome_rewards.c", "REPEATS_IN_CELLS = {};", 0.25, 0.125, 0.5
    ),
    "draws of a prior variance": number(
        "problem/outcome_rewards.c", "PRIOR_DRAWS = {};", 8.0, 4.0, 16.0
    ),
    "odds that are clear": number(
        "refine/refining.h", "REFINE_CLEAR {}", 2.1972245773362196, 1.0986, 4.3944
    ),
    "wrong and certain": number("refine/by_evidence.h", "REFINE_ALLOWED {}", 0.01, 0.005, 0.02),
    "labels that may move": number(
        "refine/refining.h", "REFINE_SETTLED {}", "1e-4", "5e-5", "2e-4"
    ),
    "idle refinements": number("refine/by_evidence.c", "MOST_IDLE = {},", 12, 6, 24),
    "a look that no neighbour has": number(
        "refine/mixed_cells.c", "UNLIKE = {}f;", -9.2, -4.6, -18.4
    ),
    "label to rely on": number(
        "refine/settle.c", "CLEAR = {};", 0.9, 0.818, 0.947
    ),  # odds of 9, 4.5 and 18
    "suspicion": number("verdict/judging.h", "VERDICT_SUSPECT {}", 0.05, 0.025, 0.1),
    "held-out observations mistaken": number(
        "verdict/verdict.c", "MOST_MISTAKEN = {};", 0.1, 0.05, 0.2
    ),
    "between two kinds": number(
        "verdict/resolution.c", "verdict_is_noticed({} * VERDICT", "2.0", "1.0", "4.0"
    ),
    "doubtful share": number("verdict/judging.h", "VERDICT_DOUBTFUL {}", "5e-5", "2.5e-5", "1e-4"),
    "difference that had shown": number(
        "verdict/judging.h", "VERDICT_DIFFERENCE {}", 0.05, 0.025, 0.1
    ),
    "resolution of a look": number("verdict/rare.c", "RESOLUTION = {};", 0.1, 0.05, 0.2),
    "odds against an observation": number(
        "verdict/rare.c", "LEAST_ODDS = {};", 2.1972245773362196, 1.0986, 4.3944
    ),
    "rewards that carry the variance": number("verdict/tails.c", "ENOUGH = {};", 30.0, 15.0, 60.0),
    "deviations of a gap": number("verdict/units.c", "GAP = {};", 3.0, 1.5, 6.0),
    "deviations of a remembered gap": number("verdict/units.c", "looks, {}, part", 2.0, 1.0, 4.0),
    "rows that chance sets apart": number("verdict/units.h", "UNITS_FEW = {} ", 16, 8, 32),
    "visits of a prior law": number("verdict/foretell.c", "PRIOR_VISITS = {};", 4.0, 2.0, 8.0),
    "kinds of what follows": number("verdict/foretell.h", "FORETELL_KINDS = {} ", 8, 4, 16),
    "smallest branch of a context": number("verdict/contexts.c", "SMALLEST = {},", 16, 8, 32),
    "units of the network": number("cluster/in_vectors.c", "SMALL = {},", 128, 64, 256),
    "steps of the network": number("cluster/in_vectors.c", "SMALL_STEPS = {} ", 1000, 500, 2000),
}


def is_in_place():
    """Prints what is not found in the sources."""
    missing = [
        (name, file, old)
        for name, variants in CONSTANTS.items()
        for edits in variants
        for file, old, _ in edits
        if old not in (ROOT / "src" / file).read_text()
    ]
    for name, file, old in missing:
        print(f"{name}: src/{file} has no '{old}'")
    return not missing


def copy_sources(scratch):
    tree = scratch / "tree"
    if not tree.exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def build(tree, edits):
    """Builds with the edits, and takes them back."""
    before = {file: (tree / "src" / file).read_text() for file, _, _ in edits}
    try:
        for file, old, new in edits:
            text = (tree / "src" / file).read_text()
            (tree / "src" / file).write_text(text.replace(old, new))
        subprocess.run(["cmake", "--preset", "release"], cwd=tree, check=True, capture_output=True)
        subprocess.run(
            ["cmake", "--build", "--preset", "release", "--target", "psi_command"],
            cwd=tree,
            check=True,
            capture_output=True,
        )
    finally:
        for file, text in before.items():
            (tree / "src" / file).write_text(text)


def survey(tree, scratch, chosen):
    """How many answers of each class, and CPU seconds."""
    rows = []
    for folder in chosen.data:
        out = scratch / "rows.json"
        subprocess.run(
            [
                sys.executable,
                "-B",
                str(ROOT / "tests/survey/vectors.py"),
                "run",
                str(folder),
                "--psifold",
                str(tree / "build/psifold"),
                "--json",
                str(out),
                "--limit",
                str(chosen.limit),
                "--jobs",
                str(chosen.jobs),
            ],
            stdout=subprocess.DEVNULL,
        )
        rows += [{**row, "folder": folder.name} for row in json.loads(out.read_text())]
    wrong = [f"{row['number']}-{row['family']}" for row in rows if row["class"] == CLASSES[3]]
    return {
        "counts": [sum(row["class"] == kind for row in rows) for kind in CLASSES],
        "wrong": wrong,
        "seconds": round(sum(row["cpu_seconds"] for row in rows)),
        "answers": {
            f"{row['folder']}/{row['number']}-{row['family']}": [
                row["class"],
                row.get("found"),
                row.get("misplaced"),
                row.get("verdict"),
            ]
            for row in rows
        },
    }


def show(name, result, before):
    """A row, and how many answers are not what they were."""
    answers, others = result.get("answers", {}), before.get("answers", {})
    moved = sum(answers[key] != others[key] for key in answers.keys() & others.keys())
    words = [name, *result["counts"], moved, result["seconds"], " ".join(result["wrong"])]
    print("| " + " | ".join(map(str, words)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scratch", type=pathlib.Path, nargs="?")
    parser.add_argument(
        "--check", action="store_true", help="are all constants where they are looked for?"
    )
    parser.add_argument("--data", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--only", default="", help="these constants, with commas between them")
    parser.add_argument("--limit", type=float, default=60, help="CPU seconds for one instance [60]")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time [1]")
    chosen = parser.parse_args()
    in_place = is_in_place()
    if chosen.check or not in_place:
        return 0 if in_place else 1
    scratch = chosen.scratch
    scratch.mkdir(parents=True, exist_ok=True)
    tree, kept = copy_sources(scratch), scratch / "constants.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    wanted = [("as it is", [])]
    for name in filter(None, chosen.only.split(",")) if chosen.only else CONSTANTS:
        wanted += [
            (f"{name}: {kind}", edits)
            for kind, edits in zip(("half", "twice"), CONSTANTS[name], strict=False)
        ]
    print("| constant | " + " | ".join(CLASSES) + " | other answers | CPU s | wrong and certain |")
    print("|---" * (len(CLASSES) + 4) + "|")
    for name, edits in wanted:
        if name not in results:
            build(tree, edits)
            results[name] = survey(tree, scratch, chosen)
            kept.write_text(json.dumps(results, indent=1) + "\n")
        show(name, results[name], results[wanted[0][0]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
