"""Small tasks with a model: what people put into data sets. Each function of newcomer_games,
newcomer_places and newcomer_systems draws one, with what is here.

A state is a tuple of whole numbers, which is what there is to see of it; outcomes(state) has, for
every action, a list of (probability, next state or End(what is seen there), reward).
"""

from itertools import product
from typing import NamedTuple

MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]


class End(tuple):
    """The end of an episode, and what is seen there."""


class Task(NamedTuple):
    starts: list
    actions: int
    outcomes: object


def prize(rng):
    return float(rng.choice([1, 1, 1, 10, -1, 0.5, 20, 100, 1000, 0.01]))


def cost(rng):
    return float(rng.choice([0, 0, -1, -0.1, -0.01]))


def cells_of(h, w):
    return list(product(range(h), range(w)))


def some_walls(rng, cells, share):
    return {cell for cell in cells if rng.random() < share}


def slid(rng_slip, moves, a):
    """The direction that was meant, or to its sides."""
    n = len(moves)
    return [
        (1 - rng_slip, moves[a]),
        (rng_slip / 2, moves[(a + 1) % n]),
        (rng_slip / 2, moves[a - 1]),
    ]


def moved(cell, step, h, w, walls=()):
    r, c = cell[0] + step[0], cell[1] + step[1]
    return (r, c) if 0 <= r < h and 0 <= c < w and (r, c) not in walls else (cell[0], cell[1])


def some(rng, states, most=None):
    """A few or all of them as starts."""
    k = len(states) if rng.random() < 0.4 else int(rng.integers(1, min(len(states), most or 5) + 1))
    return [states[i] for i in rng.permutation(len(states))[:k]]
