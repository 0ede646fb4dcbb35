"""The command as users call it: exit codes, JSON, sentences, and nothing half-written."""

import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zipfile

PSIFOLD = os.environ["PSIFOLD"]


def call(*arguments, **options):
    return subprocess.run([PSIFOLD, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, **options)


def run(*arguments, **options):
    """A command. A run that it left must be one (psi_run_check)."""
    result = call(*arguments, **options)
    if arguments and arguments[0] == "cluster" and "-o" in arguments and result.returncode == 0:
        checked = call("verify", arguments[arguments.index("-o") + 1], "--files", **options)
        assert checked.returncode == 0, checked.stderr
    return result


def write_npz(path, **arrays):
    """Arrays of doubles (lists), whole numbers (tuples) or rows of doubles (lists of lists)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            shape, kind = (len(values),), "q" if isinstance(values, tuple) else "d"
            if values and isinstance(values[0], list):
                shape = (len(values), len(values[0]))
                values = [value for row in values for value in row]
            head = repr({"descr": "<i8" if kind == "q" else "<f8", "fortran_order": False,
                         "shape": shape}).encode()
            head += b" " * (-(len(head) + 11) % 64) + b"\n"
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" +
                             len(head).to_bytes(2, "little") + head +
                             struct.pack(f"<{len(values)}{kind}", *values))


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="psifold-test-")
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refuse(self, code, sentence, *arguments, **options):
        """The command ends with this exit code and one line that contains the sentence."""
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        lines = [line for line in result.stderr.splitlines() if line.startswith("psifold: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(sentence, lines[0])
        return result

    def generate(self, *arguments, name="data"):
        target = self.path / name
        self.succeed("generate", *arguments, "-o", target, "--quiet")
        return target

    def inspect(self, target, *arguments):
        return json.loads(self.succeed("inspect", target, "--json", *arguments).stdout)

    def test_overview_lists_every_command_and_each_explains_itself(self):
        overview = self.succeed().stdout
        commands = [line.split()[1] for line in overview.splitlines()
                    if line.startswith("  psifold ")]
        self.assertGreaterEqual(len(commands), 5)
        for command in commands:
            text = self.succeed(command, "--help").stdout
            self.assertEqual(text, self.succeed("help", command).stdout)
            self.assertIn("Example:\n  psifold " + command, text)
            for option in ("--json", "--seed", "--threads", "--quiet"):
                self.assertIn(option, text)
            self.assertIn(f".SS psifold {command}", self.succeed("--man").stdout)
        self.assertRegex(self.succeed("--version").stdout, r"^psifold \d+\.\d+\.\d+ \([^ ]+\)\n$")

    def test_help_is_short_and_nothing_is_left_out(self):
        def options(text):
            return re.findall(r"^ {2}(?:-\w, | {4})--([\w-]+)", text, re.M)

        for line in self.succeed().stdout.splitlines():
            if not line.startswith("  psifold "):
                continue
            command = line.split()[1]
            told = self.succeed(command, "--help")
            self.assertEqual(told.stderr, "", command)
            short = told.stdout
            every = options(self.succeed(command, "--help-all").stdout)
            self.assertLessEqual(len(options(short)), 12, command)
            self.assertEqual(len(every), len(set(every)), command)
            self.assertLess(set(options(short)), set(every))
            self.assertIn(f"{len(every) - len(options(short))} more", short)
            words = self.succeed(command, "--help=words").stdout.split()
            self.assertLessEqual({"--" + name for name in every}, set(words))
            section = self.succeed(command, "--help=man").stdout
            common = {"seed", "threads", "max-memory", "json", "quiet"}
            for name in set(every) - common:
                self.assertIn(f"\\-\\-{name}", section)

    def test_what_is_given_beats_the_constants_of_the_paper(self):
        data = self.generate("point-column-world", "--episodes", 30, "--max-steps", 20)
        quick = ("--paper", "column-world", "--max-refinements", 1, "--hidden", 8)
        for number, (given, gamma) in enumerate((((), 0.7), (("--gamma", 0.5), 0.5))):
            folder = self.path / f"run-{number}"
            found = json.loads(self.succeed("cluster", data, "-o", folder, "--json", "--quiet",
                                            *quick, *given).stdout)
            self.assertEqual(found["gamma"], gamma)  # 0.5 is also the usual default
            options = json.loads((folder / "manifest.json").read_text())["options"]
            self.assertEqual((options["gamma"], options["paper"], options["hidden"]),
                             (gamma, "column-world", 8))
            self.assertEqual(options["epsilon_sf"], 1.0)  # the paper's, where nothing is given

    def test_wrong_words_get_one_sentence(self):
        self.refuse(2, "did you mean generate", "genrate")
        self.refuse(2, "there is no command 'xyzzy'", "xyzzy")
        self.refuse(2, "did you mean --episodes", "generate", "column-world", "--epsiodes", 3)
        self.refuse(2, "needs a value", "generate", "column-world", "--episodes")
        self.refuse(2, "a whole number", "generate", "column-world", "--episodes", "-3")
        self.refuse(2, "a whole number", "inspect", "x", "--threads", "two")
        self.refuse(2, "inspect needs FILE", "inspect")
        self.refuse(2, "does not know what to do with 'b'", "plan", "a", "b")
        self.refuse(2, "-o PATH", "generate", "column-world")
        self.refuse(2, "colum-world", "generate", "colum-world", "-o", self.path / "x")
        self.refuse(2, "at least 1", "generate", "column-world", "--episodes", 0,
                    "-o", self.path / "x")
        self.refuse(2, "cannot be fetched", "fetch", "cifar")
        self.refuse(2, "at most 1024", "inspect", "x", "--threads", 5000)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_tasks_are_listed(self):
        tasks = json.loads(self.succeed("tasks", "--json").stdout)["tasks"]
        self.assertEqual([task["name"] for task in tasks],
                         ["column-world", "point-column-world", "combination-lock", "bit-lock", "rich-lock"])
        self.assertEqual([preset["name"] for preset in tasks[2]["presets"]],
                         ["train", "swap-digits", "reversed-dial", "left-dial-broken"])
        self.assertEqual(self.succeed("tasks", "--names").stdout.split(),
                         [task["name"] for task in tasks])

    def test_generated_data_are_what_inspect_says(self):
        data = self.generate("combination-lock", "--episodes", 20, "--max-steps", 50)
        found = self.inspect(data)
        self.assertEqual(found["episodes"], 20)
        self.assertEqual(found["observations"], found["transitions"] + 20)
        self.assertEqual(found["observation_shape"], [3, 28, 28])
        self.assertEqual(found["observation_dtype"], "uint8")
        self.assertEqual(found["n_actions"], 3)
        self.assertEqual(found["terminated"] + found["truncated"], 20)
        self.assertEqual(sum(value["count"] for value in found["rewards"]["values"]),
                         found["transitions"])
        self.assertTrue(found["latent_states_known"])

    def test_options_shape_the_task(self):
        data = self.generate("combination-lock", "--dials", 2, "--digits-per-dial", 5, "--broken",
                             "none", "--episodes", 10)
        found = self.inspect(data)
        self.assertEqual(found["observation_shape"], [2, 28, 28])
        self.assertEqual(found["terminated"], 10)
        data = self.generate("column-world", "--width", 6, "--no-terminate", "--reward", "being",
                             "--max-steps", 40, "--episodes", 10, name="grid")
        found = self.inspect(data)
        self.assertEqual((found["terminated"], found["truncated"]), (0, 10))
        self.assertEqual(found["observation_dtype"], "int64")
        self.refuse(2, "dials", "generate", "column-world", "--dials", 3, "-o", self.path / "no")

    def test_same_seed_same_bytes_on_any_number_of_threads(self):
        files = []
        for threads, seed in ((1, 7), (2, 7), (2, 8)):
            target = self.path / f"x{len(files)}.npz"
            self.succeed("generate", "combination-lock", "--episodes", 8, "--threads", threads,
                         "--seed", seed, "-o", target)
            with zipfile.ZipFile(target) as archive:
                files.append({name: archive.read(name) for name in archive.namelist()})
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])

    def test_what_exists_is_not_overwritten_unless_asked(self):
        data = self.generate("column-world", "--episodes", 3)
        self.refuse(2, "exists already", "generate", "column-world", "-o", data)
        self.succeed("generate", "column-world", "--episodes", 5, "-o", data, "--replace")
        self.assertEqual(self.inspect(data)["episodes"], 5)

    def test_files_that_cannot_be_read_say_why(self):
        self.refuse(4, "No such file", "inspect", self.path / "nowhere")
        garbage = self.path / "garbage.npz"
        garbage.write_bytes(b"this is not a data set at all")
        result = self.refuse(5, "garbage.npz", "inspect", garbage, "--json")
        self.assertEqual(json.loads(result.stdout)["status"], "PSI_EFORMAT")
        self.refuse(4, "cannot", "generate", "column-world", "-o", "/proc/nowhere/x")

    def test_a_full_stdout_is_noticed(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([PSIFOLD, "tasks"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 4)

    def test_interrupting_leaves_nothing_behind(self):
        target = self.path / "long"
        process = subprocess.Popen([PSIFOLD, "generate", "combination-lock", "--episodes",
                                    "100000", "-o", target], stderr=subprocess.PIPE)
        deadline = time.time() + 30
        while not list(self.path.iterdir()) and time.time() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertIn(b"stopped on request", process.stderr.read())
        process.stderr.close()
        self.assertEqual(list(self.path.iterdir()), [])

    def test_odd_data_get_a_sentence_or_an_answer(self):
        def ring(name, reward=1.0, poison=None, actions=2, episodes=20, length=20):
            observations, taken, rewards = [], [], []
            for e in range(episodes):
                place = 0
                for t in range(length + 1):
                    observations.append([float(place), 7.0])
                    if t == length:
                        break
                    action = (e * 7 + t * t) % actions
                    goes_on = action > 0 or actions == 1
                    taken.append(action)
                    rewards.append(reward if goes_on and place == 2 else 0.0)
                    place = (place + 1) % 3 if goes_on else place
            if poison is not None:
                observations[-3][0] = poison
            write_npz(self.path / name, observations=observations, actions=tuple(taken),
                      rewards=rewards, episode_lengths=(length,) * episodes,
                      terminated=(0,) * episodes, truncated=(1,) * episodes)
            return self.path / name

        quick = ("--trunk-steps", 50, "--head-steps", 50, "--representation-steps", 50, "--hidden",
                 16, "--max-refinements", 4)
        for kind in ("table", "mlp"):
            folder = self.path / kind
            options = ("-o", folder, "--approximator", kind, "--replace", *quick)
            self.refuse(6, "all 400 rewards are 0", "cluster", ring("c.npz", reward=0.0), *options,
                        "--method", "successor-features")
            for poison in (float("nan"), float("inf"), 1e300):
                self.refuse(6, "observation 417", "cluster", ring("n.npz", poison=poison), *options)
            self.refuse(8, "--max-latent-states", "cluster", ring("m.npz"), *options,
                        "--max-latent-states", 1, "--epsilon-reward", 1e-9, "--epsilon-sf", 1e-9,
                        "--filter", 0)
            self.assertFalse(folder.exists())
            for odd in (ring("a.npz", actions=1), ring("e.npz", episodes=1, length=60),
                        ring("s.npz", episodes=90, length=6), ring("h.npz", reward=1e300)):
                self.succeed("cluster", odd, *options)
                self.succeed("evaluate", folder, odd)

    def test_an_interrupted_run_is_recognised(self):
        data = self.generate("point-column-world", "--episodes", 200)
        folder = self.path / "run"
        process = subprocess.Popen([PSIFOLD, "cluster", str(data), "-o", str(folder)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (folder / "checkpoint" / "start.json").exists():
            time.sleep(0.01)
        self.refuse(2, "another process", "cluster", data, "-o", folder, "--resume")
        process.send_signal(signal.SIGINT)
        self.assertIn("--resume", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 130)
        for command in (("evaluate", folder, data), ("verify", folder, data), ("plan", folder)):
            self.refuse(10, "interrupted", *command)
        self.refuse(2, "--resume", "cluster", data, "-o", folder)
        self.refuse(2, "seed 0, not 5", "cluster", data, "-o", folder, "--resume", "--seed", 5)
        self.assertTrue((folder / "checkpoint" / "start.json").exists())

    def test_a_budget_ends_a_run_in_time(self):
        data = self.generate("point-column-world", "--episodes", 100)
        quick = ("--trunk-steps", 100, "--representation-steps", 200, "--threads", 1, "--json")
        folder, whole = self.path / "run", self.path / "whole"
        done = json.loads(self.succeed("cluster", data, "-o", whole, *quick).stdout)
        self.assertFalse(done["stopped"])
        self.refuse(2, "90s", "cluster", data, "-o", folder, "--budget", "soon")
        self.refuse(130, "before the first refinement", "cluster", data, "-o", folder, *quick,
                    "--budget", "0.001s")
        self.refuse(2, "--resume", "cluster", data, "-o", folder, *quick)
        # wherever it ends there is an answer that does not claim to be certain, or nothing yet
        for tenths in (1, 2, 4, 8, 16):
            result = run("cluster", data, "-o", folder, *quick, "--resume", "--budget",
                         f"{tenths / 10}s")
            self.assertIn(result.returncode, (0, 130), result.stderr)
            if result.returncode == 130:
                continue
            found = json.loads(result.stdout)
            if "stopped" not in found or not found["stopped"]:
                break
            self.assertEqual(found["verdict"], "undetermined")
            self.assertIn("--resume", result.stderr)
            self.succeed("evaluate", folder, data)
            self.succeed("verify", folder, "--files")
            self.succeed("report", folder, "-o", self.path / "r.html", "--replace")
        self.succeed("cluster", data, "-o", folder, *quick, "--resume")
        for name in ("clusters.npy", "latent.npz", "representation.safetensors"):
            self.assertEqual((folder / name).read_bytes(), (whole / name).read_bytes(), name)
        self.assertFalse((folder / "checkpoint").exists())

    def test_what_is_continuous_has_no_small_answer(self):
        places, taken, lengths, data = [], [], [], self.path / "line.npz"
        dice = random.Random(5)
        for _ in range(300):  # rewards are all 1; an episode ends when the point is gone
            place, length = dice.uniform(-0.5, 0.5), 0
            places.append([place])
            while abs(place) <= 1:
                taken.append(dice.randrange(2))
                place, length = 1.3 * place + (0.17 if taken[-1] else -0.17), length + 1
                places.append([place])
            lengths.append(length)
        write_npz(data, observations=places, actions=tuple(taken), rewards=[1.0] * len(taken),
                  episode_lengths=tuple(lengths), terminated=(1,) * 300, truncated=(0,) * 300)
        folder = self.path / "run"
        found = json.loads(self.succeed("cluster", data, "-o", folder, "--threads", 1,
                                        "--json").stdout)
        self.assertEqual(found["verdict"], "no-small-answer")
        self.assertEqual(len(found["advice"]), 1)
        self.assertLess(found["growth"][0], found["growth"][1])
        self.assertLess(found["growth"][1], found["growth"][2])
        kept = json.loads((folder / "manifest.json").read_text())["result"]
        self.assertEqual(kept["growth"], found["growth"])
        self.assertIn("no small set of them predicts the rewards", kept["verdict_sentence"])
        self.succeed("report", folder, "-o", self.path / "r.html")
        page = (self.path / "r.html").read_text()
        self.assertIn("No small answer", page)
        self.assertIn(f"{found['growth'][0]} in a quarter", page)

    def test_a_table_is_clustered_judged_and_planned_on(self):
        data = self.generate("column-world", "--episodes", 300)
        run_folder = self.path / "run"
        found = json.loads(self.succeed("cluster", data, "-o", run_folder, "--json").stdout)
        self.assertEqual(found["latent_states"], 4)
        self.assertTrue(found["converged"])
        self.assertEqual([step["clusters"] for step in found["refinements"]], [3, 4, 4])
        for key in ("epsilon_reward", "epsilon_sf", "gamma", "seconds", "certificate"):
            self.assertIn(key, found)
        self.assertEqual([phase["phase"] for phase in found["phases"]],
                         ["refinements", "everything else"])
        self.assertEqual([phase["passes"] for phase in found["phases"]], [0, 0])
        self.assertLessEqual(sum(phase["seconds"] for phase in found["phases"]), found["seconds"])
        self.assertEqual(found["certificate"]["violating"], 0)
        self.assertEqual(found["certificate"]["mergeable"], 0)
        judged = json.loads(self.succeed("evaluate", run_folder, data, "--json").stdout)
        self.assertEqual(judged["true_latent_states"], 4)
        self.assertEqual(judged["off_diagonal"], 0)
        self.assertLess(judged["sequence_error"]["mean"], 1e-9)
        self.assertLess(judged["sequence_error"]["best_possible"], 1e-9)
        self.assertEqual(judged["sequence_error"]["best_possible_by"], "truth")
        self.assertGreater(judged["sequence_errors"][0]["mean"], 0.01)
        plan = json.loads(self.succeed("plan", run_folder, "--json").stdout)["latent_states"]
        self.assertEqual(sorted(round(state["value"], 4) for state in plan),
                         [0, 0.9025, 0.95, 1])
        self.refuse(10, "table", "export", run_folder, "--onnx", self.path / "x.onnx")
        self.refuse(2, "exists already", "cluster", data, "-o", run_folder)
        for option, value, sentence in (("--head-steps", 0, "at least 1"),
                                        ("--gamma", 1.5, "above 0 and below 1"),
                                        ("--filter", -0.1, "at least 0 and below 1"),
                                        ("--epsilon-sf", -1, "at least 0")):
            self.refuse(2, sentence, "cluster", data, "-o", self.path / "no", option, value)
        self.assertFalse((self.path / "no").exists())

    def test_a_network_run_can_be_taken_away(self):
        data = self.generate("point-column-world", "--episodes", 200)
        fresh = self.generate("point-column-world", "--episodes", 20, "--seed", 1, name="fresh")
        run_folder = self.path / "run"
        # one thread: two that wait for each other take minutes where others work, too
        quick = ["--trunk-steps", 150, "--head-steps", 80, "--representation-steps", 150,
                 "--hidden", 128, "--threads", 1, "--method", "successor-features"]
        self.succeed("cluster", data, "-o", run_folder, *quick)
        self.assertLessEqual({"manifest.json", "refinements.jsonl", "clusters.npy", "latent.npz",
                              "certificate.npz", "representation.safetensors"},
                             {entry.name for entry in run_folder.iterdir()})
        manifest = json.loads((run_folder / "manifest.json").read_text())
        self.assertEqual(manifest["options"]["trunk_steps"], 150)
        passes = {phase["phase"]: phase["passes"] for phase in manifest["phases"]}
        self.assertEqual(list(passes), list(manifest["timings"]["phases"]))
        # windows of 8 observations that an episode may be too short for
        self.assertTrue(0.9 * 150 * 16 * 8 < passes["learning features"] <= 150 * 16 * 8)
        self.assertEqual(passes["computing features"], manifest["data"]["observations"])
        self.assertGreater(passes["training the representation"], 150 * 200)
        self.succeed("evaluate", run_folder, fresh)
        self.succeed("verify", run_folder, fresh, "--json")
        labels = self.path / "labels.npy"
        sure = self.path / "sure.npy"
        told = self.succeed("assign", run_folder, fresh, "-o", sure, "--min-confidence", "1", "--json")
        every = self.succeed("assign", run_folder, fresh, "-o", self.path / "every.npy", "--json")
        self.assertGreaterEqual(json.loads(told.stdout)["unknown"],
                                json.loads(every.stdout)["unknown"])
        self.succeed("assign", run_folder, fresh, "-o", labels)
        observations = self.inspect(fresh)["observations"]
        self.assertEqual(labels.stat().st_size, 128 + 4 * observations)
        self.succeed("export", run_folder, "--onnx", self.path / "r.onnx", "--safetensors",
                     self.path / "r.safetensors")
        self.assertGreater((self.path / "r.onnx").stat().st_size, 1000)
        other = self.generate("column-world", "--episodes", 5, name="other")
        self.refuse(3, "observations", "assign", run_folder, other, "-o", self.path / "no.npy")
        (run_folder / "manifest.json").write_text('{"data": 3}')
        self.refuse(5, "manifest", "evaluate", run_folder, fresh)

    def test_stacked_observations_are_remembered(self):
        """A walker on a ring of five, whose direction is not seen: Markov from two places."""
        def walks(name, episodes, salt, length=20):
            places, taken, rewards = [], [], []
            for e in range(episodes):
                place, way = e % 5, 1
                for t in range(length + 1):
                    places.append(place)
                    if t == length:
                        break
                    taken.append((e * 40503 + (t + salt) * (t + e) * 9973) // 64 % 2)
                    way = -way if taken[-1] else way
                    place = (place + way) % 5
                    rewards.append(float(place == 0))
            write_npz(self.path / name, observations=tuple(places), actions=tuple(taken),
                      rewards=rewards, episode_lengths=(length,) * episodes,
                      terminated=(0,) * episodes, truncated=(1,) * episodes)
            return self.path / name

        data, fresh, folder = walks("walks.npz", 300, 0), walks("fresh.npz", 30, 5), self.path / "run"
        plain = json.loads(self.succeed("cluster", data, "-o", self.path / "plain", "--json").stdout)
        self.assertEqual(plain["verdict"], "not-markov")
        self.assertIn("--stack 2", " ".join(plain["advice"]))
        found = json.loads(
            self.succeed("cluster", data, "-o", folder, "--stack", 2, "--json").stdout)
        self.assertEqual((found["verdict"], found["latent_states"]), ("certain", 5))
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["options"]["stack"], 2)
        self.assertEqual(manifest["data"]["observation_shape"], [])
        for file in (data, fresh):
            errors = json.loads(self.succeed("evaluate", folder, file, "--json").stdout)
            self.assertEqual(errors["sequence_error"]["mean"], 0.0)
            self.assertEqual(errors["sequence_error"]["best_possible_by"], "latent-states")
            certificate = json.loads(self.succeed("verify", folder, file, "--json").stdout)
            self.assertEqual(certificate["certificate"]["violating"], 0)
        for sure in ((), ("--min-confidence", "0.5")):
            told = self.succeed("assign", folder, fresh, "-o", self.path / "l.npy", "--replace",
                                "--json", *sure)
            self.assertEqual(json.loads(told.stdout)["unknown"], 0)
        self.succeed("report", folder, "-o", self.path / "r.html")
        self.assertIn("the last 2 of an episode are seen as one", (self.path / "r.html").read_text())
        self.succeed("report", self.path / "plain", "-o", self.path / "p.html")
        self.assertIn("--stack 2", (self.path / "p.html").read_text())
        self.refuse(2, "--stack", "cluster", data, "-o", self.path / "no", "--stack", 0)

    def test_a_report_compares_runs_folds_models_and_opens_a_browser(self):
        data = self.generate("column-world", "--episodes", 100)
        run_folder = self.path / "run"
        self.succeed("cluster", data, "-o", run_folder, "--quiet")
        other, beside = self.path / "other", self.path / "beside.html"
        self.succeed("cluster", data, "-o", other, "--seed", 3, "--quiet")
        self.succeed("report", run_folder, other, "-o", beside)
        self.assertIn("4 of the first are the same in both, 0 are split", beside.read_text())
        model, exact = self.path / "latent.drn", self.path / "exact.html"
        self.succeed("export", run_folder, "--drn", model)
        made = json.loads(self.succeed("report", model, "-o", exact, "--json").stdout)
        self.assertEqual((made["latent_states"], made["pictures"]), (4, False))
        opened = self.path / "browser"
        opened.write_text(f'#!/bin/sh\necho "$1" > {self.path}/opened\n')
        opened.chmod(0o755)
        self.succeed("report", model, "-o", exact, "--replace", "--open",
                     env={**os.environ, "BROWSER": str(opened)})
        # the browser holds the same pipes as the command, so that it is done by now
        self.assertEqual((self.path / "opened").read_text().strip(), str(exact))
        self.refuse(10, "open it in a browser yourself", "report", model, "-o", exact, "--replace",
                    "--open", env={**os.environ, "BROWSER": str(self.path / "none")})

    def test_a_run_is_reported_and_damage_is_named(self):
        data = self.generate("column-world", "--episodes", 100)
        run_folder, page = self.path / "run", self.path / "report.html"
        self.succeed("cluster", data, "-o", run_folder, "--quiet")
        made = json.loads(self.succeed("report", run_folder, "-o", page, "--json").stdout)
        self.assertTrue(made["finished"] and made["trusted"] and made["pictures"])
        self.assertEqual((made["latent_states"], made["refinements"]), (4, 3))
        self.assertEqual(made["bytes"], page.stat().st_size)
        self.assertLess(made["sequence_error"], 1e-9)
        self.assertGreater(made["zero_baseline"], 0.01)
        # libraries name their home in comments and licences, and SVG its name space; nothing else
        # names an address, and the page's policy lets nothing be asked for
        text = re.sub(r"<script>.*?</script>|<pre>.*?</pre>", "", page.read_text(), flags=re.S)
        self.assertIn("default-src 'none'", text)
        for address in ("http:", "https:", "//fonts", "<link", "@import"):
            self.assertNotIn(address, text)
        self.refuse(2, "exists already", "report", run_folder, "-o", page)
        self.refuse(4, "no such folder", "report", self.path / "nowhere", "-o", self.path / "x")
        self.refuse(10, "not the folder of a run", "report", data, "-o", self.path / "x")
        data.rename(self.path / "moved")
        result = self.succeed("report", run_folder, "-o", page, "--replace")
        self.assertIn("no observations are shown", result.stdout)
        self.succeed("report", run_folder, self.path / "moved", "-o", page, "--replace")
        (run_folder / "latent.npz").unlink()
        self.refuse(4, "latent.npz", "report", run_folder, "-o", self.path / "x")
        self.assertFalse((self.path / "x").exists())

    def test_a_figure_of_the_paper_is_reproduced_once(self):
        output = self.path / "results"
        made = json.loads(self.succeed("reproduce", "column-world", "-o", output, "--quiet",
                                       "--episodes", 300, "--json").stdout)
        study = made["studies"][0]
        self.assertEqual(study["clusters"], [1, 2, 3, 4])
        self.assertTrue(all(claim["holds"] for claim in study["claims"]))
        folder = output / "column-world" / "quick"
        for figure in study["figures"]:
            for ending in (".svg", "-dark.svg", ".png", ".dat", ".gp"):
                self.assertGreater((folder / (figure["name"] + ending)).stat().st_size, 100)
        phases = json.loads((folder / "run-phases.json").read_text())
        self.assertEqual(phases[0]["phase"], "refinements")
        self.assertEqual(set(phases[0]), {"phase", "seconds", "passes"})
        self.assertIn("Every column is one latent state", pathlib.Path(made["page"]).read_text())
        before = (folder / "results.json").stat().st_mtime_ns
        again = self.succeed("reproduce", "column-world", "-o", output)
        self.assertIn("finished before", again.stdout)
        self.assertEqual((folder / "results.json").stat().st_mtime_ns, before)
        # a study that stopped on the way goes on: what is there is kept
        (folder / "results.json").unlink()
        kept = (folder / "run" / "manifest.json").stat().st_mtime_ns
        self.refuse(2, "other trajectories", "reproduce", "column-world", "-o", output)
        again = self.succeed("reproduce", "column-world", "-o", output, "--episodes", 300)
        self.assertIn("clustered before", again.stdout)
        self.assertEqual((folder / "run" / "manifest.json").stat().st_mtime_ns, kept)
        presets = json.loads(self.succeed("reproduce", "--show-options", "--json").stdout)["presets"]
        self.assertEqual(presets["table-1 combination-lock"]["epsilon_sf"], 0.8)
        self.assertEqual(presets["table-1 column-world"]["learning_rate"], 0.005)
        self.refuse(2, "column-world", "reproduce", "-o", output)
        self.refuse(2, "column-world", "reproduce", "figure-1", "-o", output)

    def test_completion_knows_commands_and_options(self):
        script = pathlib.Path(__file__).parents[2] / "completions" / "psifold.bash"
        folder = os.path.dirname(PSIFOLD)

        def complete(*words):
            command = (f'PATH="{folder}:$PATH"; source "{script}"; '
                       f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; '
                       '_psifold; printf "%s\\n" "${COMPREPLY[@]}"')
            return subprocess.run(["bash", "-c", command], capture_output=True,
                                  text=True).stdout.split()

        self.assertEqual(complete("psifold", "gen"), ["generate"])
        self.assertEqual(complete("psifold", "generate", "comb"), ["combination-lock"])
        self.assertIn("--digits-per-dial", complete("psifold", "generate", "x", "--dig"))


if __name__ == "__main__":
    unittest.main()
