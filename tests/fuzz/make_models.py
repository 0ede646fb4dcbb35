"""Makes the seed inputs of the fuzzer of models: make_models.py CORPUS_FOLDER. Small on purpose, and
the same every time."""
import gzip
import io
import json
import pathlib
import struct
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import npz  # noqa: E402

root = pathlib.Path(sys.argv[1]) / "model"
root.mkdir(parents=True, exist_ok=True)

drn = """// a model
@type: MDP
@value_type: double
@parameters

@placeholders
$third : 1/3
@reward_models
gain cost
@nr_states
3
@nr_choices
4
@model
state 0 [0, 1] init
	action left [0, 0.5]
		0 : $third
		1 : 0.66666666666666667
	action right [1e-3, -2]
		2 : 1
state 1 [0, 0] odd "two words"
//[x=1	& y=2]
	action left [0, 0]
		1 : 0.5
		2 : 1/2
state 2 goal
	action left
		2 : 1
"""
chain = "@type: DTMC\n@parameters\n\n@reward_models\n \n@nr_states\n1\n@model\nstate 0 [2] init\n\taction 0 [0]\n\t\t0 : 1\n"
gym = '{"0": {"0": [[0.5, 1, 1.0, true], [0.5, 0, 0.0, false]], "1": []}, "1": {"0": [[1.0, 0, 0, false]]}}'
tables = ('3 4 6\n0 0 0 0.5 a\n0 0 1 0.5 a\n0 1 2 1 b\n1 0 1 0.25\n1 0 2 0.75\n2 0 2 1\n%%\n'
          '0="init" 1="goal"\n0: 0\n2: 1\n%%\n# Reward structure "time"\n3 1\n1 2.5\n%%\n3 4 1\n0 1 2 1\n')


def umb(change=None, states=3):
    index = {
        "format-version": 1, "format-revision": 0,
        "transition-system": {
            "time": "discrete", "#players": 1, "#states": states, "#initial-states": 1, "#choices": 4,
            "#choice-actions": 2, "#branches": 6, "#branch-actions": 0, "#observations": 0,
            "branch-probability-type": {"type": "double", "size": 64}},
        "annotations": {
            "aps": {"g": {"alias": "goal", "applies-to": ["states"], "type": {"type": "bool", "size": 1}}},
            "rewards": {"r": {"applies-to": ["states", "choices", "branches"], "type": {"type": "double"}}}}}
    files = {
        "index.json": json.dumps(index).encode(),
        "state-to-choices.bin": struct.pack("<4Q", 0, 2, 3, 4),
        "state-is-initial.bin": struct.pack("<Q", 1),
        "choice-to-branches.bin": struct.pack("<5Q", 0, 2, 3, 5, 6),
        "branch-to-target.bin": struct.pack("<6Q", 0, 1, 2, 1, 2, 2),
        "branch-to-probability.bin": struct.pack("<6d", 0.5, 0.5, 1, 0.25, 0.75, 1),
        "actions/choices/values.bin": struct.pack("<4I", 0, 1, 0, 0),
        "actions/choices/string-mapping.bin": struct.pack("<3Q", 0, 1, 2),
        "actions/choices/strings.bin": b"ab",
        "annotations/aps/g/states/values.bin": struct.pack("<Q", 4),
        "annotations/rewards/r/states/values.bin": struct.pack("<3d", 0, 1, 0),
        "annotations/rewards/r/choices/values.bin": struct.pack("<4d", 0, 1, 0, 0),
        "annotations/rewards/r/branches/values.bin": struct.pack("<6d", 0, 1, 0, 0, 0, 0)}
    files.update(change or {})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


inputs = {
    "drn": drn, "drn-chain": chain, "drn-cut": drn[:200], "drn-half-row": drn.replace("1/2", "1/4"),
    "drn-twice": drn.replace("state 2", "state 1"), "drn-far": drn.replace("2 : 1\n", "9 : 1\n"),
    "drn-states": drn.replace("@nr_states\n3", "@nr_states\n1000000000000"),
    "gymnasium": gym, "gymnasium-cut": gym[:50], "gymnasium-twice": gym.replace('"1": {"0"', '"0": {"0"'),
    "gymnasium-lists": "[[[[1, 0, 0.5, false]], []]]",
    "prism": tables, "prism-chain": "2 2\n0 1 1\n1 1 1\n", "prism-states": "1000000000000 1\n0 0 1\n",
    "prism-order": "2 2\n1 1 1\n0 1 1\n", "prism-sum": "1 1\n0 0 0.9\n",
    "umb": umb(), "umb-gzip": gzip.compress(umb(), mtime=0), "umb-cut": umb()[:3000],
    "umb-gzip-cut": gzip.compress(umb(), mtime=0)[:300], "umb-states": umb(states=10**12),
    "umb-offsets": umb({"state-to-choices.bin": struct.pack("<4Q", 0, 3, 2, 4)}),
    "umb-far": umb({"branch-to-target.bin": struct.pack("<6Q", 0, 1, 2, 1, 2, 2**63)}),
    "umb-short": umb({"branch-to-probability.bin": struct.pack("<5d", 0.5, 0.5, 1, 0.25, 0.75)}),
    "umb-names": umb({"actions/choices/string-mapping.bin": struct.pack("<3Q", 0, 9, 2)}),
    "empty": "",
}
for name, data in inputs.items():
    (root / name).write_bytes(data if isinstance(data, bytes) else data.encode())

# psifold's own arrays, which the command alone reads
root = root.parent / "model_npz"
root.mkdir(exist_ok=True)
names = {"chain": False, "actions": ["left"], "labels": ["goal"], "rewards": ["gain"]}
annotations = {"labels": ("|u1", (1, 2), [0, 1]), "state_rewards": ("<f8", (1, 2), [0.0, 1.5]),
               "choice_rewards": ("<f8", (1, 2), [0.5, 0.0])}
npz.save_model(root / "good", names, **annotations)
npz.save_model(root / "no-names", {"n_actions": 3})
npz.save_model(root / "no-annotations", names)
npz.save_model(root / "list", b"[1, 2]")
npz.save_model(root / "cut", json.dumps(names).encode()[:30])
npz.save_model(root / "negative", {"n_actions": -1})
npz.save_model(root / "enormous", {"n_actions": 2**62})
npz.save_model(root / "many-labels", {"n_actions": 1, "labels": ["a"] * 1000}, states=500)
npz.save_model(root / "short", {"n_actions": 1}, next=("<i4", (1,), [0]))
npz.save_trajectories(root / "trajectories", [0, 1] * 5, [0, 1] * 5)
