"""Tasks that outsiders bring (wild.py): symmetric, with parts that do not matter, rare branches,
traps, games, amounts that lie close together, and a few of which something is hidden."""

import itertools
from dataclasses import dataclass

import numpy as np


@dataclass
class World:
    """States are tuples of as many whole numbers; an end is a string. rows(state): for each action,
    outcomes (probability, next state, reward)."""

    starts: list
    rows: object
    longest: int = 60
    seen: object = lambda state: state  # what is shown of it
    plain: bool = False  # rewards and looks as they are: what is hidden shall be clear


# --- tasks ---------------------------------------------------------------------------------------


def star(rng):
    """Arms that are alike around a centre: only how far out one stands counts."""
    arms, length = int(rng.integers(3, 7)), int(rng.integers(3, 6))

    def rows(x):
        arm, out = x
        turn = ((arm + 1) % arms, 0) if out == 0 else x
        further = [(1, "found", 1.0)] if out == length else [(1, (arm, out + 1), 0.0)]
        return [further, [(1, (arm, max(0, out - 1)), 0.0)], [(1, turn, -0.1 * (out > 0))]]

    return World([(k, 0) for k in range(arms)], rows)


def modulo(rng):
    """A counter whose remainder counts."""
    m = int(rng.integers(3, 8))
    n = m * int(rng.integers(2, 6))
    steps = [1, 2, n - 1][: int(rng.integers(2, 4))]
    return World(
        [(0,)], lambda x: [[(1, ((x[0] + k) % n,), float((x[0] + k) % m == 0))] for k in steps], 200
    )


def aside(rng):
    """Two machines that the same actions drive; the second earns nothing."""
    n, m = int(rng.integers(4, 8)), int(rng.integers(3, 7))
    there, beside = rng.integers(n, size=(n, 3)), rng.integers(m, size=(m, 3))
    pay, slip = rng.choice([0.0, 0.0, 1.0], size=(n, 3)), float(rng.choice([0, 0.2]))

    def rows(x):
        return [
            [
                (p * q, (int(i), int(j)), float(pay[x[0], a]))
                for i, p in ((there[x[0], a], 1 - slip), (x[0], slip))
                if p
                for j, q in ((beside[x[1], a], 0.7), ((x[1] + 1) % m, 0.3))
            ]
            for a in range(3)
        ]

    return World([(0, 0)], rows)


def rooms(rng):
    """Two levels: rooms in a circle with cells in a row; a key from one room opens the last."""
    n, cells = int(rng.integers(3, 5)), int(rng.integers(2, 5))

    def rows(x):
        room, cell, key = x
        on = (room, cell + 1, key) if cell + 1 < cells else ((room + 1) % n, 0, key)
        back = (room, max(0, cell - 1), key)
        use = [(1, (room, cell, 1), 0.0)] if room == 1 and cell == 0 else [(1, x, -0.1)]
        if key and room == n - 1 and cell == cells - 1:
            use = [(1, "out", 5.0)]
        return [[(0.9, on, 0.0), (0.1, x, 0.0)], [(1, back, 0.0)], use]

    return World([(0, 0, 0)], rows, 150)


def nim(rng):
    """Two heaps against somebody who plays at random; heaps may be exchanged."""
    high = int(rng.integers(3, 5))
    moves = [(h, k) for h in (0, 1) for k in (1, 2)]

    def after(x, move):
        h, k = move
        return None if x[h] < k else tuple(x[i] - k * (i == h) for i in (0, 1))

    def rows(x):
        found = []
        for move in moves:
            mine = after(x, move)
            if mine is None:
                found.append([(1, x, -0.5)])
            elif not any(mine):
                found.append([(1, "won", 1.0)])
            else:
                replies = [y for y in (after(mine, reply) for reply in moves) if y is not None]
                found.append(
                    [
                        (1 / len(replies), y if any(y) else "lost", 0.0 if any(y) else -1.0)
                        for y in replies
                    ]
                )
        return found

    return World([x for x in itertools.product(range(high + 1), repeat=2) if any(x)], rows)


def branch(rng):
    """A corridor; one step in a hundred leads into its double, which pays at another place."""
    n, rare = int(rng.integers(4, 9)), float(rng.choice([0.01, 0.03]))
    reward = float(rng.choice([0.0, 2.0]))

    def rows(x):
        side, i = x
        if i == n - 1:
            return [[(1, (0, 0), reward if side else 1.0)], [(1, (0, 0), 0.0)]]
        step = (
            [(1 - rare, (0, i + 1), 0.0), (rare, (1, i + 1), 0.0)]
            if side == 0
            else [(1, (1, i + 1), 0.0)]
        )
        return [step, [(1, (side, max(0, i - 1)), 0.0)]]

    return World([(0, 0)], rows, 100)


def traps(rng):
    """A walk among traps that are never left, one of which pays."""
    n = int(rng.integers(5, 10))
    kind = rng.choice([0, 0, 0, 1, 2], size=n)
    kind[0], after = 0, rng.integers(n, size=(n, 3))

    def rows(x):
        i = x[0]
        if kind[i]:
            return [[(1, x, float(kind[i] == 2))]] * 3
        return [
            [
                (0.8, (int(after[i, a]),), 0.1 * (a == i % 3)),
                (0.2, ((i + 1) % n,), 0.1 * (a == i % 3)),
            ]
            for a in range(3)
        ]

    return World([(0,)], rows, int(rng.choice([10, 30])))


def ladder(rng):
    """Nothing is paid but at the top; another action at every rung leads up, the others back or
    down."""
    n, up = int(rng.integers(6, 13)), rng.integers(3, size=20)
    down = bool(rng.integers(2))

    def rows(x):
        i = x[0]
        return [
            [
                (
                    1,
                    ((i + 1,) if i + 1 < n else "top")
                    if a == up[i]
                    else (i - 1 if down and i else i,),
                    float(a == up[i] and i + 1 == n),
                )
            ]
            for a in range(3)
        ]

    return World([(i,) for i in range(n)] if rng.integers(2) else [(0,)], rows, 80)


def causes(rng):
    """Many ways to end, which pay on arrival, in amounts that lie close together."""
    n, apart = int(rng.integers(4, 8)), float(rng.choice([0.1, 0.001]))
    pay = 1 + apart * rng.integers(0, 4, size=n)

    def rows(x):
        i, fuel = x
        if fuel == 0:
            return [[(1, "empty", -1.0)]] * 3
        return [
            [(1, (max(0, i - 1), fuel - 1), 0.0)],
            [(1, (min(n - 1, i + 1), fuel - 1), 0.0)],
            [(0.5, f"home {i % 3}", float(pay[i])), (0.5, (i, fuel - 1), 0.0)],
        ]

    return World([(i, 4) for i in range(n)], rows)


def idle(rng):
    """Of six actions some are doubles of others, and some do nothing here or there."""
    n, after = int(rng.integers(5, 9)), rng.integers(9, size=(9, 6))
    does = [0, 0, 1, 2, 2, 2]
    dead = rng.random((9, 6)) < 0.3

    def rows(x):
        i = x[0]
        return [
            [
                (
                    1,
                    x if dead[i, a] else (int(after[i, does[a]]) % n,),
                    float(i == 0 and does[a] == 1),
                )
            ]
            for a in range(6)
        ]

    return World([(i,) for i in range(n)], rows)


def sums(rng):
    """Dimes are collected in any order, and their sum is paid as computers add it up."""
    n = int(rng.integers(4, 8))

    def rows(x):
        count, order = x
        total = sum([0.1] * count) if order else 0.1 * count
        return [
            [(0.5, (min(n, count + 1), 0), 0.0), (0.5, (min(n, count + 1), 1), 0.0)],
            [(1, (0, 0), total)],
        ]

    return World([(0, 0)], rows, 100)


def values(rng):
    """Rewards that differ by a thousandth, or by a tenth, beside others that are much larger."""
    n, apart = int(rng.integers(5, 10)), float(rng.choice([0.1, 0.001]))
    after, pay = (
        rng.integers(n, size=(n, 2, 2)),
        rng.choice([0.0, 1.0, 1 + apart, 1 + 2 * apart, 50.0], size=(n, 2)),
    )
    return World(
        [(0,)],
        lambda x: [
            [
                (0.7, (int(after[x[0], a, 0]),), pay[x[0], a]),
                (0.3, (int(after[x[0], a, 1]),), pay[x[0], a]),
            ]
            for a in (0, 1)
        ],
    )


def lumps(rng, odd=0.0):
    """Few states in several copies; which copy is next depends on the copy, the state does not."""
    k, copies, n_actions = int(rng.integers(3, 7)), int(rng.integers(2, 5)), 2
    move = rng.dirichlet(np.full(k, 0.4), size=(k, n_actions))
    pay = rng.choice([0.0, 0.0, 1.0, -1.0], size=(k, n_actions))
    share = rng.dirichlet(np.full(copies, 0.7), size=(k, copies, n_actions, k))
    move[move < 0.03] = 0
    move /= move.sum(-1, keepdims=True)
    law = np.repeat(move[:, None], copies, 1)
    for a in range(n_actions if odd else 0):  # one copy of the first state differs
        low, high = np.argsort(law[0, 0, a])[[0, -1]]
        moved = min(odd, law[0, 0, a, high])
        law[0, 0, a, high] -= moved
        law[0, 0, a, low] += moved

    def rows(x):
        s, c = x
        return [
            [
                (law[s, c, a, t] * share[s, c, a, t, d], (t, d), pay[s, a])
                for t in range(k)
                for d in range(copies)
                if law[s, c, a, t] * share[s, c, a, t, d] > 0
            ]
            for a in range(n_actions)
        ]

    return World([(0, c) for c in range(copies)], rows)


def odd_lump(rng):
    """The same, and one copy is another state: it leads elsewhere five to thirty times in a
    hundred."""
    return lumps(rng, float(rng.choice([0.05, 0.15, 0.3])))


def torus(rng):
    """A floor without borders that repeats itself: paid is on every m-th diagonal."""
    m = int(rng.integers(2, 5))
    side, slip = m * 2, float(rng.choice([0, 0.1]))

    def rows(x):
        found = []
        for dx, dy in ((1, 0), (0, 1), (side - 1, 0)):
            y = ((x[0] + dx) % side, (x[1] + dy) % side)
            found.append(
                [(p, z, float((z[0] - z[1]) % m == 0)) for p, z in ((1 - slip, y), (slip, x)) if p]
            )
        return found

    return World([(0, 0)], rows, 100)


def keys(rng):
    """Any two of three keys open the door; which ones they are does not matter."""
    n = int(rng.integers(3, 5))

    def rows(x):
        at, held = x[0], x[1:]
        take = tuple(1 if i == at - 1 else held[i] for i in range(3)) if 1 <= at <= 3 else held
        door = [(1, "out", 1.0)] if at == 0 and sum(held) >= 2 else [(1, (at, *take), 0.0)]
        return [
            [(1, ((at + 1) % (n + 1), *held), -0.01)],
            [(1, ((at - 1) % (n + 1), *held), -0.01)],
            door,
        ]

    return World([(0, 0, 0, 0)], rows, 120)


def phases(rng):
    """Work goes through phases that are left at one rate, however they are called; then it pays."""
    jobs, k = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    rate, into = rng.choice([0.2, 0.4, 0.6], size=jobs), rng.dirichlet(np.ones(k), size=(jobs, k))

    def rows(x):
        job, phase = x
        stay = [((1 - rate[job]) * p, (job, j), 0.0) for j, p in enumerate(into[job, phase])]
        done = [(rate[job] / k, ((job + 1) % jobs, j), float(job == 0)) for j in range(k)]
        quit_ = [(1 / k, (0, j), -0.5) for j in range(k)]
        return [stay + done, quit_]

    return World([(0, 0)], rows, 100)


def duel(rng):
    """Rock, paper, scissors against one whose mood can be seen, and changes with who wins."""
    like = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [1 / 3] * 3])

    def rows(x):
        mood, _colour = x
        found = []
        for a in range(3):
            row = []
            for b in range(3):
                win = (a - b) % 3
                then = {0: mood, 1: (mood + 1) % 4, 2: 3}[win]
                row += [(like[mood, b] / 2, (then, c), (0.0, 1.0, -1.0)[win]) for c in (0, 1)]
            found.append(row)
        return found

    return World([(3, 0)], rows, 100)


def births(rng):
    """A population that grows and shrinks, and may be fished; it dies out for good."""
    n, more = int(rng.integers(6, 12)), float(rng.uniform(0.3, 0.5))

    def rows(x):
        i = x[0]
        up, down = (min(n, i + 1),), (i - 1,) if i > 1 else "gone"
        fish = (i - 2,) if i > 2 else "gone"
        return [
            [(more, up, 0.0), (0.25, down, 0.0), (0.75 - more, x, 0.0)],
            [(0.8, fish, float(min(i, 2))), (0.2, x, 0.0)],
        ]

    return World([(n // 2,), (n,)], rows)


def lights(rng):
    """Lamps in a circle; a press turns two of them, and all dark pays; one more flickers, and means
    nothing."""
    n = int(rng.integers(3, 5))

    def rows(x):
        found = []
        for a in range(n):
            y = tuple(x[i] ^ ((i - a) % n in (0, 1)) for i in range(n))
            found.append([(0.5, (*y, lamp), float(not any(y))) for lamp in (0, 1)])
        return found

    return World([(1,) * n + (0,)], rows, 60)


def risk(rng):
    """Doors that look different: behind half of them one in twenty is a fall, behind the others
    none."""
    n = int(rng.integers(4, 9))

    def rows(x):
        i, p = x[0], 0.05 * (x[0] % 2)
        on = [(1 / n, (j,), 0.0) for j in range(n)]
        return [
            [((1 - p) * q, y, r) for q, y, r in on] + [(p, "fallen", -1.0)] * (p > 0),
            [(1, (i,), -0.01)],
            [(1, ((i + 2) % n,), 0.0)],
        ]

    return World([(i,) for i in range(n)], rows, 50)


# Something is hidden


def ledger(rng):
    """All that was earned is paid at the end; how much it is cannot be seen."""
    n = int(rng.integers(3, 6))
    after = rng.integers(n, size=(n, 2))

    def rows(x):
        i, owed = x
        row = []
        for a in range(2):
            more = min(owed + (a == 1 and i == 0), 6)
            row.append([(0.9, (int(after[i, a]), more), 0.0), (0.1, "paid", float(more))])
        return row

    return World([(i, 0) for i in range(n)], rows, 100, lambda x: x[:1], True)


def curfew(rng):
    """Time is over after some steps, which is given as an end of the task; no clock is shown."""
    n, over = int(rng.integers(3, 6)), int(rng.integers(5, 15))
    after = rng.integers(n, size=(n, 2))

    def rows(x):
        i, t = x
        return [
            [
                (
                    1,
                    (int(after[i, a]), t + 1) if t + 1 < over else f"over {after[i, a]}",
                    float(i == 0 and a == 0),
                )
            ]
            for a in range(2)
        ]

    return World([(i, 0) for i in range(n)], rows, 100, lambda x: x[:1], True)


def speed(rng):
    """Where something is can be seen, where it is going cannot."""
    n = int(rng.integers(5, 9))

    def rows(x):
        return [[(1, ((x[0] + v) % n, v), float((x[0] + v) % n == 0))] for v in (x[1], -x[1])]

    return World([(0, 1), (0, -1)], rows, 100, lambda x: x[:1], True)


def cooldown(rng):
    """A shot counts only if there was none in the last two steps."""
    n = int(rng.integers(3, 6))

    def rows(x):
        i, wait = x
        shot = [(1, ((i + 1) % n, 2), float(i == 0 and wait == 0))]
        return [
            [(1, ((i + 1) % n, max(0, wait - 1)), 0.0)],
            [(1, (i, max(0, wait - 1)), 0.0)],
            shot,
        ]

    return World([(0, 0)], rows, 100, lambda x: x[:1], True)


TASKS = {
    one.__name__: one
    for one in (
        star,
        modulo,
        aside,
        rooms,
        nim,
        branch,
        traps,
        ladder,
        causes,
        idle,
        sums,
        values,
        lumps,
        odd_lump,
        torus,
        keys,
        phases,
        duel,
        births,
        lights,
        risk,
        ledger,
        curfew,
        speed,
        cooldown,
    )
}


# Many looks, of which a few do something rare


def anywhere(n, p=1.0):
    return [(p / n, (i,), 0.0) for i in range(n)]


def falls(rng):
    """Doors: every second one has a fall behind it, one time in twenty."""
    n = int(rng.choice([4, 8, 16]))
    return World(
        [(i,) for i in range(n)],
        lambda x: [
            anywhere(n, 1 - 0.05 * (x[0] % 2)) + [(0.05, "fallen", -1.0)] * (x[0] % 2),
            [(1, x, -0.01)],
        ],
    )


def bonus(rng):
    """Every second door pays one time in twenty."""
    n = int(rng.choice([4, 8, 16, 30]))

    def rows(x):
        on = anywhere(n, 1 - 0.05 * (x[0] % 2))
        return [on + [(p / 19, y, 1.0) for p, y, _ in on] * (x[0] % 2), [(1, x, -0.01)]]

    return World([(i,) for i in range(n)], rows)


def coins(rng):
    """Every second door pays with odds of 0.65, the others with 0.5."""
    n = int(rng.choice([4, 8, 16]))

    def rows(x):
        p = 0.5 + 0.15 * (x[0] % 2)
        return [
            [(q * share, y, r) for share, r in ((p, 1.0), (1 - p, 0.0)) for q, y, _ in anywhere(n)],
            [(1, x, -0.01)],
        ]

    return World([(i,) for i in range(n)], rows)


def slip(rng):
    """Rooms in a circle; the first has several looks, and in one of them a step leads too far one
    time in ten."""
    n, looks = int(rng.integers(5, 9)), int(rng.integers(2, 5))

    def room(i):
        return [(1.0, (i, 0))] if i else [(1 / looks, (0, k)) for k in range(looks)]

    def rows(x):
        on, back = room((x[0] + 1) % n), room(x[0] - 1) if x[0] else [(1.0, (1, 0))]
        if x == (0, 0):
            back = [(0.9, (1, 0)), (0.1, (2, 0))]
        return [[(p, y, float(x[0] == n // 2)) for p, y in on], [(p, y, 0.0) for p, y in back]]

    return World([(1, 0)], rows)


def home(rng):
    """A coin decides whether one comes home; how much is paid then tells rooms apart, to the last
    digit."""
    n, apart = int(rng.integers(3, 7)), float(rng.choice([0.1, 0.001]))
    return World(
        [(i,) for i in range(n)],
        lambda x: [
            [(1, ((x[0] + 1) % n,), 0.0)],
            [(0.5, "home", 1 + apart * (x[0] % 2)), (0.5, x, 0.0)],
        ],
    )


DOORS = {one.__name__: one for one in (falls, bonus, coins, slip, home)}
