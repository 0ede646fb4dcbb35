"""A survey of block MDPs seen as vectors, of other shapes than tests/support/block_mdp.c draws.

    vectors.py make FOLDER FROM TO
    vectors.py run FOLDER --psifold PATH [--json OUT] [--limit SECONDS] [--only FAMILY] [--jobs N]

`make` writes NNNN-family.npz, with the exact smallest truth as latent_states, and a .json beside it
that says how the instance was made and how well its data tell its states apart. `run` clusters all
of them with default options, and fails if an answer is wrong and was given as certain. Instances 0
to 99 are for development; 1000 and above are to be looked at when nothing is changed any more.

No answer is right where two states look the same (family hidden), and "wrong, not certain" is what
is wanted there; where every reward is the same and nothing ends (constant), so is one state, or an
error with a sentence that says it.
"""

import argparse
import json
import pathlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

import latent
import numpy as np
from families import FAMILIES
from runs import clustering, execute
from scipy.optimize import linear_sum_assignment

MISPLACED = 1e-4  # of all observations: looks may be nine standard deviations apart
MEMORY = 100.0  # nats that must speak against a Markov task where two states look the same
CLASSES = (
    "exact, certain",
    "exact, not certain",
    "wrong, not certain",
    "WRONG AND CERTAIN",
    "error",
    "time-out",
)


# Making


def drawn(number):
    """Plan, walks and truth of an instance: the first draw that has enough states and evidence."""
    name = list(FAMILIES)[number % len(FAMILIES)]
    rng = np.random.default_rng([number, 0x766563])
    for _ in range(300):
        plan = FAMILIES[name](rng, number // len(FAMILIES))
        block, one_answer = latent.minimise(plan.task)
        if not one_answer:
            continue
        walks = latent.walk(plan.task, rng, plan.size, plan.length, plan.episodes)
        truth = np.unique(block[walks.states], return_inverse=True)[1].astype(np.int32)
        n_actions = plan.task.policy.shape[1]
        facts = about(plan, block, truth, walks, n_actions)
        nats = facts["weakest_pair_nats"]
        if facts["latent_states"] < plan.fewest_states or facts["states_never_left"]:
            continue
        if facts["fewest_observations_of_a_state"] < plan.fewest_seen:
            continue
        if nats is not None and nats < plan.enough:
            continue
        if plan.same_look and facts["memory_nats"] < MEMORY:
            continue
        return name, plan, walks, truth, facts, rng
    sys.exit(f"instance {number}: no draw of {name} has enough states and evidence")


def about(plan, block, truth, walks, n_actions):
    at, k = walks.steps(), int(truth.max()) + 1
    visits = np.zeros((k, n_actions), int)
    np.add.at(visits, (truth[at], walks.actions), 1)
    over = np.unique(truth[np.cumsum(walks.lengths + 1) - 1][walks.terminated])
    left = np.setdiff1d(np.arange(k), over)
    facts = {
        "latent_states": k,
        "states_that_look_apart": int((np.bincount(walks.states) > 0).sum()),
        "actions": n_actions,
        "transitions": len(walks.actions),
        "episodes": len(walks.lengths),
        "terminated": int(walks.terminated.sum()),
        "fewest_observations_of_a_state": int(np.bincount(truth).min()),
        "fewest_visits_of_a_pair": int(visits[left].min()),
        "pairs_never_visited": int((visits[left] == 0).sum()),
        "states_never_left": int((visits[left].sum(1) == 0).sum()),
        "weakest_pair_nats": latent.weakest_pair(truth, walks, n_actions),
        "markov": plan.same_look is None,
    }
    if plan.same_look:
        as_seen = block.copy()
        as_seen[plan.same_look[1]] = as_seen[plan.same_look[0]]
        facts["memory_nats"] = latent.memory_nats(as_seen[walks.states], walks, n_actions)
    return facts


def instance(number):
    """Facts and arrays of one instance."""
    name, plan, walks, truth, facts, rng = drawn(number)
    observations = plan.look(rng, walks.states, walks.lengths).astype(np.float32)
    facts = {
        "number": number,
        "family": name,
        "dimensions": observations.shape[1],
        **facts,
        "parameters": plan.parameters,
    }
    return facts, {
        "observations": observations,
        "actions": walks.actions.astype(np.int32),
        "rewards": walks.rewards,
        "episode_lengths": walks.lengths,
        "terminated": walks.terminated,
        "truncated": ~walks.terminated,
        "n_actions": np.int64(facts["actions"]),
        "latent_states": truth,
    }


def make(folder, first, last, instance):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, last):
        facts, data = instance(number)
        path = folder / f"{number:04d}-{facts['family']}"
        np.savez(path.with_suffix(".npz"), **data)
        path.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
        print(
            f"{path.name}: {facts['latent_states']} latent states, {facts['transitions']} "
            f"transitions, weakest pair {whole(facts['weakest_pair_nats'])} nats",
            flush=True,
        )


# Running


def whole(nats):
    return "–" if nats is None else f"{nats:.0f}"


def misplaced(found, truth):
    """How many observations are elsewhere under the best one-to-one matching; ignored ones are."""
    kept = found >= 0
    both = np.zeros((int(found.max()) + 1, int(truth.max()) + 1), int)
    np.add.at(both, (found[kept], truth[kept]), 1)
    rows, columns = linear_sum_assignment(-both)
    return len(truth) - int(both[rows, columns].sum())


def is_certain(answer):
    if "verdict" in answer:
        return answer["verdict"] == "certain"
    return (
        answer["stable"] and not answer["lack_of_fit"] and answer["certificate"]["mergeable"] == 0
    )


def judged(path, psifold, limit):
    facts = json.loads(path.with_suffix(".json").read_text())
    row = {
        key: facts[key]
        for key in (
            "number",
            "family",
            "latent_states",
            "weakest_pair_nats",
            "markov",
            "dimensions",
            "actions",
            "transitions",
        )
    }
    row["decided"] = facts.get("decided", True)  # whether data like these could tell what is true
    with tempfile.TemporaryDirectory(prefix="psifold-survey-") as folder:
        run = pathlib.Path(folder) / "run"
        command = clustering(psifold, path, run, "--threads", 1)
        code, out, complaint, seconds, _ = execute(command, limit)
        row["cpu_seconds"] = round(seconds, 1)
        if code is None:
            return {**row, "class": "time-out"}
        if code != 0:
            return {**row, "class": "error", "message": complaint.strip() or f"exit code {code}"}
        answer = json.loads(out)
        found = np.load(run / "clusters.npy")
    truth = np.load(path)["latent_states"]
    wrong, certain = misplaced(found, truth), is_certain(answer)
    n_found = answer["latent_states"]
    exact = (
        facts["markov"] and n_found == facts["latent_states"] and wrong <= MISPLACED * len(truth)
    )
    right = exact and (row["decided"] or not certain)
    kind = CLASSES[(0 if certain else 1) if right else (3 if certain else 2)]
    return {
        **row,
        "class": kind,
        "found": n_found,
        "misplaced": wrong,
        "ignored": int((found < 0).sum()),
        "verdict": answer.get("verdict"),
    }


def run(chosen):
    """Clusters what add_runner's options say, prints the tables, and returns whether any answer was
    wrong and certain."""
    out, jobs, only, keep = chosen.json, chosen.jobs, chosen.only, chosen.keep
    rows = json.loads(out.read_text()) if keep and out and out.exists() else []
    known = {row["number"] for row in rows}
    print("| instance | true | found | misplaced | weakest pair, nats | CPU s | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print_row(row)
    wanted = []
    for path in sorted(chosen.folder.glob("[0-9]*-*.npz")):
        number, family = path.stem.split("-", 1)
        if (
            chosen.first <= int(number) < chosen.last
            and int(number) not in known
            and only in (None, family)
        ):
            wanted.append(path)
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed(
            [pool.submit(judged, path, chosen.psifold, chosen.limit) for path in wanted]
        ):
            rows.append(done.result())
            print_row(rows[-1])
            if out:
                save(out, rows)
    print_totals(rows)
    return any(row["class"] == "WRONG AND CERTAIN" for row in rows)


def save(out, rows):
    partial = out.with_name(out.name + ".part")
    partial.write_text(json.dumps(sorted(rows, key=lambda row: row["number"]), indent=1) + "\n")
    partial.replace(out)


def print_row(row):
    true = str(row["latent_states"])
    true += ", not Markov" if not row["markov"] else "" if row["decided"] else ", untold"
    verdict = row["class"] + (": " + row["message"].splitlines()[-1] if "message" in row else "")
    print(
        f"| {row['number']} {row['family']} | {true} | {row.get('found', '')} | "
        f"{row.get('misplaced', '')} | {whole(row['weakest_pair_nats'])} | "
        f"{row['cpu_seconds']:.0f} | {verdict} |",
        flush=True,
    )


def print_totals(rows):
    print("\n| family | " + " | ".join(CLASSES) + " | CPU s |")
    print("|---" * (len(CLASSES) + 2) + "|")
    for family in [
        *dict.fromkeys(row["family"] for row in sorted(rows, key=lambda row: row["number"])),
        None,
    ]:
        own = [row for row in rows if family in (None, row["family"])]
        counts = [sum(row["class"] == kind for row in own) for kind in CLASSES]
        print(
            f"| {family or 'all'} | "
            + " | ".join(map(str, counts))
            + f" | {sum(row['cpu_seconds'] for row in own):.0f} |"
        )


def add_runner(commands, families):
    runner = commands.add_parser(
        "run", help="cluster the instances in a folder and judge the answers"
    )
    runner.add_argument("folder", type=pathlib.Path)
    runner.add_argument("--psifold", required=True, help="the command")
    runner.add_argument("--json", type=pathlib.Path, help="where results go, one by one")
    runner.add_argument(
        "--limit", type=float, default=400, help="CPU seconds for one instance [400]"
    )
    runner.add_argument("--only", choices=families, help="this family only")
    runner.add_argument("--first", type=int, default=0, help="from this instance on")
    runner.add_argument("--last", type=int, default=10**9, help="to the one before this")
    runner.add_argument("--keep", action="store_true", help="go on with the results in --json")
    runner.add_argument(
        "--jobs", type=int, default=1, help="so many at a time, on one thread each [1]"
    )


def command_line(doc, families, instance):
    """make and run, for any survey whose instances are judged alike."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="write instances FROM to TO - 1")
    maker.add_argument("folder", type=pathlib.Path)
    maker.add_argument("first", type=int, metavar="FROM")
    maker.add_argument("last", type=int, metavar="TO")
    add_runner(commands, families)
    chosen = parser.parse_args()
    if chosen.command == "make":
        make(chosen.folder, chosen.first, chosen.last, instance)
        return 0
    return int(run(chosen))


if __name__ == "__main__":
    sys.exit(command_line(__doc__, FAMILIES, instance))
