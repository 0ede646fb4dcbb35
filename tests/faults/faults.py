"""What the fault tests share: commands that may be stopped at a step, and a list of what went wrong.

A sweep goes over every step if PSIFOLD_FULL_SWEEPS is set (`make test-long`), else over steps that are
spread over it: the same ones every time. PSIFOLD_UNDER is put before the command: tools/valgrind says
"valgrind …", whose exit code is no test's to expect."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

failures = []
FULL = bool(os.environ.get("PSIFOLD_FULL_SWEEPS"))
UNDER = os.environ.get("PSIFOLD_UNDER", "").split()


def every(usual, full=1):
    """How far apart the steps of a sweep are."""
    return full if FULL else usual


def say(sentence):
    print(sentence, file=sys.stderr)
    failures.append(sentence)


class Command:
    """psifold, where wanted with the library that refuses, kills or stops at the Nth call."""

    def __init__(self, psifold, library=None):
        self.psifold, self.library = psifold, library

    def start(self, *arguments, preload=None, **settings):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **settings.pop("environment", {})}
        if preload:
            environment.update(preload, LD_PRELOAD=self.library)
        return subprocess.Popen([*UNDER, self.psifold, *map(str, arguments)], env=environment, text=True,
                                errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, **settings)

    def run(self, *arguments, seconds=600 if UNDER else 60, **settings):
        """Exit code and what was printed. A run that it left must be one (psi_run_check)."""
        code, errors = finish(self.start(*arguments, **settings), seconds)
        if code == 0 and arguments[0] == "cluster" and "-o" in arguments and not settings:
            left = arguments[arguments.index("-o") + 1]
            if finish(self.start("verify", left, "--files"), seconds)[0] != 0:
                say(f"{' '.join(map(str, arguments))}: what it left is no run")
        return code, errors

    def must(self, *arguments):
        code, errors = self.run(*arguments)
        if code != 0:
            sys.exit(f"psifold {' '.join(map(str, arguments))}: exit code {code}: {errors}")

    def calls(self, folder, *arguments, **preload):
        """How many calls the command makes at which it could be stopped."""
        count = folder / "count"
        code, errors = self.run(*arguments, preload={"FAIL_WRITE_COUNT": str(count),
                                                     "FAIL_WRITE_AT": "0", "FAIL_WRITE_STOP": "1",
                                                     **preload})
        if code != 0:
            say(f"{arguments}: exit code {code}: {errors}")
        return int(count.read_text())


def finish(process, seconds=60):
    """Exit code and what was printed; "no end" if it took too long."""
    try:
        errors = process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return "no end", process.communicate()[1]
    return process.returncode, errors


def wait_until_stopped(process):
    """True once the process stopped itself, False if it ended without."""
    while True:
        with open(f"/proc/{process.pid}/stat") as info:
            state = info.read().rsplit(")", 1)[1].split()[0]
        if state in "TZ":
            return state == "T"
        time.sleep(0.002)


def fresh(folder, old=None):
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    if old:
        shutil.copytree(old, work / "run", symlinks=True)
    return work


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def tree(folder):
    """Everything below a folder, to be compared."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else path.lstat().st_mode
            for path in sorted(folder.rglob("*"))}


def run_all(*tests):
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="psifold-", dir=place) as name:
        for test in tests:
            test(pathlib.Path(name))
    if failures:
        sys.exit(f"{len(failures)} failures")
