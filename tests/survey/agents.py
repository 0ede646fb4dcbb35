"""Agents of others on psifold's states: DQN and PPO of Stable-Baselines3 in two MiniGrids, on
latent states and the pixels that these were learnt from, and on the exact latent states.

    agents.py states FOLDER TASK... --psifold PATH
    agents.py play FOLDER TASK... [--views VIEW...] [--agents NAME...] [--seeds N] [--steps N]
                                  [--rate R]
    agents.py show FOLDER

`states` lets random actions play a task, clusters the pixels and says what came out. `play` trains
every agent on what `states` left; what is in FOLDER already is not played again. `show` has the
table: reward per step of all training, exploration included, and the steps it took until twenty
episodes in a row reached the goal. Needs requirements-agents.txt, and psifold
(PYTHONPATH=python PSIFOLD_FLAT=build/python/libpsifold_flat.so will do).
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import gymnasium as gym
import numpy as np
from grid import Grid
from real import add_truth, collect
from runs import execute
from shows import box
from truth import misplaced, partition

# One layout each, seen as a whole; transitions of random play.
TASKS = {
    "doorkey5": (100_000, {"env_id": "MiniGrid-DoorKey-5x5-v0", "tile": 8}),
    "doorkey8": (100_000, {"env_id": "MiniGrid-DoorKey-8x8-v0", "tile": 5}),
    "fourrooms": (30_000, {"env_id": "MiniGrid-FourRooms-v0", "tile": 3, "scatter": True}),
}
SOLVED = 20  # episodes in a row

# What is not default is the same for both views: defaults are for millions of steps.
OPTIONS = {
    "dqn": {
        "learning_starts": 500,
        "exploration_fraction": 0.3,
        "target_update_interval": 500,
        "gamma": 0.95,
    },
    "ppo": {"n_steps": 512, "ent_coef": 0.01, "gamma": 0.95},
}


def make(name):
    transitions, options = TASKS[name]
    return Grid(name, transitions, show="pixels", **options)


class Played(gym.Env):
    """A task of the survey as an environment, in the layout that its data are from. It keeps what
    its episodes came to: steps and reward."""

    def __init__(self, name, seed):
        self.task = make(name)
        collect_layout(self.task)
        self.task.rng = np.random.default_rng([1, seed])
        self.task.reset()
        self.observation_space = box(self.task.observe()[None])
        self.action_space = gym.spaces.Discrete(self.task.n_actions)
        self.episodes = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.task.reset()
        self.steps = 0
        return self.task.observe(), {}

    def step(self, action):
        reward, terminated = self.task.step(int(action))
        self.steps += 1
        truncated = not terminated and self.steps >= self.task.limit
        if terminated or truncated:
            self.episodes.append((self.steps, reward))
        return self.task.observe(), reward, terminated, truncated, {}


class TrueStates(gym.ObservationWrapper):
    """The exact latent states of a task in the place of what is seen: the best of answers."""

    def __init__(self, env):
        super().__init__(env)
        task = env.task
        self.block = partition(task.model([task.key()]))
        task.reset()
        self.observation_space = gym.spaces.Discrete(max(self.block.values()) + 1)

    def observation(self, observation):
        return self.block.get(self.env.task.key(), 0)  # at the goal, which nobody learns from


def collect_layout(task):
    """The first thing that collect draws."""
    task.begin(np.random.default_rng([0, zlib.crc32(task.name.encode())]))


def states(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.tasks:
        task, path, run = (
            make(name),
            arguments.folder / f"{name}.npz",
            arguments.folder / f"{name}-run",
        )
        data, keys = collect(task, 0)
        known = add_truth(task, data, keys)
        np.savez(path, **data)
        command = [
            arguments.psifold,
            "cluster",
            path,
            "-o",
            run,
            "--json",
            "--quiet",
            "--replace",
            "--threads",
            "1",
        ]
        code, out, err, seconds, mebibytes = execute(
            [str(word) for word in command], arguments.limit
        )
        row = known | {
            "task": name,
            "transitions": len(data["actions"]),
            "cpu": seconds,
            "mebibytes": mebibytes,
        }
        row["solved_by_chance"] = int(data["terminated"].sum())
        if code == 0:
            said = json.loads(out)
            row |= {"found": said["latent_states"], "verdict": said["verdict"]}
            row["misplaced"] = misplaced(data["latent_states"], np.load(run / "clusters.npy"))
        else:
            row["verdict"] = "time-out" if code is None else err.strip()
        (arguments.folder / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n")
        print(json.dumps(row))


def train(folder, name, view, kind, seed, steps, rate):
    """An agent of Stable-Baselines3, from nothing."""
    import torch
    from stable_baselines3 import DQN, PPO

    import psifold

    torch.set_num_threads(1)
    played = Played(name, seed)
    env = played
    if view == "latent":
        env = psifold.LatentObservation(played, psifold.load(folder / f"{name}-run"))
    elif view == "truth":
        env = TrueStates(played)
    options = OPTIONS[kind] | ({"buffer_size": steps} if kind == "dqn" else {})
    options |= {"learning_rate": rate} if rate else {}
    policy = "CnnPolicy" if view == "pixels" else "MlpPolicy"
    agent = {"dqn": DQN, "ppo": PPO}[kind](policy, env, seed=seed, device="cpu", **options)
    began = time.process_time()
    agent.learn(steps)
    return {
        "task": name,
        "view": view,
        "agent": kind,
        "seed": seed,
        "steps": steps,
        "rate": rate,
        "cpu": round(time.process_time() - began, 1),
        "episodes": played.episodes,
    }


def play(arguments):
    for seed in range(arguments.seeds):
        for name in arguments.tasks:
            for view in arguments.views:
                for kind in arguments.agents:
                    rate = f"-{arguments.rate:g}" if arguments.rate else ""
                    path = (
                        arguments.folder
                        / "runs"
                        / f"{name}-{view}-{kind}{rate}-{arguments.steps}-{seed}.json"
                    )
                    if path.exists():
                        continue
                    row = train(
                        arguments.folder, name, view, kind, seed, arguments.steps, arguments.rate
                    )
                    path.parent.mkdir(exist_ok=True)
                    partial = path.with_suffix(".part")
                    partial.write_text(json.dumps(row) + "\n")
                    partial.replace(path)
                    print(
                        name,
                        view,
                        kind,
                        seed,
                        row["cpu"],
                        score(row),
                        solved_after(row),
                        flush=True,
                    )


def score(row):
    """Reward per step of all episodes that ended."""
    steps = sum(steps for steps, _ in row["episodes"])
    return sum(reward for _, reward in row["episodes"]) / steps if steps else 0.0


def solved_after(row):
    """Steps until so many episodes in a row reached the goal; None: they never did."""
    at, streak = 0, 0
    for steps, reward in row["episodes"]:
        at, streak = at + steps, streak + 1 if reward > 0 else 0
        if streak == SOLVED:
            return at
    return None


def show(arguments):
    """Interquartile means over seeds with rliable's stratified bootstrap, and the odds that latent
    states win."""
    from rliable import library, metrics

    rows = [
        json.loads(path.read_text()) for path in sorted((arguments.folder / "runs").glob("*.json"))
    ]
    groups = {}
    for row in rows:
        kind = row["agent"] + (f", rate {row['rate']:g}" if row.get("rate") else "")
        groups.setdefault((row["task"], kind, row["steps"]), {}).setdefault(row["view"], []).append(
            row
        )
    print(
        "| task | agent | steps | seen | seeds | reward per step, IQM | solved "
        "| after steps, median | CPU s each |"
    )
    print("|---" * 9 + "|")
    for (task, kind, steps), views in groups.items():
        scores = {view: np.array([[score(row)] for row in of]) for view, of in views.items()}
        middle, ends = library.get_interval_estimates(
            scores, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=2000
        )
        for view, of in views.items():
            after = [solved_after(row) for row in of]
            reached = np.median([np.inf if steps_ is None else steps_ for steps_ in after])
            words = [task, kind, steps, view, len(of)]
            words.append(f"{middle[view][0]:.4f} [{ends[view][0, 0]:.4f}, {ends[view][1, 0]:.4f}]")
            words += [f"{sum(x is not None for x in after)} of {len(of)}"]
            words += [
                "–" if np.isinf(reached) else f"{reached:.0f}",
                f"{np.mean([row['cpu'] for row in of]):.0f}",
            ]
            print("| " + " | ".join(map(str, words)) + " |")
        if {"latent", "pixels"} <= views.keys():
            pair = {"latent,pixels": (scores["latent"], scores["pixels"])}
            odds, ends = library.get_interval_estimates(
                pair, lambda x, y: np.array([metrics.probability_of_improvement(x, y)]), reps=2000
            )
            low, high = ends["latent,pixels"][:, 0]
            print(
                f"| | | | latent beats pixels | | {odds['latent,pixels'][0]:.2f} "
                f"[{low:.2f}, {high:.2f}] | | | |"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for function in (states, play, show):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        if function is show:
            continue
        command.add_argument("tasks", nargs="+", choices=TASKS)
        if function is states:
            command.add_argument("--psifold", required=True)
            command.add_argument(
                "--limit", type=float, default=600, help="CPU seconds of clustering [600]"
            )
        else:
            command.add_argument(
                "--views",
                nargs="+",
                choices=("latent", "pixels", "truth"),
                default=["latent", "pixels"],
            )
            command.add_argument("--agents", nargs="+", choices=OPTIONS, default=list(OPTIONS))
            command.add_argument("--seeds", type=int, default=5)
            command.add_argument("--steps", type=int, default=20_000)
            command.add_argument("--rate", type=float, help="of learning [the agent's default]")
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
