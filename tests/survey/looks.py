"""What states look like: vectors whose sets do not meet, or lie at least nine standard deviations
apart.

A look is a function of a random generator, the states of all episodes one after another, and the
episodes' lengths; it returns one row per state.
"""

import numpy as np
from scipy.signal import lfilter


def spread_out(rng, n, d, room=0.0):
    """n places in the unit cube, as far from one another as random places easily get, and how far.
    With `room` (n,), of place i the ball of radius room[i] is taken, in units of that distance."""
    radius = np.full(n, 0.5) if np.isscalar(room) else np.asarray(room, float)
    distance = 1.0
    places = np.empty((0, d))
    while len(places) < n:
        new = rng.random(d)
        need = distance * (radius[: len(places)] + radius[len(places)])
        if (np.linalg.norm(places - new, axis=1) >= need).all():
            places = np.vstack([places, new])
        else:
            distance *= 0.998
    return places, distance


def blobs(rng, n_states, d, per_state=1, unequal=False):
    """Round normal blobs, nine to fourteen standard deviations apart; `unequal`: widths by a factor
    of up to ten, and the distance of two blobs at least 4.5 times the sum of their widths."""
    n = n_states * per_state
    width = np.exp(rng.uniform(0, np.log(10), n)) if unequal else np.ones(n)
    places, distance = spread_out(rng, n, d, width if unequal else 0.0)
    apart = rng.uniform(9, 14)
    scale = distance / apart * (2.0 if unequal else 1.0) * width

    def look(rng, states, _):
        which = states * per_state + rng.integers(0, per_state, len(states))
        return places[which] + scale[which, None] * rng.standard_normal((len(states), d))

    return look, {"dimensions": d, "blobs_per_state": per_state, "apart_in_sd": apart}


def cells(corner):
    """Points anywhere in the unit square (or cube) of a state; neighbours touch."""

    def look(rng, states, _):
        inside = rng.uniform(1e-4, 1 - 1e-4, (len(states), corner.shape[1]))
        return corner[states] + inside

    return look, {"dimensions": corner.shape[1]}


def autoregressive(rng, lengths, d, memory):
    """Normal noise with unit variance that remembers, anew for every episode."""
    rows = []
    for length in lengths + 1:
        innovation = rng.standard_normal((length, d))
        innovation[1:] *= np.sqrt(1 - memory**2)
        rows.append(lfilter([1.0], [1.0, -memory], innovation, axis=0))
    return np.concatenate(rows)


def with_nuisance(look, n_nuisance, memory=0.0):
    """Beside what matters, as many dimensions that do not, of the same scale."""

    def both(rng, states, lengths):
        matters = look(rng, states, lengths)
        return np.hstack(
            [matters, matters.std(0).mean() * autoregressive(rng, lengths, n_nuisance, memory)]
        )

    return both


def rotated(look, d, rng):
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return lambda rng, states, lengths: look(rng, states, lengths) @ turn


def scaled(look, factors):
    return lambda rng, states, lengths: look(rng, states, lengths) * factors


def rings(rng, n_states):
    """Concentric rings, cut into segments: a state has one segment; the noise is radial."""
    per_ring = int(rng.integers(1, 3))
    sd, gap = 0.05, 0.3

    def look(rng, states, _):
        radius = 1 + states // per_ring + sd * np.clip(rng.standard_normal(len(states)), -5, 5)
        part = 2 * np.pi / per_ring
        free = gap if per_ring > 1 else 0.0
        angle = (states % per_ring) * part + rng.uniform(free / 2, part - free / 2, len(states))
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    return look, {"shape": "rings", "segments_per_ring": per_ring, "dimensions": 2}


def spirals(rng, n_states):
    """Arms of a spiral wound into one another, one arm a state, 25 standard deviations apart."""
    turns = rng.uniform(0.6, 1.3)

    def look(rng, states, _):
        angle = rng.uniform(0.5, 2 * np.pi * turns, len(states))
        # Neighbouring arms are 1 apart along the radius; towards the middle they meet under an
        # angle, so the middle is left out.
        radius = n_states * (1.0 + angle / (2 * np.pi)) + states
        radius += 0.04 * np.clip(rng.standard_normal(len(states)), -5, 5)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) / n_states

    return look, {"shape": "spirals", "turns": turns, "dimensions": 2}


def codes(rng, n_states, digits, values, per_state, nuisance):
    """Whole numbers: a state has a few codes of its own; digits that mean nothing stand beside
    them."""
    n = n_states * per_state
    number = rng.choice(values**digits, n, replace=False)
    code = number[:, None] // values ** np.arange(digits) % values

    def look(rng, states, _):
        which = states * per_state + rng.integers(0, per_state, len(states))
        idle = rng.integers(0, values, (len(states), nuisance))
        return np.hstack([code[which], idle]).astype(float)

    return look, {
        "dimensions": digits + nuisance,
        "values": values,
        "codes_per_state": per_state,
        "idle_digits": nuisance,
    }
