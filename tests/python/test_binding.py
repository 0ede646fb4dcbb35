"""The C layer and its Python side say the same; errors, threads, forks, memory."""

import ctypes
import gc
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import psifold
from psifold import _native, errors
from psifold.run import ClusterOptions, cluster_options


def test_every_status_has_an_exception():
    names = _native.status_names()
    assert names[0] == "PSI_OK" and len(names) == 13
    assert list(errors.BY_STATUS) == names[1:]
    for name, error in errors.BY_STATUS.items():
        assert issubclass(error, (errors.PsifoldError, KeyboardInterrupt)), name
    # Ctrl-C must not be caught by who catches errors
    assert not issubclass(errors.Interrupted, Exception)


def test_structs_have_one_layout():
    sizes = (ctypes.c_size_t * 5)()
    _native.lib.flat_sizes(sizes)
    mine = [_native.ProgressRecord, _native.Message, _native.Step]
    mine += [_native.Columns, _native.ModelRecord]
    assert list(sizes) == [ctypes.sizeof(struct) for struct in mine]


def test_keywords_are_the_library_s_options():
    library = cluster_options()
    assert set(ClusterOptions.__annotations__) == set(library)
    for name, kind in ClusterOptions.__annotations__.items():
        words = re.findall(r"'([^']*)'|\"([^\"]*)\"", kind.__forward_arg__)
        if words:
            assert [a or b for a, b in words] == library[name]["value"].split("|")


def test_the_version_is_the_library_s():
    assert psifold.__version__ == _native.lib.psi_version().decode()


def test_everything_that_is_promised_is_there():
    for name in psifold.__all__:
        assert getattr(psifold, name) is not None
        assert name in dir(psifold)
    with pytest.raises(AttributeError):
        psifold.nothing_of_this_name  # noqa: B018


def test_import_is_quick_and_loads_nobody_else():
    code = (
        "import time, sys; t = time.process_time(); import psifold; "
        "print(time.process_time() - t, *[m for m in ('gymnasium', 'torch', 'sklearn', 'minari', "
        "'scipy', 'pandas') if m in sys.modules])"
    )
    best = 10.0
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        seconds, *others = out.stdout.split()
        assert not others
        best = min(best, float(seconds))
    assert best < 0.2


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"gama": 0.9}, psifold.UsageError, "gama"),
        ({"method": "guess"}, psifold.UsageError, r"evidence\|successor-features"),
        ({"gamma": "much"}, psifold.UsageError, "gamma takes a number"),
        ({"hidden": -1}, psifold.UsageError, "hidden"),
        ({"smooth": 3}, psifold.UsageError, "smooth"),
        ({"gamma": 1.5}, psifold.UsageError, "gamma"),
        ({"max_latent_states": 1}, psifold.LimitError, "1"),
        ({"threads": -3}, psifold.UsageError, ""),
        ({"resume": True}, psifold.UsageError, "output"),
        ({"seed": -1}, psifold.UsageError, "seed is a whole number"),
        ({"seed": 0.5}, psifold.UsageError, "seed is a whole number"),
        ({"seed": "a"}, psifold.UsageError, "seed is a whole number"),
        ({"hidden": object()}, psifold.UsageError, "neither a number nor a word"),
        ({"hidden": [3]}, psifold.UsageError, "hidden"),
        ({"budget": "soon"}, psifold.UsageError, "90s"),
    ],
)
def test_options_that_make_no_sense(columns, arguments, error, words):
    with pytest.raises(error, match=words):
        psifold.cluster(columns, **arguments)


def test_numbers_of_numpy_are_numbers(columns):
    options = {
        "max_latent_states": np.int64(9),
        "smooth": np.bool_(False),
        "gamma": np.float32(0.5),
    }
    run = psifold.cluster(columns, seed=np.uint64(7), **options)
    assert run.manifest["seed"] == 7
    kept = run.manifest["options"]
    assert (kept["max_latent_states"], kept["smooth"], kept["gamma"]) == (9, False, 0.5)


def test_a_wrong_argument_of_a_long_call_is_said_where_it_was_made():
    for wrong in ({"episodes": 2.5}, {"episodes": -1}, {"seed": -1}):
        with pytest.raises(psifold.UsageError, match="whole number"):
            psifold.generate("column-world", **wrong)
    for arguments, error in [((3.5, 1, None, None), ctypes.ArgumentError), ((), TypeError)]:
        with pytest.raises(error):
            _native.Session(1).work("flat_data_read", *arguments)


def test_a_refinement_that_fails_later_leaves_what_there_is(columns):
    with pytest.warns(UserWarning, match="what was found before is kept"):
        run = psifold.cluster(columns, max_latent_states=2)
    assert run.n_states == 3  # two, and the end
    assert run.verdict == "undetermined"
    assert "more than 2 latent states" in run.failure
    assert psifold.cluster(columns).failure is None


def test_nothing_is_left_behind_in_the_temporary_folder(columns, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = psifold.cluster(columns)
    assert len(list(tmp_path.iterdir())) == 1
    run.report(tmp_path / "page.html")
    run._repr_html_()
    with pytest.raises(psifold.LimitError):
        psifold.cluster(columns, max_latent_states=1)
    del run
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_arrays_keep_their_owners_alive():
    run = psifold.cluster(psifold.generate("column-world", episodes=100))
    labels, matrix, reward = run.labels, run.model.M[0], run.model.reward
    before = labels.copy(), matrix.toarray(), reward.copy()
    del run
    gc.collect()
    churn = [np.full(len(labels), 77, np.int32) for _ in range(50)]
    assert np.array_equal(labels, before[0]) and np.array_equal(reward, before[2])
    assert np.array_equal(matrix.toarray(), before[1]) and churn
    with pytest.raises(ValueError):
        labels[0] = 5


def test_two_threads_give_what_they_give_alone(columns, points, quick):
    def bytes_of(data):
        run = psifold.cluster(data, seed=3, threads=1, progress=False, **quick)
        names = sorted(run.manifest["files"])
        return {name: (run.folder / name).read_bytes() for name in names}

    alone = [bytes_of(columns), bytes_of(points)]
    together = [None, None]

    def work(i, data):
        together[i] = bytes_of(data)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate([columns, points])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mine, theirs in zip(alone, together, strict=True):
        assert mine.keys() == theirs.keys()
        for name in mine:
            if name != "refinements.jsonl":  # it says how long each took
                assert mine[name] == theirs[name], name


def _in_child(run, columns, queue):
    own = psifold.cluster(columns, seed=0, progress=False)
    rows = columns.observations[:100]
    queue.put((own.n_states, run.predict(rows).tolist()))


def test_a_fork_can_go_on(run, columns):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(run, columns, queue))
    child.start()
    states, labels = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert states == run.n_states
    assert labels == run.predict(columns.observations[:100]).tolist()


def test_progress_is_told_to_functions(points, quick):
    told = []
    psifold.cluster(points, seed=0, progress=told.append, **quick)
    assert told and all(isinstance(p, psifold.Progress) for p in told)
    assert any(p.phase for p in told)
    assert all(p.total == 0 or p.done <= p.total for p in told)


def test_what_a_watcher_raises_stops_the_work(points):
    def refuse(_):
        raise ZeroDivisionError("enough")

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="enough"):
        psifold.cluster(points, progress=refuse)
    assert time.monotonic() - began < 20


def test_a_bar_is_drawn(points, quick, capsys):
    psifold.cluster(points, progress=True, **quick)
    assert "%" in capsys.readouterr().err


def test_ctrl_c_keeps_what_was_found_and_goes_on(points, quick, tmp_path):
    data, options = (
        points,
        {"method": "successor-features", "threads": 2, "progress": False, **quick},
    )
    began = time.monotonic()
    whole = psifold.cluster(data, **options)
    usual = time.monotonic() - began

    def interrupt():  # once there is a refinement to keep
        kept = tmp_path / "run" / "checkpoint" / "result" / "clusters-02.npy"
        while not kept.exists():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as stopped:
        psifold.cluster(data, output=tmp_path / "run", **options)
    assert time.monotonic() - began < 3 * usual + 5
    error = stopped.value
    assert isinstance(error, psifold.Interrupted) and "resume=True" in str(error)
    assert error.folder == tmp_path / "run" and error.refinements
    assert error.labels is not None and len(error.labels) == len(data.observations)
    with pytest.raises(psifold.MissingError):
        psifold.load(error.folder)
    resumed = psifold.cluster(data, output=error.folder, resume=True, **options)
    assert np.array_equal(resumed.labels, whole.labels)
    assert resumed.n_states == whole.n_states


def test_a_budget_ends_in_time_and_can_be_gone_on_from(points, quick, tmp_path):
    whole = psifold.cluster(points, seed=0, threads=1, **quick)
    assert not whole.stopped
    with pytest.raises(psifold.Interrupted, match="before the first refinement"):
        psifold.cluster(points, threads=1, output=tmp_path / "run", budget=0.001, **quick)
    long = {**quick, "representation_steps": 10_000_000}
    run = psifold.cluster(points, threads=1, output=tmp_path / "long", budget="3s", **long)
    assert run.stopped and run.verdict != "certain" and "budget" in str(run)
    again = psifold.cluster(points, threads=1, output=tmp_path / "run", resume=True, **quick)
    assert not again.stopped and np.array_equal(again.labels, whole.labels)


def test_ctrl_c_in_a_prediction_leaves_the_run_usable(points_run, points):
    many = np.tile(points.observations, (200, 1))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            points_run.predict(many)
    assert len(points_run.predict(points.observations[:10])) == 10


def test_a_thousand_fits_leak_nothing(monkeypatch):
    if os.path.isdir("/dev/shm"):  # the disk is not what is tried here
        monkeypatch.setattr("tempfile.tempdir", "/dev/shm")
    data = psifold.generate("column-world", episodes=20, seed=0)

    def fit():
        run = psifold.cluster(data, threads=1, progress=False)
        run.predict(data.observations)
        run.plan()

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    for _ in range(100):  # pools and caches fill
        fit()
    before = resident()
    for _ in range(1000):
        fit()
    assert resident() - before < 2 << 20, f"{(resident() - before) / 1e6} MB more"


def test_openblas_keeps_to_itself():
    """Loading psifold starts no thread, and numpy keeps its own."""
    code = (
        "import os, psifold, psifold._native; print(len(os.listdir('/proc/self/task')));"
        "print(len(os.sched_getaffinity(0)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    threads, processors = map(int, out.stdout.split())
    assert threads == 1
    assert processors == len(os.sched_getaffinity(0))
