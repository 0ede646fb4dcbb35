#!/usr/bin/env python3
"""More real tasks with exact truth: OpenSpiel, bsuite, MO-Gymnasium, other MiniGrids, wrappers of
toy text.

    worlds.py make FOLDER [--only NAME,...] [--seed S]     as real.py does
    worlds.py run FOLDER --psifold PATH [--json OUT]

It needs requirements-worlds.txt. Nothing was chosen because psifold finds it: some tasks hide their
state, some are played by who mostly does what is best, or what was done before.
"""

import itertools
import sys
import warnings

import real
from chance import Bsuite, Objectives
from games import Spiel
from grid import Things
from toy import ToyText
from wrapped import Clocked, Looks, Played, Stacked, Sticky


def games():
    turns = "turn_based_simultaneous_game(game={})"
    for name, count, game, options in (
        ("spiel-catch", 30_000, "catch(rows=8,columns=5)", {}),
        ("spiel-catch-number", 5_000, "catch(rows=6,columns=5)", {"show": "number"}),
        ("spiel-cliff", 50_000, "cliff_walking(height=4,width=6,horizon=9999)", {}),
        (
            "spiel-cliff-clock",
            50_000,
            "cliff_walking(height=4,width=6,horizon=30)",
            {"timed": True},
        ),
        ("spiel-deepsea", 20_000, "deep_sea(size=5)", {}),
        ("spiel-tictactoe", 100_000, "tic_tac_toe", {}),
        ("spiel-tictactoe-legal", 100_000, "tic_tac_toe", {"legal": True}),
        ("spiel-tictactoe-first", 50_000, "tic_tac_toe", {"opponent": "first", "show": "bytes"}),
        ("spiel-nim", 50_000, "nim(pile_sizes=2;3;4)", {"show": "number"}),
        (
            "spiel-pig",
            50_000,
            "pig(players=1,winscore=20,horizon=1000,diceoutcomes=3)",
            {"show": "number"},
        ),
        (
            "spiel-pig-two",
            100_000,
            "pig(players=2,winscore=10,horizon=1000,diceoutcomes=3)",
            {"show": "number"},
        ),
        ("spiel-hex3", 100_000, "hex(board_size=3)", {}),
        ("spiel-connect", 100_000, "connect_four(rows=3,columns=3,x_in_row=3)", {}),
        ("spiel-y", 100_000, "y(board_size=3)", {}),
        ("spiel-clobber", 50_000, "clobber(rows=2,columns=3)", {"show": "number"}),
        ("spiel-kuhn", 20_000, "kuhn_poker", {}),
        ("spiel-kuhn-hidden", 20_000, "kuhn_poker", {"show": "hidden"}),
        ("spiel-leduc", 100_000, "leduc_poker", {}),
        ("spiel-leduc-first", 50_000, "leduc_poker", {"opponent": "first"}),
        ("spiel-leduc-hidden", 50_000, "leduc_poker", {"show": "hidden"}),
        ("spiel-liars", 50_000, "liars_dice(dice_sides=3)", {}),
        (
            "spiel-oshi",
            50_000,
            turns.format("oshi_zumo(coins=4,size=1,horizon=6)"),
            {"show": "number"},
        ),
        (
            "spiel-goofspiel",
            50_000,
            turns.format("goofspiel(num_cards=4,points_order=descending)"),
            {},
        ),
        ("spiel-mnk", 100_000, "mnk(m=3,n=2,k=2)", {}),
    ):
        yield (
            name,
            count,
            lambda name, count, game=game, options=options: Spiel(name, count, game, **options),
        )


def objectives():
    for name, count, env_id, weights in (
        ("mo-treasure", 30_000, "deep-sea-treasure-v0", [1, 0]),
        ("mo-treasure-time", 30_000, "deep-sea-treasure-v0", [1, 1]),
        ("mo-concave", 100_000, "deep-sea-treasure-concave-v0", [1, 0]),
        ("mo-resource", 30_000, "resource-gathering-v0", [1, 1, 1]),
        ("mo-resource-few", 5_000, "resource-gathering-v0", [1, 1, 1]),
        ("mo-resource-gold", 30_000, "resource-gathering-v0", [0, 1, 0]),
        ("mo-fruit", 30_000, "fruit-tree-v0", [1, 0, 0, 0, 0, 0]),
        ("mo-fruit-sum", 30_000, "fruit-tree-v0", [1, 1, 1, 1, 1, 1]),
        ("mo-fishwood", 30_000, "fishwood-v0", [1, 1]),
        ("mo-bottles", 50_000, "breakable-bottles-v0", [1, 1, 1]),
        ("mo-bottles-delivered", 50_000, "breakable-bottles-v0", [0, 1, 0]),
    ):
        yield name, count, lambda name, count, e=env_id, w=weights: Objectives(name, count, e, w)


def behaviours():
    windy = {"size": 6, "mapping_seed": 1, "deterministic": False}
    for name, count, kind, options in (
        ("bsuite-catch", 30_000, "catch.Catch", {}),
        ("bsuite-deepsea", 20_000, "deep_sea.DeepSea", {"size": 6, "mapping_seed": 1}),
        ("bsuite-deepsea10", 100_000, "deep_sea.DeepSea", {"size": 10, "mapping_seed": 1}),
        ("bsuite-deepsea-windy", 50_000, "deep_sea.DeepSea", windy),
        ("bsuite-umbrella", 20_000, "umbrella_chain.UmbrellaChain", {"chain_length": 6}),
        (
            "bsuite-umbrella-distract",
            20_000,
            "umbrella_chain.UmbrellaChain",
            {"chain_length": 6, "n_distractor": 4},
        ),
        (
            "bsuite-umbrella-distract20",
            30_000,
            "umbrella_chain.UmbrellaChain",
            {"chain_length": 10, "n_distractor": 20},
        ),
        ("bsuite-discounting", 50_000, "discounting_chain.DiscountingChain", {"mapping_seed": 2}),
        ("bsuite-memory3", 20_000, "memory_chain.MemoryChain", {"memory_length": 3}),
        ("bsuite-memory10", 20_000, "memory_chain.MemoryChain", {"memory_length": 10}),
    ):
        yield name, count, lambda name, count, k=kind, o=options: Bsuite(name, count, k, **o)


def grids():
    for name, env_id, count, options in (
        ("grid-unlock", "MiniGrid-Unlock-v0", 100_000, {}),
        ("grid-corridor", "MiniGrid-KeyCorridorS3R1-v0", 100_000, {}),
        ("grid-gotodoor", "MiniGrid-GoToDoor-5x5-v0", 50_000, {}),
        ("grid-gotodoor-random", "MiniGrid-GoToDoor-5x5-v0", 100_000, {"layouts": 5}),
        ("grid-gotodoor-pixels", "MiniGrid-GoToDoor-5x5-v0", 30_000, {"show": "pixels"}),
        ("grid-fetch", "MiniGrid-Fetch-5x5-N2-v0", 50_000, {}),
        ("grid-fetch-random", "MiniGrid-Fetch-5x5-N2-v0", 100_000, {"layouts": 10}),
        ("grid-memory", "MiniGrid-MemoryS7-v0", 100_000, {}),
        ("grid-memory-pixels", "MiniGrid-MemoryS7-v0", 30_000, {"show": "pixels"}),
        ("grid-memory-view", "MiniGrid-MemoryS7-v0", 100_000, {"show": "view"}),
        ("grid-memory-random", "MiniGrid-MemoryS7-v0", 100_000, {"layouts": 4}),
        ("grid-putnear", "MiniGrid-PutNear-6x6-N2-v0", 100_000, {}),
        ("grid-crossing", "MiniGrid-SimpleCrossingS9N1-v0", 100_000, {}),
        ("grid-lava", "MiniGrid-LavaCrossingS9N1-v0", 100_000, {}),
        ("grid-shift", "MiniGrid-DistShift1-v0", 50_000, {}),
        ("grid-gotoobject", "MiniGrid-GoToObject-6x6-N2-v0", 50_000, {}),
        ("grid-empty-falling", "MiniGrid-Empty-5x5-v0", 30_000, {"falling": True}),
        (
            "grid-empty-falling-pixels",
            "MiniGrid-Empty-5x5-v0",
            10_000,
            {"falling": True, "show": "pixels"},
        ),
    ):
        yield name, count, lambda name, count, e=env_id, o=options: Things(name, count, e, **o)


def wrappers():
    def lake(wet=False, starts=True, side="4"):
        return ToyText(
            "",
            0,
            "FrozenLake-v1",
            starts=starts,
            limit=100,
            map_name=f"{side}x{side}",
            is_slippery=wet,
        )

    def cliff(wet=False):
        return ToyText("", 0, "CliffWalking-v1", starts=True, limit=100, is_slippery=wet)

    def taxi():
        return ToyText("", 0, "Taxi-v4")

    yield from (
        ("lake-onehot", 10_000, lambda n, c: Looks(n, c, lake(), 0)),
        ("lake-onehot-noise", 10_000, lambda n, c: Looks(n, c, lake(), 0.1)),
        ("lake-onehot-noise-wet", 20_000, lambda n, c: Looks(n, c, lake(True), 0.1)),
        ("lake-onehot-loud", 20_000, lambda n, c: Looks(n, c, lake(), 0.25)),
        ("lake8-onehot-noise", 50_000, lambda n, c: Looks(n, c, lake(side="8"), 0.1)),
        ("cliff-onehot-noise", 20_000, lambda n, c: Looks(n, c, cliff(), 0.1)),
        ("cliff-onehot-loud", 50_000, lambda n, c: Looks(n, c, cliff(True), 0.2)),
        ("lake-sticky", 20_000, lambda n, c: Sticky(n, c, lake(), False)),
        ("lake-sticky-shown", 20_000, lambda n, c: Sticky(n, c, lake(), True)),
        ("lake-sticky-stacked", 50_000, lambda n, c: Stacked(n, c, Sticky(n, c, lake(), False))),
        ("lake-stacked", 20_000, lambda n, c: Stacked(n, c, lake())),
        ("cliff-sticky", 50_000, lambda n, c: Sticky(n, c, cliff(), False)),
        ("cliff-sticky-shown", 50_000, lambda n, c: Sticky(n, c, cliff(), True)),
        ("lake-clock", 20_000, lambda n, c: Clocked(n, c, lake(), 8, False)),
        ("lake-clock-shown", 50_000, lambda n, c: Clocked(n, c, lake(), 8, True)),
        ("cliff-clock", 50_000, lambda n, c: Clocked(n, c, cliff(), 20, False)),
        ("cliff-clock-late", 50_000, lambda n, c: Clocked(n, c, cliff(), 99, False)),
        ("cliff-clock-shown", 100_000, lambda n, c: Clocked(n, c, cliff(), 6, True)),
        ("lake-greedy", 20_000, lambda n, c: Played(n, c, lake(), "greedy")),
        ("lake-greedy-start", 20_000, lambda n, c: Played(n, c, lake(True, False), "greedy")),
        ("lake8-greedy-start", 50_000, lambda n, c: Played(n, c, lake(True, False, "8"), "greedy")),
        ("cliff-greedy", 20_000, lambda n, c: Played(n, c, cliff(), "greedy")),
        ("taxi-greedy", 50_000, lambda n, c: Played(n, c, taxi(), "greedy")),
        ("taxi-habit", 100_000, lambda n, c: Played(n, c, taxi(), "habit")),
        ("cliff-habit", 20_000, lambda n, c: Played(n, c, cliff(), "habit")),
        (
            "tictactoe-greedy",
            100_000,
            lambda n, c: Played(n, c, Spiel(n, c, "tic_tac_toe"), "greedy"),
        ),
    )


def all_tasks():
    """name -> function that makes the task with the given number of transitions, or its own."""
    found = {}
    for name, count, make in itertools.chain(
        games(), objectives(), behaviours(), grids(), wrappers()
    ):
        found[name] = lambda n=None, name=name, count=count, make=make: make(name, n or count)
    return found


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=UserWarning)
    sys.exit(real.main(all_tasks(), __doc__))
