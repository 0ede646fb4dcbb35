"""The catalogue of the survey.

A task is reset, stepped and looked at; key() names its true state, and model(keys) is the exact
model of all states that can be reached. Tasks whose truth is unknown have neither. Environments are
stepped without their wrappers: the time limit is kept by who collects, and is truncation, never
termination.
"""

import gymnasium as gym
import shows
from grid import Grid
from toy import Blackjack, ToyText
from untold import Classic, MinAtar


def toy_text():
    for side, count in (("4", 20_000), ("8", 50_000)):
        for wet in (False, True):
            for starts in (False, True):
                name = f"frozenlake{side}" + "-slippery" * wet + "-starts" * starts
                options = dict(
                    env_id="FrozenLake-v1",
                    map_name=f"{side}x{side}",
                    is_slippery=wet,
                    starts=starts,
                    limit=100 if side == "4" else 200,
                )
                yield name, count, ToyText, options
                if starts:
                    yield name + "-noisy", count, ToyText, options | {"show": "noisy"}
                    yield (
                        name + "-rendered",
                        count,
                        ToyText,
                        options | {"show": "rendered", "draw": shows.frozen_lake},
                    )
    taxi = next(name for name in ("Taxi-v4", "Taxi-v3") if name in gym.registry)
    for name, extra in (
        ("taxi", {}),
        ("taxi-rainy", {"is_rainy": True}),
        ("taxi-fickle", {"fickle_passenger": True}),
    ):
        options = {"env_id": taxi} | extra
        yield name, 100_000, ToyText, options
        if name != "taxi-fickle":
            yield name + "-noisy", 100_000, ToyText, options | {"show": "noisy"}
            yield (
                name + "-rendered",
                100_000,
                ToyText,
                options | {"show": "rendered", "draw": shows.taxi},
            )
    for wet in (False, True):
        for starts in (False, True):
            name = "cliff" + "-slippery" * wet + "-starts" * starts
            options = dict(env_id="CliffWalking-v1", is_slippery=wet, starts=starts, limit=200)
            yield name, 50_000, ToyText, options
            if starts:
                yield name + "-noisy", 50_000, ToyText, options | {"show": "noisy"}
                yield (
                    name + "-rendered",
                    50_000,
                    ToyText,
                    options | {"show": "rendered", "draw": shows.cliff},
                )
    yield "blackjack", 100_000, Blackjack, {"sab": False}
    yield "blackjack-sab", 100_000, Blackjack, {"sab": True}


def grids():
    for name, env_id, count, options in (
        ("empty5", "MiniGrid-Empty-5x5-v0", 100_000, {}),
        ("empty8", "MiniGrid-Empty-8x8-v0", 100_000, {}),
        ("lavagap5", "MiniGrid-LavaGapS5-v0", 100_000, {}),
        ("doorkey5", "MiniGrid-DoorKey-5x5-v0", 100_000, {}),
        ("fourrooms", "MiniGrid-FourRooms-v0", 100_000, {"scatter": True, "tile": 3}),
    ):
        wandering = name.startswith("empty")
        several = "MiniGrid-Empty-Random-5x5-v0" if name == "empty5" else env_id
        layouts = 20 if name == "fourrooms" else 0
        for show in ("cells", "pixels", "view"):
            label = name + {"cells": ""}.get(show, "-" + show)
            fewer = 30_000 if name == "fourrooms" and show == "pixels" else count
            yield label, fewer, Grid, {"env_id": env_id, "show": show} | options
            if name == "empty8" or (wandering and show == "pixels"):
                continue
            yield (
                label + "-random",
                fewer,
                Grid,
                {"env_id": several, "show": show, "layouts": layouts} | options,
            )


def untold():
    for name, env_id in (
        ("cartpole", "CartPole-v1"),
        ("acrobot", "Acrobot-v1"),
        ("mountaincar", "MountainCar-v0"),
    ):
        yield name, 100_000, Classic, {"env_id": env_id}
    for game in ("breakout", "freeway", "asterix"):
        yield "minatar-" + game, 100_000, MinAtar, {"game": game}


def all_tasks():
    """name -> function that makes the task with the given number of transitions, or its own."""
    found = {}
    for name, count, kind, options in (*toy_text(), *grids(), *untold()):
        found[name] = lambda n=None, name=name, count=count, kind=kind, options=options: kind(
            name, n or count, **options
        )
    return found
