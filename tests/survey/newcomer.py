"""Tasks as a newcomer would bring them, in the ways in which a newcomer would see them.

Written without a look at psifold's source or at the other surveys, so that what they have in common
is not common by copying. Every data set is a number: it picks the task, its size, who acted, how
rewards are measured, and what is observed. The truth is exact; of a wrong answer it is told how
loudly the data spoke.

    newcomer.py make FOLDER 0 100            writes FOLDER/NUMBER-TASK-VIEW.npz, .json, .truth.npy
    newcomer.py run FOLDER --psifold build/psifold --json rows.json
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import newcomer_games
import newcomer_places
import newcomer_systems
import newcomer_views
import numpy as np
from newcomer_task import End
from runs import (
    ERROR,
    SURE_AND_RIGHT,
    SURE_AND_WRONG,
    TIME_OUT,
    UNSURE_AND_RIGHT,
    UNSURE_AND_WRONG,
    clustering,
    execute,
    is_sure,
)
from scipy.special import xlogy
from scipy.stats import chi2
from truth import explore, misplaced, partition

CHAPTERS = (newcomer_games, newcomer_places, newcomer_systems)
# The number of an instance says which: new ones come last.
ORDER = """
    lake cliff cab key_and_door rooms teleports wind columns river ring tree counter elevator
    queue inventory machine nim higher_lower twenty_one errands lock parity anything
    lifted_chain lifted_automaton mirror torus distance contexts hanoi lights jugs vending
    traffic gambler pursuit battery epidemic forest many_buttons trigger catch cue pushing lanes
    late pig crafting pendulum mountain close_odds levels day_and_night absorbing scales
    lotteries jobs snakes irrelevant_factors
""".split()
TASKS = [
    next(vars(chapter)[name] for chapter in CHAPTERS if name in vars(chapter)) for name in ORDER
]
TABLES, VECTORS, IMAGES = newcomer_views.TABLES, newcomer_views.VECTORS, newcomer_views.IMAGES
POLICIES = ["random", "random", "habits", "greedy", "sweeping", "sticky", "learning"]
NOISES = ["none", "none", "none", "none", "gauss", "coin", "heavy", "rounding"]
MOST_STATES = 3000
TOLERATED = 1e-4  # share of observations that may be elsewhere
LOUD = 1e-4  # the data speak if chance would do this so rarely


class Model:
    """A task as arrays: what each state and action lead to."""

    def __init__(self, task):
        self.ends = {}

        def outcomes(state):
            found = []
            for row in task.outcomes(state):
                merged = {}
                for p, after, reward in row:
                    if p > 0:
                        merged[after, float(reward)] = merged.get((after, float(reward)), 0.0) + p
                found.append([(p, after, reward) for (after, reward), p in merged.items()])
                assert abs(sum(p for p, _, _ in found[-1]) - 1) < 1e-9, (state, row)
            assert len(found) == task.actions
            if len(self.rows) >= MOST_STATES:
                raise OverflowError
            self.rows[state] = found
            return [
                [(p, None if isinstance(after, End) else after, r) for p, after, r in row]
                for row in found
            ]

        self.rows = {}
        self.exact = explore(task.starts, outcomes)
        self.states = list(self.exact)
        self.number = {state: i for i, state in enumerate(self.states)}
        looks = list(self.states)
        for row in self.rows.values():
            for _, after, _ in (one for action in row for one in action):
                if isinstance(after, End) and after not in self.ends:
                    self.ends[after] = len(looks)
                    looks.append(tuple(after))
        width = max(map(len, looks))
        self.looks = np.array([look + (0,) * (width - len(look)) for look in looks], int)
        block = partition(self.exact)
        self.block = np.array([block[state] for state in self.states] + [0] * len(self.ends))
        whole = partition(self.exact, whole_distribution=True)
        self.odds = len(set(whole.values())) != len(set(block.values()))
        self.table = [
            [
                (
                    np.cumsum([p for p, _, _ in row]),
                    [
                        self.ends[after] if isinstance(after, End) else self.number[after]
                        for _, after, _ in row
                    ],
                    [r for _, _, r in row],
                )
                for row in self.rows[state]
            ]
            for state in self.states
        ]

    def best(self, gamma=0.95, rounds=150):
        """What a good player does in every state."""
        n, actions = len(self.states), len(self.table[0])
        value = np.zeros(n + len(self.ends))
        q = np.zeros((n, actions))
        for _ in range(rounds):
            for s in range(n):
                for a, (steps, after, reward) in enumerate(self.table[s]):
                    p = np.diff(steps, prepend=0)
                    q[s, a] = sum(p * (np.array(reward) + gamma * value[after]))
            value[:n] = q.max(1)
        return q.argmax(1)


def play(rng, task, model, transitions):
    """Episodes of a behaviour, and what it was."""
    actions, n = task.actions, len(model.states)
    policy = str(rng.choice(POLICIES))
    if policy in ("greedy", "learning") and n * actions > 2000:
        policy = "random"
    best = model.best() if policy in ("greedy", "learning") else None
    habits = (
        rng.dirichlet(np.full(actions, 1.0), n) * 0.9 + 0.1 / actions
        if policy == "habits"
        else None
    )
    epsilon, limit = rng.uniform(0.1, 0.6), int(rng.choice([10, 20, 50, 100, 200, 1000]))
    weights = rng.dirichlet(np.full(len(task.starts), rng.choice([0.3, 1000.0])))
    starts = [model.number[s] for s in task.starts]
    where, acts, rewards, lengths, terminated = [], [], [], [], []
    step = 0
    while step < transitions:
        s, length, last = int(rng.choice(starts, p=weights)), 0, 0
        where.append(s)
        while s < n and length < limit and step < transitions:
            explore_now = {
                "greedy": epsilon,
                "learning": max(0.1, 1 - 1.5 * step / transitions),
            }.get(policy, 1.0)
            if policy == "habits":
                a = int(rng.choice(actions, p=habits[s]))
            elif policy == "sweeping" and rng.random() > 0.3:
                a = length % actions
            elif policy == "sticky" and length and rng.random() < 0.7:
                a = last
            elif explore_now < 1 and rng.random() > explore_now:
                a = int(best[s])
            else:
                a = int(rng.integers(actions))
            steps, after, reward = model.table[s][a]
            k = min(int(np.searchsorted(steps, rng.random(), side="right")), len(after) - 1)
            s, last = after[k], a
            where.append(s)
            acts.append(a)
            rewards.append(reward[k])
            length, step = length + 1, step + 1
        lengths.append(length)
        terminated.append(s >= n)
    how = {"policy": policy, "limit": limit, "epsilon": round(epsilon, 2)}
    return (
        np.array(where),
        np.array(acts),
        np.array(rewards, float),
        np.array(lengths),
        np.array(terminated),
        how,
    )


def measured(rng, rewards):
    """Rewards with noise that changes no expectation and is the same everywhere."""
    kind = str(rng.choice(NOISES))
    values = np.unique(rewards)
    gap = np.diff(values).min() if len(values) > 1 else 1.0
    if kind == "gauss":
        return rewards + gap * rng.uniform(0.02, 1.0) * rng.normal(size=len(rewards)), kind
    if kind == "heavy":
        return rewards + gap * rng.uniform(0.02, 0.3) * rng.standard_t(3, size=len(rewards)), kind
    if kind == "coin" and 2 < len(values) <= 6:
        low, high = values[0], values[-1]
        return np.where(rng.random(len(rewards)) * (high - low) < rewards - low, high, low), kind
    if kind == "rounding":
        return rewards + np.abs(values).max() * 1e-7 * rng.normal(size=len(rewards)), kind
    return rewards, "none"


def distracted(rng, features, acts, lengths):
    """More columns, which are Markov chains of their own that nothing depends on."""
    if rng.random() > 0.35:
        return features, "none"
    k, kind = (
        int(rng.integers(2, 7)),
        str(rng.choice(["chain", "driven", "episode", "look", "walk"])),
    )
    column, x, at, act = np.zeros(len(features), int), 0, 0, 0
    chain = rng.dirichlet(np.full(k, 0.4), (k, 64))
    for length in lengths.tolist():
        x = int(rng.integers(k))
        for t in range(length + 1):
            column[at] = x
            at += 1
            if t < length:
                a = int(acts[act])
                act += 1
                if kind == "chain":
                    x = int(rng.choice(k, p=chain[x, 0]))
                elif kind == "driven":
                    x = int(rng.choice(k, p=chain[x, a]))
                elif kind == "look":
                    x = int(rng.integers(k))
                elif kind == "walk":
                    x = (x + int(rng.integers(-1, 2))) % k
    return np.column_stack([features, column]), kind


def instance(number, task=None, view=None, transitions=None):
    """Everything of one data set."""
    rng = np.random.default_rng([number, 20])
    make = (
        TASKS[number % len(TASKS)] if task is None else next(f for f in TASKS if f.__name__ == task)
    )
    while True:
        try:
            the_task = make(rng)
            model = Model(the_task)
            break
        except OverflowError:
            continue
    kinds = [TABLES, VECTORS, IMAGES]
    drawn = str(rng.choice(list(kinds[int(rng.choice(3, p=[0.35, 0.5, 0.15]))])))
    view = view or drawn
    most = 5.0 if view in TABLES else 4.0 if view in VECTORS else 3.5
    size = int(10 ** (2.7 + (most - 2.7) * rng.random() ** 0.5))
    where, acts, rewards, lengths, terminated, how = play(rng, the_task, model, transitions or size)
    rewards, noise = measured(rng, rewards)
    features, distractor = distracted(rng, model.looks[where], acts, lengths)
    everything = {**TABLES, **VECTORS, **IMAGES}
    episode = np.repeat(np.arange(len(lengths)), lengths + 1)
    time = np.arange(len(where)) - np.repeat(np.cumsum(lengths + 1) - lengths - 1, lengths + 1)
    observations, detail = everything[view](rng, features, episode, time)
    truth = model.block[where]
    last = np.cumsum(lengths + 1) - 1
    truth[last[terminated]] = 0
    truth = (
        np.unique(truth, return_inverse=True)[1]
        if terminated.any()
        else np.unique(truth, return_inverse=True)[1] + 1
    )
    arrays = {
        "observations": np.ascontiguousarray(observations),
        "actions": acts.astype(np.int64),
        "rewards": rewards,
        "episode_lengths": lengths.astype(np.int64),
        "terminated": terminated,
        "truncated": ~terminated,
        "n_actions": np.int64(the_task.actions),
    }
    meta = {
        "name": f"{number}-{make.__name__}-{view}",
        "seed": number,
        "task": make.__name__,
        "view": view,
        "kind": "table" if view in TABLES else "vectors" if view in VECTORS else "images",
        "detail": detail,
        "transitions": len(acts),
        "episodes": len(lengths),
        "actions": the_task.actions,
        "states": len(model.states),
        "latent_states": len(np.unique(truth)),
        "true_of_the_model": len(set(model.block.tolist())),
        "rewards": noise,
        "distractor": distractor,
        "odds": model.odds,
        **how,
    }
    return arrays, truth, where, meta


def steps_of(lengths):
    """Which observations are followed by an action."""
    inner = np.ones(int((lengths + 1).sum()), bool)
    inner[np.cumsum(lengths + 1) - 1] = False
    return np.flatnonzero(inner)


def evidence(groups, parts, acts, rewards, after):
    """Within each group: do its parts differ in rewards or in what comes next? Largest (nats,
    freedom, chance) of all groups and actions, by the likelihood ratio, rewards as normal where
    they are many."""
    loudest = (0.0, 0, 1.0, None)
    few = len(np.unique(rewards)) <= 50
    outcome = np.unique(
        np.column_stack([rewards, after]) if few else after[:, None], axis=0, return_inverse=True
    )[1].ravel()
    for group in np.unique(groups):
        for action in np.unique(acts[groups == group]):
            here = (groups == group) & (acts == action)
            names, part = np.unique(parts[here], return_inverse=True)
            if len(names) < 2:
                continue
            _, what = np.unique(outcome[here], return_inverse=True)
            table = np.zeros((len(names), what.max() + 1))
            np.add.at(table, (part, what), 1)
            expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
            nats = float(xlogy(table, table / expected).sum())
            freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
            if not few:
                r = rewards[here]
                means = np.bincount(part, r) / np.bincount(part)
                inside, total = ((r - means[part]) ** 2).sum(), ((r - r.mean()) ** 2).sum()
                if inside > 0:
                    nats += len(r) / 2 * float(np.log(total / inside))
                    freedom += len(names) - 1
            chance = float(chi2.sf(2 * nats, freedom)) if freedom else 1.0
            if (chance, -nats) < (loudest[2], -loudest[0]):
                loudest = (
                    round(nats, 1),
                    freedom,
                    chance,
                    [int(group), int(action), *map(int, table.sum(1))],
                )
    return loudest


def judge(data, truth, labels):
    """How many are elsewhere, and how loudly the data speak against it: of what was merged, and of
    what was split."""
    wrong = misplaced(truth, labels)
    at = steps_of(data["episode_lengths"])
    known = labels >= 0
    found = {
        "misplaced": wrong,
        "unlabelled": int((~known).sum()),
        "misplaced_inside": misplaced(truth[at], labels[at]),
    }
    if wrong:
        t, b = truth[at], labels[at]
        merged = evidence(b, t, data["actions"], data["rewards"], labels[at + 1])
        split = evidence(t, b, data["actions"], data["rewards"], truth[at + 1])
        found |= {"merged": merged, "split": split}
    return found


def make(folder, first, last, **fixed):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, last):
        arrays, truth, _, meta = instance(number, **fixed)
        np.savez(folder / f"{meta['name']}.npz", **arrays)
        np.save(folder / f"{meta['name']}.truth.npy", truth)
        (folder / f"{meta['name']}.json").write_text(json.dumps(meta, indent=1) + "\n")
    return meta["name"]


def ask(folder, name, psifold, limit, more=()):
    """One row."""
    row = json.loads((folder / f"{name}.json").read_text())
    with tempfile.TemporaryDirectory(prefix="psifold-newcomer-") as scratch:
        run = Path(scratch) / "run"
        command = clustering(psifold, folder / f"{name}.npz", run, "--threads", 1, *more)
        code, out, err, seconds, mebibytes = execute(command, limit)
        row |= {"cpu_seconds": round(seconds, 2), "mebibytes": round(mebibytes)}
        if code is None:
            return row | {"class": TIME_OUT}
        if code != 0:
            return row | {
                "class": ERROR,
                "message": (err.strip().splitlines() or [f"exit code {code}"])[-1],
            }
        answer = json.loads(out)
        labels = np.load(run / "clusters.npy")
    truth = np.load(folder / f"{name}.truth.npy")
    row |= judge(np.load(folder / f"{name}.npz"), truth, labels)
    row |= {
        key: answer.get(key) for key in ("verdict", "verdict_sentence", "approximator", "advice")
    }
    row["found"], row["observations"] = answer["latent_states"], len(truth)
    right = row["misplaced"] <= TOLERATED * len(truth)
    sure = is_sure(answer)
    kind = (
        (SURE_AND_RIGHT if sure else UNSURE_AND_RIGHT)
        if right
        else (SURE_AND_WRONG if sure else UNSURE_AND_WRONG)
    )
    return row | {"class": kind}


def sweep(folder, first, last, psifold, limit, output):
    """Many in turn, of which only the data sets stay that went wrong without a word, or took
    long."""
    rows = json.loads(output.read_text()) if output and output.exists() else []
    have = {row["seed"] for row in rows}
    for number in range(first, last):
        if number in have:
            continue
        name = make(folder, number, number + 1)
        row = ask(folder, name, psifold, limit)
        rows.append(row)
        if output:
            output.write_text(json.dumps(rows) + "\n")
        tell(row)
        if (
            row["class"] in (SURE_AND_RIGHT, UNSURE_AND_RIGHT, UNSURE_AND_WRONG)
            and row["cpu_seconds"] < 10
        ):
            for end in (".npz", ".json", ".truth.npy"):
                (folder / f"{name}{end}").unlink()
    total(rows)
    return rows


def tell(row):
    quiet = row["class"] in (SURE_AND_RIGHT, UNSURE_AND_RIGHT)
    told = (
        ""
        if quiet
        else {
            k: row[k]
            for k in ("misplaced", "misplaced_inside", "merged", "split", "message")
            if k in row
        }
    )
    sizes = f"n={row['transitions']} K={row['latent_states']} found={row.get('found')}"
    sizes += f" {row.get('verdict')}"
    print(f"{row['name']}: {row['class']}, {sizes}, {row['cpu_seconds']} s {told}", flush=True)


def total(rows):
    counts = {}
    for row in rows:
        counts[row["kind"], row["class"]] = counts.get((row["kind"], row["class"]), 0) + 1
    for (kind, verdict), count in sorted(counts.items()):
        print(f"{kind}: {count} {verdict}")


def run(folder, psifold, limit, output, only=None):
    names = sorted(
        (p.stem for p in folder.glob("*.json")), key=lambda name: int(name.split("-")[0])
    )
    rows = json.loads(output.read_text()) if output and output.exists() else []
    have = {row["name"] for row in rows}
    for name in names:
        if name in have or (only and only not in name):
            continue
        row = ask(folder, name, psifold, limit)
        rows.append(row)
        if output:
            output.write_text(json.dumps(rows, indent=1) + "\n")
        tell(row)
    total(rows)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("folder", type=Path)
    one.add_argument("first", type=int)
    one.add_argument("last", type=int)
    one.add_argument("--task")
    one.add_argument("--view")
    one.add_argument("--transitions", type=int)
    two = commands.add_parser("run")
    two.add_argument("folder", type=Path)
    two.add_argument("--only")
    three = commands.add_parser("sweep")
    three.add_argument("folder", type=Path)
    three.add_argument("first", type=int)
    three.add_argument("last", type=int)
    for command in (two, three):
        command.add_argument("--psifold", default="build/psifold")
        command.add_argument("--json", type=Path)
        command.add_argument("--limit", type=float, default=60)
    arguments = parser.parse_args()
    if arguments.command == "make":
        fixed = {key: getattr(arguments, key) for key in ("task", "view", "transitions")}
        make(arguments.folder, arguments.first, arguments.last, **fixed)
        return 0
    if arguments.command == "sweep":
        rows = sweep(
            arguments.folder,
            arguments.first,
            arguments.last,
            arguments.psifold,
            arguments.limit,
            arguments.json,
        )
        return any(row["class"] in (SURE_AND_WRONG, ERROR) for row in rows)
    rows = run(arguments.folder, arguments.psifold, arguments.limit, arguments.json, arguments.only)
    return any(row["class"] in (SURE_AND_WRONG, ERROR) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
