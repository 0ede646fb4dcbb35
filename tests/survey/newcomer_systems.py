"""Counters, queues, machines, chains and automata; and what a task can hide."""

from itertools import product

import numpy as np
from newcomer_task import End, Task, prize


def ring(rng):
    n, period = int(rng.choice([6, 12, 24, 60])), int(rng.choice([2, 3, 6]))
    slip, reward = float(rng.choice([0, 0.1])), prize(rng)

    def outcomes(s):
        i = s[0]
        pay = reward if i % period == 0 else 0.0
        steps = [[(1 - slip, 1), (slip, 0)], [(1 - slip, -1), (slip, 0)], [(1.0, 0)]]
        return [[(p, ((i + d) % n,), pay) for p, d in row] for row in steps]

    return Task([(i,) for i in range(n)], 3, outcomes)


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


def lifted_chain(rng):
    return lifted(rng, False)


def lifted_automaton(rng):
    return lifted(rng, True)


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


def battery(rng):
    top, alpha, beta = int(rng.integers(2, 9)), rng.uniform(0.5, 0.9), rng.uniform(0.2, 0.6)

    def outcomes(s):
        b = s[0]
        drained = [(alpha, (b,), 2.0), (1 - alpha, (b - 1,), 2.0)] if b else [(1.0, (top,), -3.0)]
        waiting = [(beta, (b,), 1.0), (1 - beta, (max(0, b - 1),), 1.0)]
        return [drained, waiting, [(1.0, (min(top, b + 1),), 0.0)]]

    return Task([(top,)], 3, outcomes)


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


def forest(rng):
    n, fire = int(rng.integers(3, 12)), float(rng.choice([0.05, 0.1, 0.3]))

    def outcomes(s):
        i = s[0]
        wait = 4.0 if i == n - 1 else 0.0
        cut = 2.0 if i == n - 1 else 1.0 if i else 0.0
        return [[(fire, (0,), wait), (1 - fire, (min(n - 1, i + 1),), wait)], [(1.0, (0,), cut)]]

    return Task([(0,)], 2, outcomes)


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


def close_odds(rng):
    """States that differ by a few percent."""
    n, delta = int(rng.integers(2, 7)), float(rng.choice([0.03, 0.1, 0.2, 0.4]))
    up = [0.3 + delta * int(rng.integers(2)) for _ in range(n)]

    def outcomes(s):
        i = s[0]
        hit = [(up[i], (int(i + 1) % n,), 1.0), (1 - up[i], (int(i + 1) % n,), 0.0)]
        return [hit, [(1.0, ((i + 2) % n,), 0.0)]]

    return Task([(i,) for i in range(n)], 2, outcomes)


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
