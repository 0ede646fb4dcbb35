"""Finite models: Storm reads what psifold writes, and the other way round, and both compute the same."""
import json
import os
import random
import subprocess

import pytest
import stormpy
import stormpy.io
import stormpy.transformations

PSIFOLD = os.environ["PSIFOLD"]
TOOLS = os.environ["PSIFOLD_TOOLS"]


def psifold(*arguments):
    done = subprocess.run([PSIFOLD, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def storm_reads(path):
    build = stormpy.build_model_from_drn if str(path).endswith(".drn") else stormpy.build_model_from_umb
    return build(str(path))


def storm_value(model, formula):
    found = stormpy.model_checking(model, stormpy.parse_properties(formula)[0])
    return found.get_value(model.initial_states[0])


def random_drn(path, seed, copies=3, latent=7):
    """Latent states in several copies, so that there is something to fold."""
    dice = random.Random(seed)
    choices = [[(dice.choice([0, 0, 1]), [dice.randrange(latent) for _ in range(dice.choice([1, 2, 3]))])
                for _ in range(dice.randint(1, 3))] for _ in range(latent)]
    lines = ["@type: MDP", "@parameters", "", "@reward_models", "gain", "@nr_states", str(copies * latent), "@model"]
    for s in range(copies * latent):
        k = s % latent
        lines.append(f"state {s} [0]{' init' if s == 0 else ''}{' goal' if k == latent - 1 else ''}")
        for a, (gain, nexts) in enumerate(choices[k]):
            lines.append(f"\taction {a} [{gain}]")
            into = {}
            for to in nexts:
                to += latent * dice.randrange(copies)
                into[to] = into.get(to, 0) + 1
            lines += [f"\t\t{to} : {n / len(nexts)!r}" for to, n in sorted(into.items())]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", range(20))
def test_quotients_are_storms(tmp_path, seed):
    random_drn(tmp_path / "model.drn", seed)
    model = storm_reads(tmp_path / "model.drn")
    for sensitive in (True, False):
        how = stormpy.transformations.BisimulationOptions()
        how.action_sensitive = sensitive
        theirs = stormpy.transformations.perform_bisimulation(model, [], options=how)
        ours = psifold("quotient", tmp_path / "model.drn", "-o", tmp_path / "small.umb", "--replace",
                       *([] if sensitive else ["--no-action-identity"]))
        assert ours["blocks"] == theirs.nr_states
        assert ours["quotient_choices"] == theirs.nr_choices
        assert ours["quotient_transitions"] == theirs.nr_transitions


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ending", ["drn", "umb"])
def test_probabilities_are_storms(tmp_path, seed, ending):
    random_drn(tmp_path / "model.drn", seed)
    small = tmp_path / f"small.{ending}"
    psifold("quotient", tmp_path / "model.drn", "-o", small)
    model = storm_reads(small)
    for word, option in (("max", []), ("min", ["--minimise"])):
        ours = psifold("plan", small, "--reach", "goal", "--precision", "1e-9", *option)["initial"][0]
        theirs = storm_value(model, f'P{word}=? [F "goal"]')
        assert ours["lower"] - 1e-6 <= theirs <= ours["upper"] + 1e-6
        whole = psifold("plan", tmp_path / "model.drn", "--reach", "goal", "--precision", "1e-9", *option)
        assert abs(whole["initial"][0]["lower"] - ours["lower"]) < 1e-8


def test_storm_writes_and_we_read(tmp_path):
    random_drn(tmp_path / "model.drn", 3)
    model = storm_reads(tmp_path / "model.drn")
    stormpy.io.export_to_umb(model, tmp_path / "theirs.umb")
    stormpy.io.export_to_drn(model, tmp_path / "theirs.drn")
    first = psifold("quotient", tmp_path / "model.drn")
    for name in ("theirs.umb", "theirs.drn"):
        again = psifold("quotient", tmp_path / name)
        for key in ("states", "choices", "transitions", "blocks", "quotient_transitions"):
            assert again[key] == first[key], (name, key)


@pytest.mark.parametrize("ending", ["drn", "umb"])
def test_latent_mdps_can_be_model_checked(tmp_path, ending):
    run = tmp_path / "run"
    made = subprocess.run([f"{TOOLS}/truth_run", "combination-lock", run, "cnn", "4", "40", "digits-per-dial", "3"],
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    out = tmp_path / f"latent.{ending}"
    psifold("export", run, f"--{ending}", out)
    model = storm_reads(out)
    ours = psifold("plan", out, "--reach", "terminal", "--precision", "1e-9")
    found = stormpy.model_checking(model, stormpy.parse_properties('Pmax=? [F "terminal"]')[0])
    assert ours["states"] == model.nr_states
    assert abs(found.get_value(0) - ours["initial"][0]["lower"]) < 1e-6


def test_gymnasium_tables(tmp_path):
    gymnasium = pytest.importorskip("gymnasium")
    table = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True).unwrapped.P
    plain = {str(s): {str(a): [[float(p), int(t), float(r), bool(d)] for p, t, r, d in outcomes]
                      for a, outcomes in actions.items()} for s, actions in table.items()}
    path = tmp_path / "lake.json"
    path.write_text(json.dumps(plain))
    found = psifold("quotient", path, "-o", tmp_path / "lake.drn")
    assert found["states"] == 64 and found["blocks"] <= 54
    values = [0.0] * 64
    for _ in range(3000):
        for s in range(64):
            values[s] = max(sum(p * (r + 0.95 * values[t] * (not d)) for p, t, r, d in table[s][a]) for a in range(4))
    plan = psifold("plan", path, "--gamma", "0.95", "--precision", "1e-9")["initial"][0]
    assert plan["lower"] - 1e-9 <= values[0] <= plan["upper"] + 1e-9
