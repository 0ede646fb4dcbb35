"""Small tasks with a model: what people put into data sets. Each function draws one.

A state is a tuple of whole numbers, which is what there is to see of it; outcomes(state) has, for
every action, a list of (probability, next state or End(what is seen there), reward).
"""

from itertools import product
from typing import NamedTuple

import numpy as np

MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]


class End(tuple):
    """The end of an episode, and what is seen there."""


class Task(NamedTuple):
    starts: list
    actions: int
    outcomes: object


def task(function):
    function.is_task = True
    return function


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


@task
def lake(rng):
    n, slip = int(rng.integers(3, 8)), float(rng.choice([0, 0.2, 2 / 3]))
    cells = cells_of(n, n)
    holes = some_walls(rng, cells[1:-1], 0.2)
    goal, reward = (n - 1, n - 1), prize(rng)

    def after(cell):
        return End(cell) if cell in holes or cell == goal else cell

    def outcomes(s):
        rows = []
        for a in range(4):
            to = [(p, moved(s, m, n, n)) for p, m in slid(slip, MOVES, a)]
            rows.append([(p, after(c), reward if c == goal else 0.0) for p, c in to])
        return rows

    free = [c for c in cells if c not in holes and c != goal]
    return Task([(0, 0)] if rng.random() < 0.5 else some(rng, free), 4, outcomes)


@task
def cliff(rng):
    h, w = int(rng.integers(3, 5)), int(rng.integers(5, 11))
    fall = float(rng.choice([-100, -10]))

    def outcomes(s):
        rows = []
        for m in MOVES:
            c = moved(s, m, h, w)
            if c == (h - 1, w - 1):
                rows.append([(1.0, End(c), -1.0)])
            elif c[0] == h - 1 and c[1] > 0:
                rows.append([(1.0, (h - 1, 0), fall)])
            else:
                rows.append([(1.0, c, -1.0)])
        return rows

    return Task([(h - 1, 0)], 4, outcomes)


@task
def cab(rng):
    n = int(rng.integers(2, 5))
    cells = cells_of(n, n)
    stops = [cells[i] for i in rng.permutation(len(cells))[: int(rng.integers(2, 4))]]
    k = len(stops)

    def outcomes(s):
        r, c, p, d = s
        rows = [[(1.0, (*moved((r, c), m, n, n), p, d), -1.0)] for m in MOVES]
        rows.append(
            [(1.0, (r, c, k, d), -1.0) if p < k and stops[p] == (r, c) else (1.0, s, -10.0)]
        )
        if p == k and stops[d] == (r, c):
            rows.append([(1.0, End((r, c, d, d)), 20.0)])
        elif p == k and (r, c) in stops:
            rows.append([(1.0, (r, c, stops.index((r, c)), d), -1.0)])
        else:
            rows.append([(1.0, s, -10.0)])
        return rows

    return Task(
        [(*c, p, d) for c in cells for p in range(k) for d in range(k) if p != d], 6, outcomes
    )


@task
def key_and_door(rng):
    h, w = int(rng.integers(2, 5)), int(rng.integers(4, 7))
    wall, gap = int(rng.integers(1, w - 1)), int(rng.integers(h))
    key = (int(rng.integers(h)), int(rng.integers(wall)))
    reward, step = prize(rng), cost(rng)

    def outcomes(s):
        r, c, has, opened = s
        closed = {(i, wall) for i in range(h) if i != gap or not opened}
        rows = []
        for m in MOVES:
            to = moved((r, c), m, h, w, closed)
            rows.append(
                [
                    (1.0, End((*to, has, opened)), reward)
                    if to == (h - 1, w - 1)
                    else (1.0, (*to, has, opened), step)
                ]
            )
        rows.append([(1.0, (r, c, 1, opened) if (r, c) == key else s, step)])
        rows.append([(1.0, (r, c, has, 1) if has and (r, c) == (gap, wall - 1) else s, step)])
        return rows

    return Task([(i, 0, 0, 0) for i in range(h)], 6, outcomes)


@task
def rooms(rng):
    n = int(rng.choice([5, 7, 9]))
    mid, slip = n // 2, float(rng.choice([0, 0.1, 1 / 3]))
    doors = {(mid, int(rng.integers(mid))), (mid, int(rng.integers(mid + 1, n)))}
    doors |= {(int(rng.integers(mid)), mid), (int(rng.integers(mid + 1, n)), mid)}
    walls = {c for c in cells_of(n, n) if mid in c and c not in doors}
    free = [c for c in cells_of(n, n) if c not in walls]
    goal, reward, ends = free[int(rng.integers(len(free)))], prize(rng), rng.random() < 0.6

    def outcomes(s):
        rows = []
        for a in range(4):
            row = []
            for p, m in slid(slip, MOVES, a):
                c = moved(s, m, n, n, walls)
                row.append((p, End(c) if ends and c == goal else c, reward if c == goal else 0.0))
            rows.append(row)
        return rows

    return Task(some(rng, [c for c in free if c != goal]), 4, outcomes)


@task
def teleports(rng):
    h, w = int(rng.integers(3, 7)), int(rng.integers(3, 7))
    cells = cells_of(h, w)
    order = [cells[i] for i in rng.permutation(len(cells))]
    pads = dict(zip(order[1:5:2], order[2:5:2], strict=True))
    reward = prize(rng)

    def outcomes(s):
        rows = []
        for m in MOVES:
            c = moved(s, m, h, w)
            c = pads.get(c, c)
            rows.append([(1.0, End(c), reward) if c == order[0] else (1.0, c, 0.0)])
        return rows

    return Task(some(rng, order[1:]), 4, outcomes)


@task
def wind(rng):
    h, w = int(rng.integers(4, 7)), int(rng.integers(5, 9))
    blow = rng.integers(0, 3, w)
    gust = float(rng.choice([0, 0.3]))
    goal = (h // 2, w - 2)

    def outcomes(s):
        rows = []
        for m in MOVES:
            row = []
            for p, more in [(1 - gust, 0), (gust / 2, 1), (gust / 2, -1)]:
                r, c = moved(s, m, h, w)
                r = min(h - 1, max(0, r - int(blow[s[1]]) - (more if blow[s[1]] else 0)))
                row.append((p, End((r, c)) if (r, c) == goal else (r, c), -1.0))
            rows.append(row)
        return rows

    return Task([(h // 2, 0)], 4, outcomes)


@task
def columns(rng):
    h, w = int(rng.integers(2, 8)), int(rng.integers(2, 7))
    drift, reward, slip = rng.dirichlet(np.ones(h), h), prize(rng), float(rng.choice([0, 0, 0.25]))

    def outcomes(s):
        r, c = s
        row = [[], [], []]
        for i in range(h):
            p = float(drift[r][i])
            right = End((i, c)) if c == w - 1 else (i, c + 1)
            row[0] += [
                (p * (1 - slip), right, reward if c == w - 1 else 0.0),
                (p * slip, (i, c), 0.0),
            ]
            row[1].append((p, (i, max(0, c - 1)), 0.0))
            row[2].append((p, (i, c), 0.0))
        return row

    return Task(some(rng, cells_of(h, w)), 3, outcomes)


@task
def river(rng):
    n, up = int(rng.integers(4, 10)), float(rng.choice([0.3, 0.4, 0.6]))

    def outcomes(s):
        i = s[0]
        right = [
            (up, (min(n - 1, i + 1),), 1.0 if i == n - 1 else 0.0),
            (0.9 - up, (i,), 0.0),
            (0.1, (max(0, i - 1),), 0.0),
        ]
        return [[(1.0, (max(0, i - 1),), 0.005 if i == 0 else 0.0)], right]

    return Task([(0,), (1,)], 2, outcomes)


@task
def ring(rng):
    n, period = int(rng.choice([6, 12, 24, 60])), int(rng.choice([2, 3, 6]))
    slip, reward = float(rng.choice([0, 0.1])), prize(rng)

    def outcomes(s):
        i = s[0]
        pay = reward if i % period == 0 else 0.0
        steps = [[(1 - slip, 1), (slip, 0)], [(1 - slip, -1), (slip, 0)], [(1.0, 0)]]
        return [[(p, ((i + d) % n,), pay) for p, d in row] for row in steps]

    return Task([(i,) for i in range(n)], 3, outcomes)


@task
def tree(rng):
    depth, kinds = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    leaves = rng.integers(kinds, size=2**depth)
    values = [float(v) for v in rng.choice([0, 1, 2, 5, -1], kinds, replace=False)]

    def outcomes(s):
        level, at = s
        rows = []
        for a in range(2):
            to = (level + 1, 2 * at + a)
            rows.append(
                [(1.0, End(to), values[leaves[to[1]]]) if level + 1 == depth else (1.0, to, 0.0)]
            )
        return rows

    return Task([(0, 0)], 2, outcomes)


@task
def counter(rng):
    n, every = int(rng.integers(6, 31)), int(rng.choice([2, 3, 5]))
    n -= n % every
    reward = prize(rng)

    def outcomes(s):
        i = s[0]
        return [
            [(1.0, ((i + 1) % n,), reward if (i + 1) % every == 0 else 0.0)],
            [(1.0, ((i + every) % n,), 0.0)],
            [(0.5, (i,), 0.0), (0.5, ((i + 1) % n,), 0.0)],
        ]

    return Task([(0,)], 3, outcomes)


@task
def elevator(rng):
    floors = int(rng.integers(3, 7))
    calls = rng.dirichlet(np.ones(floors))

    def outcomes(s):
        at, call, target = (
            s  # call: floor + 1, 0: nobody waits; target: floor + 1, 0: nobody inside
        )
        rows = []
        for move in (-1, 1):
            rows.append(
                [
                    (
                        1.0,
                        (min(floors - 1, max(0, at + move)), call, target),
                        -0.1 if call or target else 0.0,
                    )
                ]
            )
        if target == at + 1:
            here = (at, call, 0, 5.0)
        elif call == at + 1 and not target:
            here = (at, 0, floors - at if floors - at != at + 1 else 1 + at % 2 * (at > 0), 0.0)
            if here[2] == at + 1 or here[2] == 0:
                here = (at, 0, 1 if at else floors, 0.0)
        else:
            here = (at, call, target, -1.0)
        at2, call2, target2, r = here
        if call2 or target2:
            rows.append([(1.0, (at2, call2, target2), r)])
        else:
            rows.append(
                [(0.5, (at2, 0, 0), r)]
                + [(0.5 * float(calls[f]), (at2, f + 1, 0), r) for f in range(floors)]
            )
        return rows

    return Task([(0, 0, 0)], 3, outcomes)


@task
def queue(rng):
    n, arrive, serve = int(rng.integers(4, 12)), rng.uniform(0.2, 0.6), rng.uniform(0.3, 0.8)
    price = float(rng.choice([2, 5]))

    def outcomes(s):
        length, waiting = s
        rows = []
        for admit in (0, 1):
            paid, then = 0.0, length
            if waiting and admit and length < n:
                then, paid = length + 1, price
            row = []
            for served, p in ((1, serve if then else 0.0), (0, 1 - (serve if then else 0.0))):
                for more, q in ((1, arrive), (0, 1 - arrive)):
                    row.append((p * q, (then - served, more), paid - 0.1 * then))
            rows.append(row)
        return rows

    return Task([(0, 0)], 2, outcomes)


@task
def inventory(rng):
    n, orders = int(rng.integers(4, 9)), int(rng.integers(3, 6))
    demand = rng.dirichlet(np.ones(int(rng.integers(2, 4))))

    def outcomes(s):
        rows = []
        for order in range(orders):
            stock = min(n, s[0] + order)
            row = []
            for d, p in enumerate(demand):
                sold = min(stock, d)
                row.append((float(p), (stock - sold,), 2.0 * sold - 0.5 * order - 0.1 * stock))
            rows.append(row)
        return rows

    return Task([(0,)], orders, outcomes)


@task
def machine(rng):
    n, wear = int(rng.integers(3, 9)), rng.uniform(0.2, 0.7)
    crash = -float(rng.choice([5, 50]))
    plateau = int(rng.choice([1, 2, 3]))

    def outcomes(s):
        i = s[0]
        work = 1.0 - 0.2 * (i // plateau)
        on = [
            (wear, (i + 1,) if i + 1 < n else End((n,)), work if i + 1 < n else crash),
            (1 - wear, (i,), work),
        ]
        return [on, [(1.0, (0,), -2.0)]]

    return Task([(0,)], 2, outcomes)


@task
def nim(rng):
    heaps = tuple(int(x) for x in rng.integers(1, 5, size=int(rng.integers(2, 4))))
    options = [(i, k) for i in range(len(heaps)) for k in range(1, 4)]

    def taken(s, i, k):
        return (*s[:i], s[i] - k, *s[i + 1 :])

    def outcomes(s):
        rows = []
        for i, k in options:
            if s[i] < k:
                rows.append([(1.0, End(s), -2.0)])
                continue
            mine = taken(s, i, k)
            if not any(mine):
                rows.append([(1.0, End(mine), 1.0)])
                continue
            answers = [taken(mine, j, m) for j, m in options if mine[j] >= m]
            rows.append(
                [
                    (1 / len(answers), x if any(x) else End(x), 0.0 if any(x) else -1.0)
                    for x in answers
                ]
            )
        return rows

    return Task([heaps], len(options), outcomes)


@task
def higher_lower(rng):
    n, rounds = int(rng.integers(3, 9)), int(rng.integers(1, 6))

    def outcomes(s):
        card, left = s
        rows = []
        for guess in (1, -1):
            row = []
            for c in range(n):
                win = (c - card) * guess
                r = 1.0 if win > 0 else 0.0 if win == 0 else -1.0
                row.append((1 / n, (c, left - 1) if left > 1 else End((c, 0)), r))
            rows.append(row)
        return rows

    return Task([(c, rounds) for c in range(n)], 2, outcomes)


@task
def twenty_one(rng):
    target, ranks = int(rng.integers(6, 13)), int(rng.integers(3, 6))

    def outcomes(s):
        total, dealer = s
        hit = []
        for c in range(1, ranks + 1):
            t = total + c
            hit.append(
                (
                    1 / ranks,
                    End((t, dealer)) if t > target else (t, dealer),
                    -1.0 if t > target else 0.0,
                )
            )
        stand = []
        for c in range(1, ranks + 1):
            d = dealer + c + ranks // 2
            r = 1.0 if d > target or d < total else 0.0 if d == total else -1.0
            stand.append((1 / ranks, End((total, min(d, target + 1))), r))
        return [hit, stand]

    return Task([(t, d) for t in range(1, ranks + 1) for d in range(1, ranks + 1)], 2, outcomes)


@task
def errands(rng):
    """A reward machine: coffee, then mail, then the office, in a grid, with a plant that breaks."""
    h, w = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    cells = cells_of(h, w)
    order = [cells[i] for i in rng.permutation(len(cells))]
    stages = int(rng.integers(1, 4))
    stages = min(stages, len(order) - 2)
    reward = prize(rng)
    plant = order[-1] if rng.random() < 0.4 and len(order) > stages + 2 else None

    def outcomes(s):
        r, c, u = s
        rows = []
        for m in MOVES:
            to = moved((r, c), m, h, w)
            if to == plant:
                rows.append([(1.0, End((*to, u)), -1.0 * abs(reward))])
            elif to == order[u]:
                rows.append(
                    [(1.0, End((*to, u)), reward) if u == stages else (1.0, (*to, u + 1), 0.0)]
                )
            else:
                rows.append([(1.0, (*to, u), 0.0)])
        return rows

    return Task([(*c, 0) for c in some(rng, [c for c in order if c != plant])], 4, outcomes)


@task
def lock(rng):
    dials, digits = int(rng.integers(2, 4)), int(rng.integers(3, 6))
    right = tuple(int(x) for x in rng.integers(digits, size=dials))
    broken, reward = rng.random() < 0.4, prize(rng)

    def outcomes(s):
        rows = []
        for d in range(dials):
            if broken and d == dials - 1:
                rows.append([(1 / digits, (*s[:d], x), 0.0) for x in range(digits)])
                continue
            to = (*s[:d], (s[d] + 1) % digits, *s[d + 1 :])
            goal = to[: dials - broken] == right[: dials - broken]
            rows.append([(1.0, End(to), reward) if goal else (1.0, to, 0.0)])
        return rows

    return Task(
        some(
            rng,
            [
                s
                for s in product(range(digits), repeat=dials)
                if s[: dials - broken] != right[: dials - broken]
            ],
        ),
        dials,
        outcomes,
    )


@task
def parity(rng):
    n = int(rng.integers(2, 8))
    secret = rng.integers(0, 2, n)
    secret[0] = 1

    def outcomes(s):
        rows = []
        for a in range(n):
            to = (*s[:a], 1 - s[a], *s[a + 1 :])
            rows.append([(1.0, to, float(np.dot(to, secret) % 2))])
        return rows

    return Task([(0,) * n], n, outcomes)


@task
def anything(rng):
    n, actions, k = int(rng.integers(3, 25)), int(rng.integers(2, 6)), int(rng.integers(1, 4))
    to = rng.integers(n, size=(n, actions, k))
    p = rng.dirichlet(np.ones(k), (n, actions))
    r = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0], size=(n, actions))
    end = set(rng.permutation(n)[: int(rng.integers(0, 3))].tolist())

    def outcomes(s):
        i = s[0]
        return [
            [
                (float(p[i, a, j]), End((int(t),)) if int(t) in end else (int(t),), float(r[i, a]))
                for j, t in enumerate(to[i, a])
            ]
            for a in range(actions)
        ]

    return Task([(i,) for i in range(n) if i not in end], actions, outcomes)


def lifted(rng, deterministic):
    n, actions, copies = int(rng.integers(2, 9)), int(rng.integers(2, 5)), int(rng.integers(2, 6))
    k = 1 if deterministic else 2
    to = rng.integers(n, size=(n, actions, k))
    p = rng.dirichlet(np.full(k, 2.0), (n, actions))
    r = rng.choice([0.0, 0.0, 0.0, 1.0, -1.0], size=(n, actions))
    which = (
        rng.dirichlet(np.full(copies, 0.3), (n, copies, actions, k)) if not deterministic else None
    )
    jump = rng.integers(copies, size=(n, copies, actions))
    names = rng.permutation(n * copies)

    def name(i, c):
        return (int(names[i * copies + c]),)

    back = {int(v): divmod(j, copies) for j, v in enumerate(names)}

    def outcomes(s):
        i, c = back[s[0]]
        rows = []
        for a in range(actions):
            if deterministic:
                rows.append([(1.0, name(to[i, a, 0], jump[i, c, a]), float(r[i, a]))])
            else:
                rows.append(
                    [
                        (
                            float(p[i, a, j] * which[i, c, a, j, d]),
                            name(to[i, a, j], d),
                            float(r[i, a]),
                        )
                        for j in range(k)
                        for d in range(copies)
                    ]
                )
        return rows

    return Task([(int(x),) for x in names], actions, outcomes)


@task
def lifted_chain(rng):
    return lifted(rng, False)


@task
def lifted_automaton(rng):
    return lifted(rng, True)


@task
def mirror(rng):
    """Two agents of the same kind, or left and right, are the same."""
    n, slip = int(rng.integers(3, 8)), float(rng.choice([0, 0.2]))
    reward = prize(rng)

    def outcomes(s):
        x, y = s
        rows = []
        for dx, dy in ((1, 1), (-1, -1), (0, 0)):
            to = (min(n - 1, max(0, x + dx)), min(n - 1, max(0, y + dy)))
            rows.append(
                [(1 - slip, to, reward if to[0] == to[1] == n - 1 else 0.0), (slip, s, 0.0)]
            )
        rows.append([(1.0, (y, x), 0.0)])
        return rows

    return Task([(x, y) for x in range(n) for y in range(n)], 4, outcomes)


@task
def torus(rng):
    """Only where the goal is relative to the agent matters."""
    n, walk = int(rng.integers(3, 6)), float(rng.choice([0, 0.3]))
    reward = prize(rng)

    def outcomes(s):
        r, c, gr, gc = s
        rows = []
        for dr, dc in MOVES:
            a = ((r + dr) % n, (c + dc) % n)
            row = []
            for p, (mr, mc) in [(1 - walk, (0, 0))] + [(walk / 4, m) for m in MOVES]:
                g = ((gr + mr) % n, (gc + mc) % n)
                row.append((p, End((*a, *g)) if a == g else (*a, *g), reward if a == g else 0.0))
            rows.append(row)
        return rows

    return Task([s for s in product(range(n), repeat=4) if s[:2] != s[2:]], 4, outcomes)


@task
def distance(rng):
    """Dense rewards: minus the distance to the goal, or how much nearer."""
    h, w = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    goal = (int(rng.integers(h)), int(rng.integers(w)))
    kind = int(rng.integers(3))

    def far(c):
        d = np.abs(np.subtract(c, goal))
        return float(d.sum()) if kind == 0 else float(np.hypot(*d))

    def outcomes(s):
        rows = []
        for m in MOVES:
            c = moved(s, m, h, w)
            r = far(s) - far(c) if kind == 2 else -far(c)
            rows.append([(1.0, End(c) if c == goal else c, r)])
        return rows

    return Task(some(rng, [c for c in cells_of(h, w) if c != goal]), 4, outcomes)


@task
def contexts(rng):
    """Bandits with a context: one step."""
    n, actions = int(rng.integers(3, 30)), int(rng.integers(2, 6))
    kinds = int(rng.integers(1, 5))
    p = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], size=(kinds, actions))
    kind = rng.integers(kinds, size=n)

    def outcomes(s):
        return [[(float(q), End((n,)), 1.0), (1 - float(q), End((n,)), 0.0)] for q in p[kind[s[0]]]]

    return Task([(i,) for i in range(n)], actions, outcomes)


@task
def hanoi(rng):
    disks = int(rng.integers(2, 5))
    options = [(a, b) for a in range(3) for b in range(3) if a != b]
    reward, step, ends = prize(rng), cost(rng), rng.random() < 0.7

    def outcomes(s):
        rows = []
        for a, b in options:
            top = [min((d for d in range(disks) if s[d] == peg), default=disks) for peg in (a, b)]
            if top[0] < top[1]:
                to = (*s[: top[0]], b, *s[top[0] + 1 :])
                done = all(x == 2 for x in to)
                rows.append([(1.0, End(to) if done and ends else to, reward if done else step)])
            else:
                rows.append([(1.0, s, step)])
        return rows

    return Task([(0,) * disks], 6, outcomes)


@task
def lights(rng):
    n = int(rng.integers(3, 8))
    circle = rng.random() < 0.5
    reward = prize(rng)

    def outcomes(s):
        rows = []
        for a in range(n):
            to = list(s)
            for i in (a - 1, a, a + 1):
                if circle or 0 <= i < n:
                    to[i % n] ^= 1
            to = tuple(to)
            rows.append([(1.0, End(to), reward) if not any(to) else (1.0, to, -0.1)])
        return rows

    first = (1,) * n
    return Task(
        [first] if rng.random() < 0.5 else [s for s in product((0, 1), repeat=n) if any(s)],
        n,
        outcomes,
    )


@task
def jugs(rng):
    a, b = int(rng.integers(3, 6)), int(rng.integers(4, 8))
    want = int(rng.integers(1, max(a, b)))

    def outcomes(s):
        x, y = s
        m, k = min(x, b - y), min(y, a - x)
        rows = []
        for to in ((a, y), (x, b), (0, y), (x, 0), (x - m, y + m), (x + k, y - k)):
            rows.append([(1.0, End(to), 1.0) if want in to else (1.0, to, 0.0)])
        return rows

    return Task([(0, 0)], 6, outcomes)


@task
def vending(rng):
    price = int(rng.integers(2, 8))

    def outcomes(s):
        coins, stock = s
        pay = lambda c: (1.0, (min(price + 2, coins + c), stock), -float(c))  # noqa: E731
        buy = (
            (1.0, (coins - price, stock - 1 if stock > 1 else 3), 10.0)
            if coins >= price
            else (1.0, s, -0.5)
        )
        return [[pay(1)], [pay(2)], [buy], [(1.0, (0, stock), float(coins))]]

    return Task([(0, 3)], 4, outcomes)


@task
def traffic(rng):
    n, p, q = int(rng.integers(2, 6)), rng.uniform(0.2, 0.6), rng.uniform(0.2, 0.6)

    def outcomes(s):
        a, b, light = s
        rows = []
        for switch in (0, 1):
            now = light ^ switch
            x, y = (max(0, a - 1), b) if now == 0 else (a, max(0, b - 1))
            if switch:
                x, y = a, b
            row = []
            for da, pa in ((1, p), (0, 1 - p)):
                for db, pb in ((1, q), (0, 1 - q)):
                    to = (min(n, x + da), min(n, y + db), now)
                    row.append((pa * pb, to, -float(a + b)))
            rows.append(row)
        return rows

    return Task([(0, 0, 0)], 2, outcomes)


@task
def gambler(rng):
    n, p = int(rng.integers(6, 21)), float(rng.choice([0.4, 0.5]))
    bets = [1, 2, 5]

    def outcomes(s):
        rows = []
        for bet in bets:
            bet = min(bet, s[0], n - s[0])
            row = []
            for q, to in ((p, s[0] + bet), (1 - p, s[0] - bet)):
                row.append((q, End((to,)) if to in (0, n) else (to,), 1.0 if to == n else 0.0))
            rows.append(row)
        return rows

    return Task([(i,) for i in range(1, n)], 3, outcomes)


@task
def pursuit(rng):
    n = int(rng.integers(3, 5))

    def outcomes(s):
        cat, mouse = s[:2], s[2:]
        rows = []
        for m in MOVES:
            c = moved(cat, m, n, n)
            if c == mouse:
                rows.append([(1.0, End((*c, *mouse)), 1.0)])
                continue
            row = []
            for k in MOVES:
                to = moved(mouse, k, n, n)
                row.append(
                    (0.25, End((*c, *to)) if to == c else (*c, *to), 1.0 if to == c else -0.05)
                )
            rows.append(row)
        return rows

    return Task([s for s in product(range(n), repeat=4) if s[:2] != s[2:]], 4, outcomes)


@task
def battery(rng):
    top, alpha, beta = int(rng.integers(2, 9)), rng.uniform(0.5, 0.9), rng.uniform(0.2, 0.6)

    def outcomes(s):
        b = s[0]
        drained = [(alpha, (b,), 2.0), (1 - alpha, (b - 1,), 2.0)] if b else [(1.0, (top,), -3.0)]
        waiting = [(beta, (b,), 1.0), (1 - beta, (max(0, b - 1),), 1.0)]
        return [drained, waiting, [(1.0, (min(top, b + 1),), 0.0)]]

    return Task([(top,)], 3, outcomes)


@task
def epidemic(rng):
    n, infect, heal = int(rng.integers(3, 8)), rng.uniform(0.2, 0.5), rng.uniform(0.2, 0.5)

    def outcomes(s):
        sick, well = s
        rows = []
        for a, f in enumerate((1.0, 0.4)):
            p = min(0.6, f * infect * sick * (n - sick - well > 0) / 2)
            q = heal * (sick > 0) * (1 - p)
            row = [(1 - p - q, s), (p, (sick + 1, well)), (q, (sick - 1, well + 1))]
            rows.append(
                [(x, End(to) if to[0] == 0 else to, -float(sick) - 0.5 * a) for x, to in row]
            )
        return rows

    return Task([(1, 0), (2, 0)], 2, outcomes)


@task
def forest(rng):
    n, fire = int(rng.integers(3, 12)), float(rng.choice([0.05, 0.1, 0.3]))

    def outcomes(s):
        i = s[0]
        wait = 4.0 if i == n - 1 else 0.0
        cut = 2.0 if i == n - 1 else 1.0 if i else 0.0
        return [[(fire, (0,), wait), (1 - fire, (min(n - 1, i + 1),), wait)], [(1.0, (0,), cut)]]

    return Task([(0,)], 2, outcomes)


@task
def many_buttons(rng):
    """Up to fifty actions, most of them alike."""
    actions, n = int(rng.choice([10, 20, 50])), int(rng.integers(3, 8))
    does = rng.integers(0, 3, actions)
    does[:2] = [0, 1]
    reward = prize(rng)

    def outcomes(s):
        i, flag = s
        rows = []
        for d in does:
            if d == 0:
                rows.append(
                    [(1.0, End((n, flag)), reward) if i == n - 1 else (1.0, (i + 1, flag), 0.0)]
                )
            elif d == 1:
                rows.append([(1.0, (max(0, i - 1), 1 - flag), 0.0)])
            else:
                rows.append([(1.0, s, 0.0)])
        return rows

    return Task([(0, 0), (0, 1)], actions, outcomes)


@task
def trigger(rng):
    """Two halves that differ in what one action does in one place."""
    n, seldom = int(rng.integers(3, 8)), float(rng.choice([0.05, 0.2, 1.0]))
    spot, reward = int(rng.integers(n)), prize(rng)

    def outcomes(s):
        i, side = s
        rows = [[(1.0, ((i + 1) % n, side), 0.0)], [(1.0, (max(0, i - 1), side), 0.0)]]
        hit = i == spot and side
        rows.append([(seldom, s, reward), (1 - seldom, s, 0.0)] if hit else [(1.0, s, 0.0)])
        return rows

    return Task([(i, side) for i in range(n) for side in (0, 1)], 3, outcomes)


@task
def catch(rng):
    h, w = int(rng.integers(4, 8)), int(rng.integers(3, 7))

    def outcomes(s):
        y, x, paddle = s
        rows = []
        for d in (-1, 0, 1):
            p = min(w - 1, max(0, paddle + d))
            to = (y + 1, x, p)
            rows.append(
                [(1.0, End(to), 1.0 if x == p else -1.0) if y + 1 == h - 1 else (1.0, to, 0.0)]
            )
        return rows

    return Task([(0, x, w // 2) for x in range(w)], 3, outcomes)


@task
def cue(rng):
    """A T-maze: which end pays was shown at the beginning, and stays visible."""
    n, signs = int(rng.integers(2, 12)), int(rng.integers(2, 7))

    def outcomes(s):
        i, sign = s
        if i == n:
            return [[(1.0, End((n + 1, sign)), 1.0 if sign % 2 == a else -1.0)] for a in (0, 1)] + [
                [(1.0, s, -0.1)]
            ]
        return [[(1.0, s, 0.0)], [(1.0, s, 0.0)], [(1.0, (i + 1, sign), 0.0)]]

    return Task([(0, sign) for sign in range(signs)], 3, outcomes)


@task
def pushing(rng):
    """A box in a lane: push it onto the mark, in a room two or three wide."""
    h, w = int(rng.integers(2, 4)), int(rng.integers(4, 6))
    mark = (int(rng.integers(h)), int(rng.integers(1, w - 1)))

    def outcomes(s):
        me, box = s[:2], s[2:]
        rows = []
        for m in MOVES:
            to = moved(me, m, h, w)
            if to == box and to != me:
                pushed = moved(box, m, h, w)
                if pushed == box:
                    rows.append([(1.0, s, -0.1)])
                else:
                    done = pushed == mark
                    rows.append(
                        [
                            (
                                1.0,
                                End((*to, *pushed)) if done else (*to, *pushed),
                                10.0 if done else -0.1,
                            )
                        ]
                    )
            else:
                rows.append([(1.0, (*to, *box), -0.1)])
        return rows

    starts = [(*a, *b) for a in cells_of(h, w) for b in cells_of(h, w) if a != b and b != mark]
    return Task(starts, 4, outcomes)


@task
def lanes(rng):
    """Three lanes, and a car ahead in one of them."""
    ahead, lanes_ = int(rng.integers(2, 6)), int(rng.integers(2, 4))

    def outcomes(s):
        lane, other, far = s
        rows = []
        for d in (-1, 0, 1):
            mine = min(lanes_ - 1, max(0, lane + d))
            pay = 1.0 - 0.2 * (d != 0)
            if far == 1:
                if mine == other:
                    rows.append([(1.0, End((mine, other, 0)), -10.0)])
                else:
                    rows.append([(1 / lanes_, (mine, o, ahead), pay) for o in range(lanes_)])
            else:
                rows.append([(1.0, (mine, other, far - 1), pay)])
        return rows

    return Task([(0, o, ahead) for o in range(lanes_)], 3, outcomes)


@task
def late(rng):
    """Corridors that are the same but for what is at their ends."""
    n, kinds = int(rng.integers(3, 15)), int(rng.integers(2, 5))
    values = [float(v) for v in rng.choice([0, 1, 2, -1], size=kinds)]
    stay = float(rng.choice([0, 0.2]))

    def outcomes(s):
        i, k = s
        on = (1.0 - stay, End((n, k)), values[k]) if i == n - 1 else (1.0 - stay, (i + 1, k), 0.0)
        return [[on, (stay, s, 0.0)], [(1.0, (max(0, i - 1), k), 0.0)]]

    return Task([(0, k) for k in range(kinds)], 2, outcomes)


@task
def pig(rng):
    goal, faces = int(rng.integers(5, 15)), int(rng.integers(3, 6))

    def outcomes(s):
        banked, turn = s
        roll = [(1 / faces, (banked, 0), 0.0)]
        for f in range(2, faces + 1):
            roll.append((1 / faces, (banked, min(goal, turn + f)), 0.0))
        total = min(goal, banked + turn)
        return [roll, [(1.0, End((total, 0)), 1.0) if total == goal else (1.0, (total, 0), -0.1)]]

    return Task([(0, 0)], 2, outcomes)


@task
def crafting(rng):
    most = int(rng.integers(2, 5))

    def outcomes(s):
        wood, stone, tool = s
        rows = [[(0.7, (min(most, wood + 1), stone, tool), 0.0), (0.3, s, 0.0)]]
        rows.append(
            [
                (0.7 if tool else 0.1, (wood, min(most, stone + 1), tool), 0.0),
                (0.3 if tool else 0.9, s, 0.0),
            ]
        )
        rows.append([(1.0, (wood - 1, stone, 1), 1.0) if wood and not tool else (1.0, s, 0.0)])
        rows.append(
            [
                (1.0, End((wood - 1, stone - 2, tool)), 10.0)
                if wood and stone >= 2
                else (1.0, s, 0.0)
            ]
        )
        return rows

    return Task([(0, 0, 0)], 4, outcomes)


@task
def pendulum(rng):
    n, top = int(rng.choice([8, 12, 16])), int(rng.choice([1, 2]))

    def outcomes(s):
        angle, speed = s
        rows = []
        pull = 1 if 0 < angle < n // 2 else -1 if angle > n // 2 else 0
        for a in (-1, 0, 1):
            v = min(2 * top, max(0, speed + a + pull))
            to = ((angle + v - top) % n, v)
            rows.append([(1.0, to, -(float(min(to[0], n - to[0])) ** 2) - 0.1 * abs(a))])
        return rows

    return Task([(i, top) for i in range(n)], 3, outcomes)


@task
def mountain(rng):
    n, top = int(rng.integers(6, 14)), 2

    def outcomes(s):
        x, v = s
        rows = []
        for a in (-1, 0, 1):
            slope = 1 if x < n // 3 else -1 if x > n // 3 else 0
            u = min(2 * top, max(0, v + a + slope * (x % 2)))
            to = x + u - top
            rows.append(
                [
                    (1.0, End((n, u)), -1.0)
                    if to >= n
                    else (1.0, (max(0, to), u if to > 0 else top), -1.0)
                ]
            )
        return rows

    return Task([(n // 3, top)], 3, outcomes)


@task
def close_odds(rng):
    """States that differ by a few percent."""
    n, delta = int(rng.integers(2, 7)), float(rng.choice([0.03, 0.1, 0.2, 0.4]))
    up = [0.3 + delta * int(rng.integers(2)) for _ in range(n)]

    def outcomes(s):
        i = s[0]
        hit = [(up[i], (int(i + 1) % n,), 1.0), (1 - up[i], (int(i + 1) % n,), 0.0)]
        return [hit, [(1.0, ((i + 2) % n,), 0.0)]]

    return Task([(i,) for i in range(n)], 2, outcomes)


@task
def levels(rng):
    """Copies of a game, one of which pays otherwise in one place."""
    n, copies = int(rng.integers(3, 7)), int(rng.integers(2, 7))
    to = rng.integers(n, size=(n, 3))
    r = rng.choice([0.0, 0.0, 1.0], size=(n, 3))
    odd, where = int(rng.integers(copies)), (int(rng.integers(n)), int(rng.integers(3)))
    same = rng.random() < 0.5

    def outcomes(s):
        i, k = s
        rows = []
        for a in range(3):
            pay = float(r[i, a]) + (0.5 if not same and k == odd and (i, a) == where else 0.0)
            rows.append([(1.0, (int(to[i, a]), k), pay)])
        return rows

    return Task([(i, k) for i in range(n) for k in range(copies)], 3, outcomes)


@task
def day_and_night(rng):
    n, hours = int(rng.integers(2, 6)), int(rng.choice([4, 6, 24]))

    def outcomes(s):
        x, t = s
        day = t < hours // 2
        rows = []
        for d in (-1, 0, 1):
            to = min(n - 1, max(0, x + d))
            rows.append(
                [(1.0, (to, (t + 1) % hours), float(to == n - 1) if day else float(to == 0))]
            )
        return rows

    return Task([(x, 0) for x in range(n)], 3, outcomes)


@task
def absorbing(rng):
    """The goal is no end: nothing happens any more."""
    n = int(rng.integers(3, 8))
    pays = float(rng.choice([0, 0, 1]))

    def outcomes(s):
        x, y = s
        if (x, y) == (n - 1, 0):
            return [[(1.0, s, pays)]] * 3
        rows = []
        for dx, dy in ((1, 0), (-1, 0), (0, 1)):
            to = (min(n - 1, max(0, x + dx)), (y + dy) % 3)
            rows.append([(1.0, to, 1.0 if to == (n - 1, 0) else 0.0)])
        return rows

    return Task([(0, y) for y in range(3)], 3, outcomes)


@task
def scales(rng):
    """Rewards of a thousand, and of a thousandth, both of which count."""
    n = int(rng.integers(4, 12))
    pays = rng.choice([0.0, 0.001, 1.0, 1000.0], size=(n, 2))

    def outcomes(s):
        i = s[0]
        return [
            [(1.0, ((i + 1) % n,), float(pays[i, 0]))],
            [(0.5, (i,), float(pays[i, 1])), (0.5, (0,), float(pays[i, 1]))],
        ]

    return Task([(i,) for i in range(n)], 2, outcomes)


@task
def lotteries(rng):
    """The same to be expected, by different odds."""
    n = int(rng.integers(3, 9))
    kinds = [
        [(1.0, 1.0)],
        [(0.5, 2.0), (0.5, 0.0)],
        [(0.1, 10.0), (0.9, 0.0)],
        [(1.0, 0.0)],
        [(0.5, 1.0), (0.5, -1.0)],
    ]
    kind = rng.integers(len(kinds), size=n)

    def outcomes(s):
        i = s[0]
        return [[(p, ((i + 1) % n,), r) for p, r in kinds[kind[i]]], [(1.0, ((i + 2) % n,), 0.0)]]

    return Task([(i,) for i in range(n)], 2, outcomes)


@task
def jobs(rng):
    """Jobs on two machines: which is started next; the last one to finish ends the shift."""
    work = [int(x) for x in rng.integers(1, 4, size=int(rng.integers(2, 4)))]
    k = len(work)

    def outcomes(s):
        todo, busy = s[:k], s[k:]
        rows = []
        for j in range(k + 1):
            t, b, pay = list(todo), list(busy), -1.0
            if j < k and t[j] and 0 in b:
                b[b.index(0)] = work[j]
                t[j] = 0
            elif j < k:
                pay = -2.0
            b = [max(0, x - 1) for x in b]
            to = (*t, *b)
            rows.append([(1.0, End(to), 5.0) if not any(to) else (1.0, to, pay)])
        return rows

    return Task([(1,) * k + (0, 0)], k + 1, outcomes)


@task
def snakes(rng):
    """A board with snakes and ladders, and two dice to choose from."""
    n = int(rng.integers(10, 40))
    jump = {
        int(a): int(b)
        for a, b in zip(rng.permutation(n - 2)[:4] + 1, rng.permutation(n - 2)[:4] + 1, strict=True)
    }
    dice = [[1, 2, 3, 4], [1, 1, 6, 6]]

    def outcomes(s):
        rows = []
        for die in dice:
            row = []
            for f in die:
                to = s[0] + f
                to = jump.get(to, to)
                row.append(
                    (
                        1 / len(die),
                        End((n - 1,)) if to >= n - 1 else (to,),
                        1.0 if to >= n - 1 else 0.0,
                    )
                )
            rows.append(row)
        return rows

    return Task([(0,)], 2, outcomes)


@task
def irrelevant_factors(rng):
    """A chain that counts, among others that do what they like."""
    n, k = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    flip = rng.uniform(0.05, 0.5, k)
    reward = prize(rng)

    def outcomes(s):
        i, rest = s[0], s[1:]
        rows = []
        for a in range(2):
            to = i + 1 if a else max(0, i - 1)
            row = []
            for bits in product((0, 1), repeat=k):
                p = float(np.prod([f if b else 1 - f for f, b in zip(flip, bits, strict=True)]))
                then = tuple(x ^ b for x, b in zip(rest, bits, strict=True))
                row.append(
                    (p, End((to, *then)) if to == n else (to, *then), reward if to == n else 0.0)
                )
            rows.append(row)
        return rows

    return Task([(0, *x) for x in product((0, 1), repeat=k)], 2, outcomes)
