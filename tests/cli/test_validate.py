"""`synthbench validate`: every fault at once, with its location and what would be right."""

import re
from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded


def test_a_valid_file_is_summarised(project: Project) -> None:
    called = project.call("validate", project.file)
    assert (called.code, called.err) == (0, "")
    *models, last = called.out.splitlines()
    assert last == f"{project.file}: valid: 2 variants, seeds 0, 1"
    facts = "fp32, 64 positions, 114 tokens"
    of_models = [line.partition(": ")[2] for line in models]
    assert of_models == [f"bert, 3 layers, {facts}", f"bert, 1 of 3 layers, {facts}"]


def test_overrides_are_validated_with_the_file(project: Project) -> None:
    called = project.call(
        "validate", project.file, "--seeds", "3,4", "--variant", "gold-only", "--set", "train.batch_size=4"
    )
    assert (called.code, called.err) == (0, "")
    assert called.out.endswith("valid: 1 variant, seeds 3, 4\n")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("batch_size: 8\n    l", "batchsize: 8\n    l", 14, "unknown key; did you mean 'batch_size'?"),
        ("rate: 0.02", 'rate: "0.02"', 15, 'train.learning_rate: must be a number, is "0.02"'),
        ("rate: 0.02", "rate: .nan", 15, "train.learning_rate: must be a finite number, is NaN"),
        ("method: augsbert", "method: augsbrt", 25, "unknown method 'augsbrt'; did you mean 'augsbert'?"),
        ("trainer: bi-enc", "trainer: bi-anc", 12, "'bi-ancoder'; did you mean 'bi-encoder'?"),
        ("evaluator: sts, tasks", "evaluator: st, tasks", 20, "did you mean 'sts'?"),
        ("tasks: [test]", "tasks: [tset]", 20, "no source is called 'tset'; did you mean 'test'?"),
        ("{gold: gold, dev", "{gld: gold, dev", 26, "unknown role of the method; did you mean 'gold'?"),
        ("name: bm25", "name: bm26", 27, "bm25"),
        ("k: [1, 2]", "k: [1, 0]", 34, "sampler.k: must be at least 1, is 0"),
        ("variants:\n", "variants:\n  idle: {train.batch_size: 8}\n", 23, "variants.idle: patches nothing"),
        ("seeds: [0, 1]", "seeds: []", 7, "seeds: "),
    ],
)  # fmt: skip
def test_a_fault_is_reported_in_one_line_with_file_line_and_remedy(
    project: Project, old: str, new: str, line: int, message: str
) -> None:
    project.change(old, new)
    called = project.call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    assert called.errors
    assert all(error.startswith(f"{project.file}:{line}: ") for error in called.errors)
    assert message in called.errors[0]


def test_all_faults_are_printed_at_once(project: Project) -> None:
    project.change("method: augsbert", "method: augsbrt")
    project.change("max_steps: 8\n    eval", 'max_steps: "8"\n    eval')
    project.change("seeds: [0, 1]", "seeds: [0, 1]\nsedes: 3")
    called = project.call("validate", project.file)
    assert called.code == 2
    assert [error.removeprefix(f"{project.file}:").split(":")[0] for error in called.errors] == [
        "8",
        "17",
        "26",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "train.batch_sise=3"), "unknown key; did you mean 'batch_size'?"),
        (("--set", "seeds"), "--set seeds: must read PATH=VALUE"),
        (("--set", "seeds=[1"), "--set seeds=[1"),
        (("--seeds", "1;2"), "--seeds 1;2: must be whole numbers with commas"),
        (("--seeds", "3,4,3"), "--seeds: a seed is listed twice; each is one run"),
        (("--seeds", ""), "must be whole numbers"),
        (("--variant", "augsbrt"), "--variant augsbrt: no such variant"),
        (("--profile", "huge"), "--profile huge: no such file"),
        (
            ("--profile", "profiles/tiny.yaml"),
            "must be a name alone; --profile tiny reads ",
        ),
    ],
)
def test_faults_of_overrides_look_like_faults_of_files(
    project: Project, arguments: tuple[str, str], message: str
) -> None:
    called = project.call("validate", project.file, *arguments)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert message in called.errors[0]


def test_validate_writes_nothing(project: Project) -> None:
    before = sorted(project.folder.iterdir())
    assert project.call("validate", project.file).code == 0
    assert sorted(project.folder.iterdir()) == before
    assert not project.home.exists()


def test_data_and_models_are_checked_with_the_file(project: Project, bert: Path) -> None:
    project.change("learning_rate: 0.02", "learning_rate: 2")
    project.change("num_layers: 1", "num_layers: 9")
    project.change(f'base: {{model: "{bert}", static', "base: {model: ./nowhere, static")
    (project.folder / "gold.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    (project.folder / "dev.tsv").write_bytes(b"sentence1\tsentence2\tscore\na\tb\t0.5\n\xe9\tb\t0.5\n")
    text = "sentence1\tsentence2\tscore\na\tb\tnan\na\tb\t1.5\n\tb\t0.5\n"
    (project.folder / "test.tsv").write_text(text, encoding="utf-8")
    called = project.call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    worded(
        [error.removeprefix(f"{project.file}:").replace(f"{project.folder}/", "") for error in called.errors],
        "train.learning_rate",
        "train.base.model",
        "data.silver.cross_encoder.base.num_layers",
        str(bert),
        "num_layers",
        "sources.gold",
        "gold.tsv:1",
        "'sentence1'",
        "sentence1",
        "'sentence2'",
        "sentence2",
        "'score'",
        "score",
        "sources.dev",
        "dev.tsv:3",
        "UTF-8",
        "0xE9",
        "sources.test",
        "test.tsv:2",
        "NaN",
        "test.tsv:3",
        "1.5",
        "test.tsv:4",
        "`skip_blank",
        "text",
    )


def test_a_missing_file_and_a_sample_larger_than_its_source_are_named(project: Project) -> None:
    (project.folder / "gold.tsv").unlink()
    project.change("split: dev}", "split: dev, sample: {size: 31}}")
    errors = project.call("validate", project.file).errors
    worded([error.split(": ", 2)[2] for error in errors], f"{project.folder}/gold.tsv", "dev.tsv", "31", "30")


def test_a_faulty_file_that_two_parts_read_is_reported_once(project: Project) -> None:
    project.change("{file: dev.tsv, kind", "{file: gold.tsv, kind")
    (project.folder / "gold.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t7\n", encoding="utf-8")
    assert len(project.call("validate", project.file).errors) == 1


def test_a_test_set_is_refused_in_every_training_role(project: Project) -> None:
    project.change("split: dev", "split: test")
    called = project.call("validate", project.file)
    assert called.code == 2
    worded(
        [error.partition(": ")[2] for error in called.errors],
        "train.selection.sources.0",
        "'dev'",
        "test",
        "data.silver.sources.dev",
    )


TASKS = (
    "test: {file: test.tsv, kind: scored_pair, split: test}",
    "test: {task: STSb}\n  more: {task: STS12}\n  far: {task: SICK-R, origin: hub}",
)


def test_tasks_are_not_checked_without_a_folder_or_on_the_hub(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    project.change(*TASKS)
    project.change("{file: dev.tsv, kind", '{file: "data:dev.tsv", kind')
    project.change("tasks: [test]", "tasks: [test, far], if_found: [more]")
    called = project.call("validate", project.file)
    assert (called.code, called.err) == (0, "")
    assert [line for line in called.out.splitlines()[:-1] if not line.startswith("model ")] == [
        "note: not looked at: dev (no data folder: give --data or set SYNTHBENCH_DATA)",
        "note: not looked at: test, more, far (on the hub)",
    ]


def test_folders_of_tasks_are_read(project: Project) -> None:
    project.change(*TASKS)
    project.change("tasks: [test]", "tasks: [test, far], if_found: [more]")
    folder = project.folder / "data" / "STSBenchmark"
    folder.mkdir(parents=True)
    (folder / "sts-test.csv").write_text("one\tline\n", encoding="utf-8")
    called = project.call("validate", project.file, "--data", "data")
    assert called.code == 2
    worded(called.errors, f"{project.file}:6", "sources.test", "data/STSBenchmark/sts-test.csv:1")
    project.change("test: {task: STSb}", "test: {file: test.tsv, kind: scored_pair}")
    assert (
        "note: more: no data found, left out\n"
        in project.call("validate", project.file, "--data", "data").out
    )


def test_a_missing_data_folder_is_reported_in_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTHBENCH_DATA", "/nowhere")
    assert project.call("validate", project.file).code == 0, "no source needs it"
    project.change(*TASKS)
    project.change("tasks: [test]", "tasks: [test, far, more]")
    assert project.call("validate", project.file).errors == ["SYNTHBENCH_DATA: no such folder: /nowhere"]
    called = project.call("validate", project.file, "--data", "/elsewhere")
    assert called.errors == ["--data: no such folder: /elsewhere"]
    called = project.call("validate", project.file, "--data", "a" * 300)
    assert called.errors == [f"--data: can't be read: File name too long: {'a' * 300}"]
    project.change("seeds:", "corpora: {folder: here}\nseeds:")
    called = project.call("validate", project.file)
    worded(called.errors, f"{project.file}:9", "corpora.folder", f"{project.folder}/here")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{file: dev.tsv,", "{taks: STSb,", "`documents:` or `sandbox:`; did you mean 'task'?"),
        ("{file: dev.tsv,", "{task: STSb, file: dev.tsv,", "file: does not go with the other keys here"),
        ("split: dev}", "split: dev, columns: {score: 1.5}}", "must be a whole number or text, is 1.5"),
        ("split: dev}", "split: dev, columns: {score: -1}}", "columns.score: must be at least 0, is -1"),
        ("split: dev}", "split: dev, columns: [0]}", "columns: must be a mapping, is a list"),
        ("split: dev}", "split: dev, score_range: [0]}", "score_range.1: missing; the list is too short"),
        ("split: dev}", "split: dev, score_range: [0, 1, 2]}", "score_range: must hold at most 2 values"),
        ("{name: bm25, k: 1}", "{k: 1}", "sampler: needs the key 'name'"),
        ("num_layers: 1", "revision: main", 'full commit hash (40 hexadecimal digits), is "main"'),
        ("num_layers: 1", f'revision: "{"0" * 40}"', "has no revision; only hub models have commits"),
        ("{data.silver.sampler.k: [1, 2]}", "[]", "select.over: must be a mapping, is a list"),
        ("{data.silver.sampler.k: [1, 2]}", "{}", "select.over: must not be empty"),
        ("over: {", "ovr: {", "select.ovr: unknown key; did you mean 'over'?"),
        ("threads: 1", "threads: yes please", "threads: must be a whole number, is \"yes please\""),
        ("experiment: small", "experiment: a b", 'experiment: must be of letters, digits, _ and -, is "a b"'),
        ("evaluations: 2", "precision: bf61", "is \"bf61\"; did you mean 'bf16'?"),
    ],
)  # fmt: skip
def test_messages_are_in_plain_words(project: Project, old: str, new: str, message: str) -> None:
    project.change(old, new)
    assert any(error.endswith(message) for error in project.call("validate", project.file).errors)


def test_what_a_profile_replaces_is_checked_too(project: Project) -> None:
    (project.folder / "profiles").mkdir()
    (project.folder / "profiles" / "tiny.yaml").write_text(
        "substitute: {models: {'*': sandbox/encoder}}\n", encoding="utf-8"
    )
    called = project.call("validate", project.file, "--profile", "tiny")
    assert called.code == 0, called.err
    assert "note: without --profile tiny: valid, too" in called.out.splitlines()

    (model,) = set(re.findall(r'model: (".*?")', project.file.read_text(encoding="utf-8")))
    project.change(model, '"./missing"')
    called = project.call("validate", project.file, "--profile", "tiny")
    assert called.code == 0, called.err
    lacks = [line for line in called.out.splitlines() if line.startswith("note: without --profile tiny: ")]
    assert len(lacks) == 2 and all("missing: no such folder" in line for line in lacks)
    assert called.out.splitlines()[-1].startswith(f"{project.file}: valid with --profile tiny")
