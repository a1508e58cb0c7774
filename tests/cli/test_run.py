"""`synthbench run` with what users get wrong: one clear line, exit code 2, and a store that stays usable."""

import contextlib
import errno
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_cache import SENTENCES
from small_experiment import Project
from wording import refused, worded

from synthbench.engine.store import Store
from synthbench.stages.training import Train

RUN = "synthbench.pipeline.experiment_run.planned"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"a man\ta dog\t1.5", "score 1.5 is outside 0 to 1"),
        (b"a man\ta dog\t-0.1", "score -0.1 is outside 0 to 1"),
        (b"a man\ta dog\tnan", "score is NaN; a number from 0 to 1 is needed"),
        (b"a man\ta dog\tinf", "score 'inf' is not a number"),
        (b"a man\ta dog\tgood", "score 'good' is not a number"),
        (b"\ta dog\t0.5", "sentence1 is empty"),
        (b"a man\t  \t0.5", "sentence2 is empty"),
        (b"a m\xe4n\ta dog\t0.5", "not UTF-8 (byte 0xE4 at position 4 of the line)"),
        (b"a man\t0.5", "2 columns, 3 in line 1"),
    ],
)
def test_faulty_data_are_named_by_file_and_line_before_any_work(
    project: Project, row: bytes, message: str
) -> None:
    test = project.folder / "test.tsv"
    lines = test.read_bytes().split(b"\n")
    test.write_bytes(b"\n".join([*lines[:3], row, *lines[4:]]))
    called = project.call("run", project.file)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert called.errors[0].startswith(f"{test}:4: ")
    assert message in called.errors[0]
    assert not [stage for stage in called.executed if not stage.startswith(("source", "exclude"))]
    test.write_bytes(b"\n".join(lines))
    assert " to run" in project.call("plan", project.file).out


def test_a_gold_file_one_line_short_is_named(project: Project) -> None:
    folder = project.folder / "data" / "STS13-en-test"
    folder.mkdir(parents=True)
    for part, size in (("FNWN", 189), ("headlines", 750), ("OnWN", 561)):
        pairs = "".join(f"{SENTENCES[0]}\t{SENTENCES[1]}\n" for _ in range(size))
        (folder / f"STS.input.{part}.txt").write_text(pairs, encoding="utf-8")
        (folder / f"STS.gs.{part}.txt").write_text("2.5\n" * (size - (part == "OnWN")), encoding="utf-8")
    project.change("test: {file: test.tsv, kind: scored_pair, split: test}", "test: {task: STS13}")
    called = project.call("run", project.file, "--data", "data")
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert "STS.gs.OnWN.txt" in called.errors[0]
    assert "560" in called.errors[0]
    assert "561" in called.errors[0]


def test_a_sample_larger_than_its_source_is_refused(project: Project) -> None:
    project.change("gold.tsv, kind: scored_pair", "gold.tsv, kind: scored_pair, sample: {size: 61}")
    called = project.call("run", project.file)
    assert called.code == 2
    worded(called.errors, "gold.tsv", "61", "60")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", b"{broken", "config.json"),
        ("tokenizer.json", b"{broken", "can't be loaded: "),
        ("tokenizer.json", None, "looked for tokenizer.json"),
        ("model.safetensors", b"broken" * 9, "can't be loaded: "),
    ],
)
def test_a_damaged_model_is_reported_in_one_line(
    project: Project, bert: Path, file: str, content: bytes | None, message: str
) -> None:
    damaged = project.folder / "damaged"
    shutil.copytree(bert, damaged)
    (damaged / file).unlink()
    if content is not None:
        (damaged / file).write_bytes(content)
    base = f'{{model: "{bert}", static: true, static_dimension: 16}}'
    project.change(base, f'{{model: "{damaged}", static: true}}')
    called = project.call("run", project.file, "--variant", "gold-only", "--seeds", "0")
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert re.match(
        rf"(train gold-only seed 0|.+:\d+: train\.base\.model): {re.escape(str(damaged))}", called.errors[0]
    )
    assert message in called.errors[0]


def test_force_must_match_a_stage(project: Project) -> None:
    called = project.call("run", project.file, "--force", "trian")
    assert called.code == 2
    worded(called.errors, "--force", "'train'")


@pytest.mark.parametrize("home", ["small.yaml", "small.yaml/inside", "/proc/nowhere"])
def test_an_unusable_home_is_named(project: Project, home: str) -> None:
    elsewhere = Project(project.folder, project.folder / home)
    called = elsewhere.call("run", project.file)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert called.errors[0].startswith(f"{project.folder / home}/store: the store can't be made: ")
    assert "set SYNTHBENCH_HOME" in called.errors[0]


@pytest.mark.parametrize("output", ["small.yaml", "small.yaml/inside", "/proc/nowhere"])
def test_an_unwritable_output_is_named_before_any_work(project: Project, output: str) -> None:
    called = project.call("run", project.file, "--output", output)
    assert (called.code, called.out, called.executed) == (2, "", [])
    assert len(called.errors) == 1
    assert called.errors[0].startswith(f"can't write the report to {output}/small: ")
    assert called.errors[0].endswith("; name another folder with --output")


def test_an_unreachable_tracking_server_is_named_before_any_work(project: Project) -> None:
    environment = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    called = Project(project.folder, project.home, environment).call("run", project.file)
    assert (called.code, called.out, called.executed) == (2, "", [])
    worded(called.errors, "MLflow", "http://127.0.0.1:9", "MLFLOW_TRACKING_URI")


def test_a_full_disk_is_reported_in_one_line_and_leaves_no_artifact(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Store, "commit", fail)
    called = project.call("run", project.file)
    assert (called.code, called.out) == (2, "")
    worded(called.errors, f"{project.home}/store")
    assert not list((project.home / "store").glob("artifacts/*/*"))
    monkeypatch.undo()
    assert "19 to run" in project.call("plan", project.file).out


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            yield folder
            # Lazy, since processes may still have files open there.
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
            return
    pytest.skip("needs the right to mount a file system")


def test_a_really_full_disk_is_reported(project: Project, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(48 * 1024))
    home = small_disk / "home"
    called = Project(project.folder, home).call("run", project.file)
    assert (called.code, called.out) == (2, "")
    assert set(called.errors) == {
        f"no space left on the disk of {home}/store; free some and run the same command again"
    }


def test_invalid_data_of_one_row_end_the_whole_run(project: Project) -> None:
    lines = (project.folder / "gold.tsv").read_text(encoding="utf-8").splitlines()
    equal = [lines[0], *("\t".join((*line.split("\t")[:2], "0.5")) for line in lines[1:])]
    (project.folder / "gold.tsv").write_text("\n".join(equal) + "\n", encoding="utf-8")
    called = project.call("run", project.file)
    assert (called.code, called.out) == (2, "")
    worded(called.errors, "augsbert", "'gold'", "split", "'train'", "0.5", "pairs")
    assert "nothing was generated or trained, in any row" in called.err
    assert not [stage for stage in called.executed if stage.startswith(("train", "generate"))]


def test_an_internal_error_has_exit_code_3_and_preserves_finished_stages(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Train, "run", fail)
    called = project.call("run", project.file, "--variant", "gold-only", "--seeds", "0")
    assert (called.code, called.out) == (3, "")
    assert "ZeroDivisionError: a bug" in called.err
    assert "left out: evaluate gold-only seed 0 on test: it depends on a failed stage" in called.err
    assert "4 stages executed, 0 reused, 1 failed, 1 left out" in called.err


def test_a_run_prints_before_it_loads_libraries(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RUN, interrupt)
    store, reading, *_ = project.call("run", "small.yaml").err.splitlines()
    assert store.endswith(f" store: {project.home / 'store'}")
    assert reading.endswith(" reading small.yaml")


def test_interruption_says_how_to_resume(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Train, "run", interrupt)
    called = project.call("run", "small.yaml", "--set", "table.caption=two words")
    assert (called.code, called.out) == (130, "")
    last = called.err.splitlines()[-1]
    assert last.startswith("interrupted; finished work is kept. To resume: ")
    assert last.endswith("synthbench run small.yaml --set 'table.caption=two words'")


@pytest.mark.parametrize(("command", "after"), [("run", "To resume: "), ("validate", "interrupted")])
def test_termination_is_an_interruption_with_its_own_exit_code(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str, after: str
) -> None:
    def terminate(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    former = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("synthbench.config.load.load_experiment" if command == "validate" else RUN, terminate)
    called = project.call(command, "small.yaml")
    assert (called.code, called.out) == (143, "")
    assert after in called.err.splitlines()[-1]
    assert signal.getsignal(signal.SIGTERM) == former


def test_equal_variants_are_computed_once_and_noted(project: Project) -> None:
    project.change(
        "variants:\n",
        "variants:\n  twin: {data.copy: {source: gold}}\n  twin2: {data.copy: {source: gold}}\n",
    )
    called = project.call("plan", project.file)
    assert "note: twin2 is the same as twin; it is shown once" in called.out


def test_a_run_names_its_first_and_last_steps(project: Project) -> None:
    called = project.call("run", project.file, "--variant", "gold-only", "--seeds", "0")
    said = [line[9:] for line in called.err.splitlines()]
    first = said.index("running source gold [1/6]")
    assert [line for line in said[:first] if not line.startswith("reads outside ")] == [
        f"store: {project.home / 'store'}",
        f"reading {project.file}",
        "small: planning",
        "checking report folder and tracking",
        "checking the store for 6 stages",
    ]
    last = said.index("6 stages executed, 0 reused")
    assert said[last + 1 :] == [
        "collecting results and checking training data",
        "making tables, figures and the page",
        "tracking in MLflow",
    ]


def test_more_jobs_than_gpus_are_refused_in_one_line_before_any_work(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = "synthbench.estimates.side_by_side.local_gpus"
    monkeypatch.setattr(here, lambda _: ("GPU-ab", "GPU-cd"))
    on_gpus = ("--set", "runtime.device=auto")
    called = project.call("run", project.file, "--jobs", "3", *on_gpus)
    assert called.code == 2
    (line,) = (line for line in called.err.splitlines() if line.startswith("error: "))
    worded(line, "--jobs 3", "2 GPUs", "use --jobs 2", "runtime.resources.", "0.5")
    assert not list((project.home / "store").glob("artifacts/*"))
    assert "side by side with --jobs, at most: " in project.call("plan", project.file, *on_gpus).out


def test_an_address_implies_ray_and_needs_a_cluster() -> None:
    from synthbench.cli.run import _executor

    assert _executor(None, None) is None
    assert _executor(None, "auto") == "ray"
    assert _executor("ray", "auto") == "ray"
    with refused("--address auto", "--executor local"):
        _executor("local", "auto")


def test_a_quiet_run_prints_its_results_only(project: Project) -> None:
    called = project.call("run", project.file, "--variant", "gold-only", "--seeds", "0", "--quiet")
    assert (called.code, called.err) == (0, "")
    assert "gold-only" in called.out
    assert project.call("run", project.file, "--quiet", "--verbose").errors == [
        "--quiet and --verbose: give one of them"
    ]
