"""Runs psifold on a data set of the survey, and says whether it was right and whether it was
sure."""

import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from truth import misplaced

SURE_AND_RIGHT = "exact & certain"
UNSURE_AND_RIGHT = "exact, not certain"
UNSURE_AND_WRONG = "wrong, not certain"
SURE_AND_WRONG = "WRONG AND CERTAIN"
ERROR, TIME_OUT = "error", "time-out"
HEAD = ["task", "true K", "found K", "share wrong", "verdict", "CPU s", "pairs under 5 visits"]


def clustering(psifold, data, run, *more):
    """The words of a clustering whose answer is one JSON object."""
    words = (psifold, "cluster", data, "-o", run, "--json", "--seed", 0, "--quiet", *more)
    return [str(word) for word in words]


def execute(command, limit):
    """Exit code (None: out of time), output, errors, and the CPU seconds and mebibytes it took. The
    limit is on CPU seconds, which do not depend on what else the machine does; a run that sleeps is
    stopped as well, much later."""

    def confine():
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 10))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdout=out, stderr=err, start_new_session=True, preexec_fn=confine
        )
        deadline, late = time.monotonic() + 10 * limit, False
        try:
            while True:
                pid, status, used = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if not late and time.monotonic() > deadline:
                    late = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.05)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        process.returncode = os.waitstatus_to_exitcode(
            status
        )  # it was waited for without its knowledge
        out.seek(0)
        err.seek(0)
        texts = [stream.read().decode(errors="replace") for stream in (out, err)]
        seconds = used.ru_utime + used.ru_stime
        late = (
            late
            or process.returncode == -signal.SIGXCPU
            or (process.returncode != 0 and seconds >= limit)
        )
        code = None if late else process.returncode
        return code, *texts, seconds, used.ru_maxrss / 1024


def is_sure(answer):
    """The program's own word; versions without one are sure if a second round found the same,
    nothing is hidden and nothing could be merged."""
    if "verdict" in answer:
        return answer["verdict"] == "certain"
    return bool(
        answer["stable"] and not answer["lack_of_fit"] and answer["certificate"]["mergeable"] == 0
    )


def cluster(folder, name, psifold, limit):
    """One row of the survey."""
    meta = json.loads((folder / f"{name}.json").read_text())
    row = {key: meta.get(key) for key in ("name", "seed", "transitions", "pairs", "pairs_under_5")}
    row |= {"true": meta.get("latent_states"), "aliased": meta.get("aliased_observations")}
    data = folder / f"{name}-v0"
    if not data.exists():
        data = folder / f"{name}.npz"
    with tempfile.TemporaryDirectory(prefix="psifold-survey-") as scratch:
        run = Path(scratch) / "run"
        command = clustering(psifold, data, run)
        code, out, err, seconds, mebibytes = execute(command, limit)
        row |= {"cpu_seconds": round(seconds, 2), "mebibytes": round(mebibytes), "limit": limit}
        if code is None:
            return row | {"class": TIME_OUT}
        if code != 0:
            return row | {
                "class": ERROR,
                "message": (err.strip().splitlines() or [f"exit code {code}"])[-1],
            }
        answer = json.loads(out)
        labels = np.load(run / "clusters.npy")
    sure = is_sure(answer)
    row |= {"found": answer["latent_states"], "sure": sure, "verdict": answer.get("verdict")}
    row |= {key: answer.get(key) for key in ("stable", "lack_of_fit", "approximator")}
    if row["true"] is None:
        return row | {"class": "truth unknown, " + ("certain" if sure else "not certain")}
    truth = np.load(folder / f"{name}.truth.npy")
    wrong = misplaced(truth, labels)
    right = wrong == 0 and row["found"] == row["true"]
    kind = (
        (SURE_AND_RIGHT if sure else UNSURE_AND_RIGHT)
        if right
        else (SURE_AND_WRONG if sure else UNSURE_AND_WRONG)
    )
    return row | {"misplaced": wrong, "observations": len(truth), "class": kind}


def cells(row):
    """The row as it is printed."""
    name = row["name"] + (" (not Markov)" if row["aliased"] else "")
    share = (
        ""
        if row.get("misplaced") is None
        else f"{100 * row['misplaced'] / row['observations']:.2f} %"
    )
    few = "" if row["pairs"] is None else f"{row['pairs_under_5']} of {row['pairs']}"
    known = ["" if row.get(key) is None else str(row[key]) for key in ("true", "found")]
    verdict = row["class"] + (f": {row['message']}" if "message" in row else "")
    return [name, *known, share, verdict, f"{row['cpu_seconds']:.1f}", few]


def line(words):
    return "| " + " | ".join(words) + " |"


def summary(rows):
    """How many of each class, one line."""
    counts = {}
    for row in rows:
        counts[row["class"]] = counts.get(row["class"], 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def survey(folder, names, psifold, limit, output=None):
    """Runs all of them, prints the table as it goes, and keeps the rows in a file after each. Rows
    of other tasks that are in the file stay there."""
    before = json.loads(output.read_text()) if output and output.exists() else []
    before = [row for row in before if row["name"] not in names]
    print(line(HEAD))
    print("|" + "---|" * len(HEAD), flush=True)
    rows = []
    for name in names:
        rows.append(cluster(folder, name, psifold, limit))
        print(line(cells(rows[-1])), flush=True)
        if output:
            output.write_text(json.dumps(before + rows, indent=1) + "\n")
    print(f"\n{summary(rows)}")
    return rows


def comparison(earlier, later):
    """The verdicts of two versions beside each other, for the same data."""
    later = {(row["name"], row["seed"]): row for row in later}
    print(line([*HEAD[:2], "earlier: found K", *HEAD[3:6], "later: found K", *HEAD[3:6], HEAD[6]]))
    print("|" + "---|" * (len(HEAD) + 4))
    for row in earlier:
        other = later.get((row["name"], row["seed"]))
        if other:
            first, second = cells(row), cells(other)
            print(line([*first[:6], *second[2:6], first[6]]))
