"""Tasks that tempt a program to be wrong and certain: something is hidden, or is seen and means
nothing. Each family takes a random generator and a number that counts its instances, and returns a
Trap.
"""

import latent
import numpy as np
from families import finish, table
from traps import Trap, paid_with, pick, product, shift, small, some_size

# What is hidden


def aliased(rng, variant):
    """Two states that differ look the same, be one of them rare or not."""
    task = small(rng, 4, 8, successors=(1, 1) if variant % 2 else (1, 3))
    k = len(task.ends)
    inner = np.flatnonzero(~task.ends)
    one, other = rng.choice(inner, 2, replace=False)
    if variant % 3 == 0:
        task.move[:, :, other] *= 0.02
        lost = 1 - task.move.sum(2)
        task.move[:, :, one] += np.where(task.ends[:, None], 0, lost)
        task.start[other] = 0
        task.start /= task.start.sum()
    seen = np.arange(k)
    seen[other] = one
    return Trap(task, seen, size=some_size(rng))


def counter(rng, variant):
    """Every so many steps something is paid; how many are left is not seen."""
    n = int(rng.integers(2, 61))
    task = table(n, 2)
    for i in range(n):
        task.move[i, 0, (i + 1) % n] = 1
        task.move[i, 1, (i + 1) % n if variant % 2 else i] = 1
    task.reward[n - 1, 0] = 1
    if variant % 3 == 0:
        task.start = np.eye(n)[0]
    return Trap(
        task, np.zeros(n, int), {"period": n}, size=some_size(rng), length=pick(rng, 50, 200, 1000)
    )


def rooms_and_counter(rng, variant):
    """A garden whose rewards come in every n-th step only."""
    task, n = small(rng, 3, 6, terminal=False, share=0.6), int(rng.integers(2, 13))
    silent = latent.Task(task.move, 0 * task.reward, task.start, task.policy, task.ends)
    both = product([task] + [silent] * (n - 1), n, lambda h, *_: np.eye(n)[(h + 1) % n])
    return Trap(both, np.repeat(np.arange(len(task.ends)), n), {"period": n}, size=some_size(rng))


def mixture(rng, variant):
    """Every episode is of one of two tasks, which look the same, and differ here or there."""
    task = small(rng, 3, 6, terminal=False, values=(1.0,), share=0.5)
    other = latent.Task(task.move.copy(), task.reward.copy(), task.start, task.policy, task.ends)
    task.coins = other.coins = True
    task.reward *= 0.5
    apart = pick(rng, 0.05, 0.1, 0.2, 0.5)
    other.reward = np.where(task.reward > 0, 0.5 + apart, 0)
    if variant % 2:
        other.reward = task.reward.copy()
        for a in range(task.policy.shape[1]):
            for s in range(len(task.ends)):
                shift(rng, other, s, a, min(apart, 0.9 * float(other.move[s, a].max())))
    both = product([task, other], 2, lambda h, *_: np.eye(2)[h])
    both.coins = True
    return Trap(
        both,
        np.repeat(np.arange(len(task.ends)), 2),
        {"apart": apart, "moves": variant % 2},
        size=some_size(rng),
        length=pick(rng, 10, 50, 200),
    )


def weather(rng, variant):
    """A hidden weather that lasts changes how likely it is to be paid."""
    task = small(rng, 3, 6, terminal=False, values=(1.0,), share=0.6)
    apart, last = pick(rng, 0.05, 0.1, 0.2), pick(rng, 0.8, 0.95, 0.99)
    fair = latent.Task(task.move, task.reward * (0.5 + apart), task.start, task.policy, task.ends)
    foul = latent.Task(task.move, task.reward * (0.5 - apart), task.start, task.policy, task.ends)
    stay = np.array([[last, 1 - last], [1 - last, last]])
    both = product([fair, foul], 2, lambda h, *_: stay[h])
    both.coins = True
    return Trap(
        both,
        np.repeat(np.arange(len(task.ends)), 2),
        {"apart": apart, "lasts": last},
        size=some_size(rng),
        length=pick(rng, 50, 200),
    )


def cue(rng, variant):
    """What is seen first tells what is paid at the end of a corridor, where nothing tells it any
    more."""
    n, sure = int(rng.integers(2, 16)), pick(rng, 1.0, 0.8, 0.6)
    task = table(2 + 2 * n + 1, 2)
    task.start = np.where(np.arange(2 * n + 3) < 2, 0.5, 0)
    for c in range(2):
        task.move[c, :, 2 + c * n] = 1
        for i in range(n):
            at = 2 + c * n + i
            task.move[at, 0, at + 1 if i < n - 1 else 2 * n + 2] = 1
            task.move[at, 1, at] = 1
        task.move[c, :, 2 + c * n] = 1
    task.reward[2 + n - 1, 0] = sure
    task.reward[2 + 2 * n - 1, 0] = 1 - sure
    task.coins = True
    task.ends[-1] = True
    if variant % 2:  # it starts again
        task.ends[-1] = False
        task.move[-1] = 0
        task.move[-1, :, :2] = 0.5
    else:
        finish(task)
    seen = np.concatenate([[0, 1], 2 + np.tile(np.arange(n), 2), [2 + n]])
    return Trap(task, seen, {"length": n, "sure": sure}, size=some_size(rng))


def toggle(rng, variant):
    """One action in one state throws a switch that nobody sees; elsewhere, something else happens
    then."""
    task = small(rng, 4, 8, terminal=False)
    other = latent.Task(task.move.copy(), task.reward.copy(), task.start, task.policy, task.ends)
    k = len(task.ends)
    s, at = rng.choice(k, 2, replace=False)
    if variant % 2:
        other.reward[s, 0] += 1
    else:
        shift(rng, other, s, 0, pick(rng, 0.1, 0.3))
    both = product(
        [task, other],
        2,
        lambda h, x, a, _: np.eye(2)[1 - h] if x == at and a == 0 else np.eye(2)[h],
    )
    return Trap(both, np.repeat(np.arange(k), 2), size=some_size(rng), length=pick(rng, 20, 100))


def sticky(rng, variant):
    """Now and then the last action is done again, whatever was chosen."""
    task = small(rng, 4, 8, terminal=False)
    k, actions = task.policy.shape
    again = pick(rng, 0.02, 0.1, 0.25)
    both = table(k * actions, actions)
    for s in range(k):
        for b in range(actions):
            for a in range(actions):
                for done, odds in ((a, 1 - again), (b, again)):
                    for t in np.flatnonzero(task.move[s, done]):
                        i = t * actions + done
                        p = odds * task.move[s, done, t]
                        both.move[s * actions + b, a, i] += p
                        both.reward[s * actions + b, a, i] = task.reward[s, done, t]
    both.policy = np.repeat(task.policy, actions, axis=0)
    both.start = np.repeat(task.start, actions) / actions
    return Trap(both, np.repeat(np.arange(k), actions), {"again": again}, size=some_size(rng))


def second(rng, variant):
    """In one state, what happens depends on the state before, too."""
    task = small(rng, 4, 8, terminal=False)
    k, actions = task.policy.shape
    s, apart = int(rng.integers(k)), pick(rng, 0.1, 0.3, 0.6)
    other = latent.Task(task.move.copy(), task.reward.copy(), task.start, task.policy, task.ends)
    for a in range(actions):
        shift(rng, other, s, a, min(apart, 0.9 * float(other.move[s, a].max())))
    came = rng.random(k) < 0.5
    came[:2] = [True, False]
    both = product([task, other], 2, lambda h, x, a, t: np.eye(2)[int(came[x])])
    return Trap(both, np.repeat(np.arange(k), 2), {"apart": apart}, size=some_size(rng))


def delayed(rng, variant):
    """What is earned is paid a step or two later; what is owed is seen, or not."""
    task = small(rng, 3, 5, terminal=False, values=(1.0,), share=0.4)
    delay = int(rng.integers(1, 4))
    k, actions = task.policy.shape
    n = 2**delay
    both = table(k * n, actions)
    for s in range(k):
        for owed in range(n):
            for a in range(actions):
                for t in np.flatnonzero(task.move[s, a]):
                    earned = int(task.reward[s, a, t] > 0)
                    i = t * n + (owed >> 1 | earned << delay - 1)
                    both.move[s * n + owed, a, i] += task.move[s, a, t]
                    both.reward[s * n + owed, a, i] = owed & 1
    both.policy = np.repeat(task.policy, n, axis=0)
    both.start = np.zeros(k * n)
    both.start[::n] = task.start
    seen = np.arange(k * n) if variant % 3 == 0 else np.repeat(np.arange(k), n)
    return Trap(both, seen, {"delay": delay, "shown": variant % 3 == 0}, size=some_size(rng))


def missing(rng, variant):
    """Now and then nothing is seen."""
    task = small(rng, 4, 8)
    share = pick(rng, 0.002, 0.02, 0.2)

    def blur(rng, observed, walks):
        gone = rng.random(len(observed)) < share
        return np.where(gone & ~task.ends[walks.states], len(task.ends), observed)

    return Trap(task, parameters={"share": share}, size=some_size(rng), blur=blur, markov=False)


def confused(rng, variant):
    """Now and then another state is seen than there is."""
    task = small(rng, 4, 8, terminal=False)
    share = pick(rng, 0.002, 0.02, 0.1)

    def blur(rng, observed, walks):
        wrong = rng.random(len(observed)) < share
        return np.where(wrong, rng.integers(0, len(task.ends), len(observed)), observed)

    return Trap(task, parameters={"share": share}, size=some_size(rng), blur=blur, markov=False)


def late(rng, variant):
    """What is seen is what was there a step before."""
    task = small(rng, 4, 8, terminal=False)

    def blur(rng, observed, walks):
        before = np.roll(observed, 1)
        first = np.cumsum(walks.lengths + 1) - walks.lengths - 1
        before[first] = observed[first]
        return before

    return Trap(task, size=some_size(rng), blur=blur, markov=False)


def lasting_noise(rng, variant):
    """Noise of rewards that remembers."""
    task = small(rng, 3, 6, terminal=False, values=(-1.0, 1.0, 2.0))
    memory, sd = pick(rng, 0.2, 0.5, 0.9, 0.99), float(rng.uniform(0.1, 1))
    from looks import autoregressive

    def noise(rng, walks):
        return sd * autoregressive(rng, walks.lengths - 1, 1, memory)[:, 0]

    return Trap(
        task,
        parameters={"memory": memory, "sd": sd},
        size=some_size(rng),
        pay=paid_with(noise),
        length=pick(rng, 50, 200),
        markov=False,
    )


def drift(rng, variant):
    """The task itself changes from the first episode to the last."""
    task = small(rng, 3, 6, terminal=False, values=(1.0,), share=0.6)
    by = pick(rng, 0.1, 0.3, 0.8)

    def pay(rng, walks):
        when = np.repeat(np.arange(len(walks.lengths)) / len(walks.lengths), walks.lengths)
        return (rng.random(len(when)) < walks.rewards * (0.5 + by * (when - 0.5))).astype(float)

    return Trap(
        task,
        parameters={"by": by},
        size=some_size(rng),
        pay=pay,
        markov=False,
        length=pick(rng, 20, 100),
    )


# What is seen and means nothing, or much


def parity(rng, variant):
    """Bits come one by one, all are seen; their parity is paid."""
    n = int(rng.integers(3, 8))
    number = {}
    for length in range(n + 1):
        for bits in range(2**length):
            number[length, bits] = len(number)
    task = table(len(number) + 1, 2)
    task.start = np.eye(len(number) + 1)[0]
    lucky = pick(rng, 0.5, 0.3)
    for (length, bits), i in number.items():
        if length < n:
            task.move[i, :, number[length + 1, 2 * bits + 1]] += lucky
            task.move[i, :, number[length + 1, 2 * bits]] += 1 - lucky
        else:
            task.move[i, :, -1] = 1
            odd = bin(bits).count("1") % 2
            task.reward[i, 0], task.reward[i, 1] = odd, 1 - odd
    task.ends[-1] = True
    finish(task)
    if variant % 2:  # half of what is paid is luck
        task.reward = 0.25 + 0.5 * task.reward
        task.coins = True
        finish(task)
    return Trap(task, parameters={"bits": n}, size=some_size(rng))


def clock(rng, variant):
    """Time is part of what is seen; it matters from some time on, or never."""
    task = small(rng, 3, 5, terminal=False)
    length = int(rng.integers(4, 21))
    k, actions = task.policy.shape
    when = int(rng.integers(2, length)) if variant % 2 else None
    both = table(k * (length + 1), actions)
    for t in range(length + 1):
        for s in range(k):
            then = min(t + 1, length) * k
            both.move[t * k + s, :, then : then + k] = task.move[s]
            both.reward[t * k + s, :, then : then + k] = task.reward[s]
            if when is not None and t >= when:
                both.reward[t * k + s] += 1
    both.policy = np.tile(task.policy, (length + 1, 1))
    both.start = np.concatenate([task.start, np.zeros(k * length)])
    return Trap(
        both,
        parameters={"length": length, "matters_from": when},
        size=some_size(rng),
        length=length,
    )


def nothing(rng, variant):
    """One thing is seen, and what follows is a throw of the dice."""
    task = table(2, 2)
    task.move[0, :, 0] = 1
    task.reward[0, 0], task.reward[0, 1] = 0.3, 0.6
    task.coins = True
    if variant % 2:
        task.move[0, :, 0], task.move[0, :, 1] = 0.9, 0.1
        task.ends[1] = True
    else:
        task.move[1, :, 0] = 1
        task.start = np.array([1.0, 0])
        return Trap(task, np.zeros(2, int), size=some_size(rng))
    return Trap(finish(task), size=some_size(rng))


def beside(rng, variant):
    """Something that means nothing goes its own way, or the way that actions send it."""
    task = small(rng, 3, 5)
    n = int(rng.integers(2, 6))
    law = rng.dirichlet(np.full(n, 0.7), (task.policy.shape[1], n))
    if variant % 2 == 0:
        law[:] = law[:1]
    both = product([task] * n, n, lambda h, s, a, t: law[a, h])
    return Trap(both, parameters={"beside": n}, size=some_size(rng))
