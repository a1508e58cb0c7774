"""`synthbench plan`: shows a run's work and missing inputs, and spends nothing."""

import re
import shutil
from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded


def test_every_stage_is_listed_once_and_nothing_is_written(project: Project) -> None:
    called = project.call("plan", project.file, "--stages")
    assert (called.code, called.err) == (0, "")
    store, *lines = called.out.splitlines()
    assert store == f"store: {project.home / 'store'}"
    assert ["id", "stage", "runs", "state", "why"] in [line.split() for line in lines]
    assert lines[-1] == "19 stages for 4 runs: 19 to run"
    stages = [line for line in lines if re.match(r"[0-9a-f]{8} .* to run", line)]
    assert len(stages) == 19
    assert len({line.split()[0] for line in stages}) == 19
    assert not project.home.exists()


def test_the_labeller_is_trained_once_for_all_seeds_and_values(project: Project) -> None:
    listed = project.call("plan", project.file, "--stages").out
    stages = [line[10:] for line in listed.splitlines() if re.match(r"[0-9a-f]{8} ", line)]
    assert sum(stage.startswith("train cross_encoder") for stage in stages) == 1
    assert sum(stage.startswith("generate augsbert") for stage in stages) == 2
    assert sum(stage.startswith("select augsbert") for stage in stages) == 2


def planned(out: str) -> str:
    """Return the output after the lines on files read and written."""
    lines = out.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("store: ", "reads outside ")))


def test_the_total_comes_first_then_each_kind_and_stages_only_on_demand(project: Project) -> None:
    lines = planned(project.call("plan", project.file).out).splitlines()
    assert re.match(
        r"time: about .+ on this CPU, 1 thread, .+ measured, if nothing else runs on it", lines[0]
    )
    assert re.match(r"time: about .+ on a100-40gb \(arithmetic .+, not measured\)", lines[1])
    kinds = [line for line in lines if re.match(r"(source|train|evaluate|generate|select|exclude) ", line)]
    assert len(kinds) == len({line.split("  ")[0] for line in kinds}) == 7
    assert all(re.search(r"about \d+ s$", line) for line in kinds)
    assert not [line for line in lines if re.match(r"[0-9a-f]{8} ", line)]


def test_costs_that_can_not_be_estimated_are_unknown(project: Project) -> None:
    commit = "0" * 40
    model = f'model: some-org/some-model, revision: "{commit}"'
    text = project.file.read_text(encoding="utf-8")
    project.file.write_text(re.sub(r'model: "[^"]*"', model, text), encoding="utf-8")
    out = planned(project.call("plan", project.file).out)
    assert out.startswith("time: at least ")
    assert "unknown: time of 1 × train cross-encoder: the size of some-org/some-model, 1 layers" in out
    (labeller,) = (line for line in out.splitlines() if line.startswith("train cross-encoder"))
    assert labeller.endswith("unknown")
    assert re.search(
        r"generate augsbert:\n  at most 120 pairs to label, .* of some-org/some-model",
        re.sub(r" for augsbert.*:", ":", project.call("plan", project.file, "--stages").out),
    )


def test_estimates_use_the_times_of_past_stages(project: Project) -> None:
    assert project.call("run", project.file, "--variant", "gold-only", "--seeds", "0").code == 0
    out = project.call("plan", project.file, "--variant", "gold-only", "--seeds", "1").out
    first = planned(out).splitlines()[0]
    assert "; 2 of 2 stages as such stages took before" in first
    done = project.call("plan", project.file, "--variant", "gold-only", "--seeds", "0").out
    assert planned(done).startswith("time: none, nothing is to run\n")


def rows(out: str) -> list[list[str]]:
    """Return the cells of the summary by row."""
    return [
        line.split()
        for line in out.split("\n\n")[2].splitlines()
        if not line[0].isdigit() and not line.startswith(("model ", "note: "))
    ]


def test_each_row_has_its_sums_including_shared_stages(project: Project) -> None:
    heading = ["row", "runs", "to", "run", "cached"]
    assert rows(project.call("plan", project.file).out) == [
        heading,
        ["gold-only", "2", "8", "0"],
        ["augsbert", "2", "15", "0"],
    ]
    assert project.call("run", project.file, "--variant", "gold-only", "--seeds", "0").code == 0
    assert rows(project.call("plan", project.file).out) == [
        heading,
        ["gold-only", "2", "2", "6"],
        ["augsbert", "2", "11", "4"],
    ]


def test_plan_names_bases_whose_training_sets_are_unknown(project: Project) -> None:
    unknown = [line for line in project.call("plan", project.file).out.splitlines() if "are unknown" in line]
    assert len(unknown) == 1
    assert unknown[0].startswith("note: ")
    assert unknown[0].endswith(": its training sets are unknown, so no table marks what it has seen")


def test_plan_and_validate_name_what_a_profile_replaced(project: Project) -> None:
    (project.folder / "profiles").mkdir()
    (project.folder / "profiles" / "sandbox.yaml").write_text(
        "substitute:\n  models: {'*': sandbox/encoder}\n  tasks: {'STSb/*': {sandbox: pairs, size: 20}}\n",
        encoding="utf-8",
    )
    project.change("dev: {file: dev.tsv, kind: scored_pair, split: dev}", "dev: {task: STSb, split: dev}")
    project.change("test: {file: test.tsv, kind: scored_pair, split: test}", "test: {task: STSb}")
    for command in ("plan", "validate"):
        notes = [
            line
            for line in project.call(command, project.file, "--profile", "sandbox").out.splitlines()
            if line.startswith("note: --profile sandbox: ")
        ]
        assert notes[0] == "note: --profile sandbox: STSb/dev, STSb/test -> sandbox pairs"
        assert notes[1].endswith(" -> sandbox/encoder")
        assert len(notes) == 2


def test_overrides_change_the_plan(project: Project) -> None:
    called = project.call("plan", project.file, "--variant", "gold-only", "--seeds", "5")
    assert called.out.splitlines()[-1] == "6 stages for 1 run: 6 to run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no data folder is set: point --data or SYNTHBENCH_DATA at a folder that holds STSBenchmark/"),
        (("--data", "."), "no STSBenchmark/ with sts-X.csv for X = test in ."),
    ],
)
def test_missing_data_are_named_with_their_files_and_where_to_get_them(
    project: Project, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    project.change(
        "test: {file: test.tsv, kind: scored_pair, split: test}", "test: {task: STSb, origin: folder}"
    )
    called = project.call("plan", project.file, *arguments)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert re.search(r"small\.yaml:\d+: sources\.test: STSb test: ", called.errors[0])
    assert message in called.errors[0]
    assert "get it with" in called.errors[0]


@pytest.mark.parametrize(
    ("folder", "message"),
    [("/nowhere", "no such folder: /nowhere"), ("small.yaml", "is no folder: small.yaml")],
)
def test_a_missing_data_folder_is_reported_in_one_line(project: Project, folder: str, message: str) -> None:
    called = project.call("plan", project.file, "--data", folder)
    assert (called.code, called.errors) == (2, [f"--data: {message}"])


def test_everything_missing_is_named_at_once(project: Project) -> None:
    (project.folder / "gold.tsv").unlink()
    (project.folder / "dev.tsv").unlink()
    (project.folder / "dev.tsv").mkdir()
    called = project.call("plan", project.file)
    assert called.code == 2
    assert [error.split(": ")[1] for error in called.errors] == ["sources.gold", "sources.dev"]
    assert "is a folder, not a file" in called.errors[1]


def test_a_model_folder_without_weights_is_reported(project: Project, bert: Path) -> None:
    bare = project.folder / "bare"
    shutil.copytree(bert, bare)
    (bare / "model.safetensors").unlink()
    project.change(f'base: {{model: "{bert}", static', f'base: {{model: "{bare}", static')
    called = project.call("plan", project.file)
    assert called.code == 2
    worded(called.errors, f"{project.file}:13", "train.base.model", str(bare), "pytorch_model*.bin")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("/nowhere/model", "/nowhere/model: no such folder"),
        ("package:nowhere/model", "no installed package 'nowhere'"),
    ],
)
def test_a_missing_model_is_reported(project: Project, bert: Path, model: str, message: str) -> None:
    project.change(f'base: {{model: "{bert}", static', f'base: {{model: "{model}", static')
    called = project.call("plan", project.file)
    assert called.code == 2
    assert message in called.errors[0]


def test_plan_works_without_a_model_that_only_the_hub_has_but_run_does_not(
    project: Project, bert: Path
) -> None:
    project.change(f'base: {{model: "{bert}", static', 'base: {model: "some-org/some-model", static')
    called = project.call("plan", project.file)
    assert (called.code, called.err) == (0, "")
    (line,) = (line for line in called.out.splitlines() if line.startswith("not at hand: "))
    assert "some-org/some-model: neither a folder nor in the local hub cache" in line
    assert called.out.startswith("store: ")
    assert "unknown: time of" in called.out
    refused = project.call("run", project.file)
    assert refused.code == 2
    (error,) = refused.errors
    assert error.startswith("HF_HUB_OFFLINE is set, and this machine lacks model some-org/some-model.")


def test_plan_works_without_a_hub_file_and_names_what_is_unknown(project: Project) -> None:
    assert project.call("run", project.file, "--variant", "gold-only", "--seeds", "0").code == 0
    project.change("gold: {file: gold.tsv,", "gold: {hub: some-org/data, file: gold.tsv,")
    called = project.call("plan", project.file, "--variant", "gold-only", "--seeds", "0")
    assert (called.code, called.err) == (0, "")
    (line,) = (line for line in called.out.splitlines() if line.startswith("not at hand: "))
    assert line.startswith("not at hand: sources.gold: some-org/data: ")
    assert "`synthbench fetch FILE`" in line
    # dev and test are cached; stages that depend on gold may or may not be.
    (row,) = (line for line in called.out.splitlines() if line.startswith("gold-only "))
    assert row.endswith("at least 2")
    refused = project.call("run", project.file, "--variant", "gold-only", "--seeds", "0")
    assert refused.code == 2
    (error,) = refused.errors
    assert error.startswith("HF_HUB_OFFLINE is set, and this machine lacks data set some-org/data.")


def test_stages_with_missing_inputs_are_never_counted_as_cached(project: Project) -> None:
    assert project.call("run", project.file, "--variant", "gold-only", "--seeds", "0").code == 0
    project.change("gold: {file: gold.tsv,", "gold: {hub: some-org/data, file: gold.tsv,")
    listed = project.call("plan", project.file, "--variant", "gold-only", "--seeds", "0", "--stages").out
    states = {line.split()[1]: line for line in listed.splitlines() if re.match(r"[0-9a-f]{8} ", line)}
    assert " unknown " in states["train"]
    assert " cached " not in states["train"] + states["evaluate"]


def test_work_on_missing_inputs_is_unknown_without_past_stages(project: Project) -> None:
    project.change("gold: {file: gold.tsv,", "gold: {hub: some-org/data, file: gold.tsv,")
    project.change("max_steps: 8", "epochs: 1")
    out = planned(project.call("plan", project.file, "--variant", "gold-only", "--seeds", "0").out)
    assert out.startswith("time: at least ")
    assert "unknown: time of 1 × train bi-encoder: the amount of its work" in out
