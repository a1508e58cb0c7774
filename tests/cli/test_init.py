"""`synthbench init`: files to start from."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from small_experiment import Project
from wording import worded

from synthbench.cli.init import STARTER
from synthbench.cli.shipped_experiments import PACKAGE, papers
from synthbench.cli.shipped_experiments import PAPERS as PAPERS_FOLDER
from synthbench.data.contamination import TestIndex, search
from synthbench.sources.description import Roots
from synthbench.sources.guessing import guess
from synthbench.sources.models import FileSource

PAPERS = ("augsbert", "dino", "syncse")


def test_a_new_study_is_valid_and_named_after_its_folder(project: Project) -> None:
    called = project.call("init", "reviews")
    assert (called.code, called.err) == (0, "")
    assert "synthbench run reviews/study.yaml --profile sandbox" in called.out
    for arguments in (
        ("study.yaml",),
        ("my_method.yaml", "--allow-code"),
        ("my_llm_method.yaml", "--allow-code"),
    ):
        checked = project.call("validate", f"reviews/{arguments[0]}", "--profile", "sandbox", *arguments[1:])
        assert (checked.code, checked.err) == (0, "")
    assert "experiment: reviews\n" in (project.folder / "reviews" / "study.yaml").read_text(encoding="utf-8")


def test_with_an_invalid_folder_name_the_study_keeps_the_starters_name(project: Project) -> None:
    assert project.call("init", "my reviews").code == 0
    study = (project.folder / "my reviews" / "study.yaml").read_text(encoding="utf-8")
    assert "experiment: my_study\n" in study


def test_the_real_study_names_what_is_missing_in_one_line(project: Project) -> None:
    """Without the profile the study asks a real LLM, whose key is in a variable."""
    project.call("init", "study")
    text = (project.folder / "study" / "study.yaml").read_text(encoding="utf-8")
    assert "OPENAI_API_KEY" in text
    assert "sandbox" not in "".join(line.partition("#")[0] for line in text.splitlines())


def test_the_example_s_test_set_shares_no_sentence_with_its_other_data() -> None:
    def rows(file: str, role: str) -> list[tuple[str, ...]]:
        settings = guess(STARTER / file, role, others=("test",)).settings
        source = FileSource.model_validate(settings, strict=False)
        return [record.texts() for record in source.read(Roots()).records]

    index = TestIndex({"test": rows("test.tsv", "test")})
    found = search([rows("pairs.tsv", "gold"), rows("sentences.txt", "sentences")], index)
    assert not any(found.sentences.values())


@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_experiments_include_every_file_they_read(project: Project, paper: str) -> None:
    called = project.call("init", "--paper", paper)
    assert (called.code, called.err) == (0, "")
    written = sorted((project.folder / paper / "experiments").rglob(f"*/{paper}_*.yaml"))
    assert len(written) >= 3
    assert list((project.folder / paper / "reports" / "published").glob(f"{paper}_*.csv"))
    checked = project.call("validate", written[0], "--profile", "sandbox")
    assert (checked.code, checked.err) == (0, "")


def test_each_folder_of_papers_is_a_paper(project: Project) -> None:
    folder = PACKAGE.parent / PAPERS_FOLDER
    known = papers()
    for paper in folder.iterdir():
        assert {file.name for file in paper.glob("*.yaml")} <= {each.file.name for each in known[paper.name]}
    assert project.call("init", "--paper", "personas").code == 0
    assert (project.folder / "personas" / PAPERS_FOLDER / "personas/prompts/reasonir.yaml").is_file()


def test_dino_includes_the_ablation_despite_its_name(project: Project) -> None:
    project.call("init", "here", "--paper", "dino")
    assert (project.folder / "here" / "experiments" / "table2_ablation.yaml").is_file()
    assert (project.folder / "here" / "reports" / "published" / "dino_table2.csv").is_file()


def test_init_copies_only_the_files_that_one_experiment_reads(project: Project) -> None:
    assert project.call("init", "--experiment", "quickstart").code == 0
    files = [path for path in (project.folder / "quickstart").rglob("*") if path.is_file()]
    assert sorted(path.relative_to(project.folder).as_posix() for path in files) == [
        "quickstart/experiments/profiles/sandbox.yaml",
        "quickstart/experiments/quickstart.yaml",
    ]


def test_init_copies_the_prompts_that_an_experiment_names(project: Project) -> None:
    assert project.call("init", "--experiment", "prompts_sandbox").code == 0
    (file,) = (project.folder / "prompts_sandbox").rglob("prompts_sandbox.yaml")
    checked = project.call("validate", file)
    assert (checked.code, checked.err) == (0, "")


def test_a_file_of_prompts_is_no_experiment(project: Project) -> None:
    assert "labels_one" not in project.call("init").out


def test_without_arguments_it_lists_papers_and_experiments(project: Project) -> None:
    called = project.call("init")
    assert called.code == 0
    for paper in PAPERS:
        assert f"  {paper}: " in called.out
    assert "quickstart" in called.out


def test_a_method_s_package_may_bring_a_paper(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "packages" / "unheard_of"
    for folder in ("experiments", "reports/published"):
        (package / folder).mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "experiments" / "unheard_table1.yaml").write_text("experiment: it\n", encoding="utf-8")
    (package / "reports/published/unheard_table1.csv").write_text("paper\n", encoding="utf-8")
    point = EntryPoint("unheard", "unheard_of.methods:Unheard", "synthbench.methods")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    assert "  unheard: 1 experiment\n" in project.call("init").out
    assert project.call("init", "--paper", "unheard").code == 0
    assert (project.folder / "unheard" / "reports/published/unheard_table1.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("taken",), ("taken", "not empty")),
        (("taken", "--paper", "dino"), ("taken", "not empty")),
        (("small.yaml",), ("small.yaml", "file")),
        (("--paper", "dnio"), ("--paper dnio", "did you mean 'dino'?")),
        (("--experiment", "quikstart"), ("--experiment quikstart", "did you mean 'quickstart'?")),
        (("--paper", "dino", "--experiment", "quickstart"), ("--paper", "--experiment")),
        (("small.yaml/below",), ("small.yaml/below",)),
    ],
    ids=" ".join,
)
def test_an_unwritable_folder_is_reported_in_one_line(
    project: Project, arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    (project.folder / "taken").mkdir()
    (project.folder / "taken" / "notes.txt").write_text("mine", encoding="utf-8")
    before = sorted(project.folder.rglob("*"))
    called = project.call("init", *arguments)
    assert (called.code, called.out, len(called.errors)) == (2, "", 1)
    assert all(fact in called.errors[0] for fact in facts)
    assert sorted(project.folder.rglob("*")) == before


def test_a_full_disk_leaves_no_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    called = project.call("init", "study")
    assert (called.code, called.errors) == (2, ["study: can't be written: No space left on device"])
    assert not list((project.folder / "study").iterdir())


def test_an_experiment_s_old_path_names_its_new_one(project: Project) -> None:
    project.call("init", "here", "--paper", "dino")
    old, new = "here/experiments/dino_table1.yaml", "here/experiments/papers/dino/dino_table1.yaml"
    for command in ("validate", "plan", "run"):
        called = project.call(command, old, "--profile", "sandbox")
        assert (called.code, called.out) == (2, "")
        worded(called.err.splitlines()[-1], f"{old}: no such file", new)


def _own_files(folder: Path) -> None:
    rows = [f"The parcel {row} is late.,Where is my parcel {row}?,{row % 2}" for row in range(200)]
    (folder / "pairs.csv").write_text("\n".join(["q1,q2,same", *rows]), encoding="utf-8")
    (folder / "tickets.txt").write_text("My order did not arrive.\nThe invoice is wrong.\n", encoding="utf-8")


def test_a_study_on_own_data_names_the_files_and_what_was_found(project: Project) -> None:
    _own_files(project.folder)
    called = project.call(
        *(
            "init",
            "tickets",
            "--gold",
            "pairs.csv",
            "--sentences",
            "tickets.txt",
            "--llm",
            "openai/gpt-5-mini",
        ),
        *("--base", "sandbox/encoder", "--budget", "40"),
    )
    assert (called.code, called.err) == (0, "")
    assert "binary" in called.out
    assert called.out.endswith("  synthbench recommend tickets/study.yaml --profile sandbox\n")
    text = (project.folder / "tickets" / "study.yaml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    worded(text.splitlines(), "  gold: ../pairs.csv", "base: sandbox/encoder", "experiment: tickets")
    assert [path.name for path in (project.folder / "tickets").iterdir()] == ["study.yaml"]


def test_a_study_that_can_t_run_as_it_is_says_what_to_mend(project: Project) -> None:
    _own_files(project.folder)
    options = ("--gold", "pairs.csv", "--base", "sandbox/encoder", "--budget", "1234567")
    called = project.call("init", "mine", *options, "--llm", "gpt-5-mini")
    assert (called.code, len(called.errors)) == (2, 1)
    assert "study.yaml:18: llm: write PROVIDER/MODEL" in called.errors[0]
    text = (project.folder / "mine" / "study.yaml").read_text(encoding="utf-8")
    assert "usd: 1234567," in text
    assert project.call("init", "other", *options, "--llm", "ollama/llama:").code == 0


def test_passages_alone_lead_to_recommend_which_has_a_test_set_of_search(project: Project) -> None:
    _own_files(project.folder)
    options = ("--passages", "tickets.txt", "--base", "sandbox/encoder")
    called = project.call("init", "mine", *options)
    assert called.code == 0
    assert "add `llm` and `budget` to study.yaml first" in called.out
    assert called.out.endswith("  synthbench recommend mine/study.yaml --profile sandbox\n")
    text = (project.folder / "mine" / "study.yaml").read_text(encoding="utf-8")
    assert "synthbench recommend study.yaml" in text and "synthbench run" not in text
    called = project.call("init", "whole", *options, "--llm", "openai/gpt-5-mini", "--budget", "9")
    assert "first" not in called.out
    called = project.call("init", "both", *options, "--sentences", "tickets.txt")
    assert called.out.endswith("  synthbench run both/study.yaml --profile sandbox\n")


def test_a_study_whose_columns_can_t_be_guessed_is_written_and_says_where_to_name_them(
    project: Project,
) -> None:
    _own_files(project.folder)
    text = (project.folder / "pairs.csv").read_text(encoding="utf-8")
    (project.folder / "pairs.csv").write_text(text.replace(",same", ",first,second", 1).replace("?,", "?,1,"))
    called = project.call("init", "mine", "--gold", "pairs.csv", "--sentences", "tickets.txt")
    assert (called.code, len(called.errors)) == (2, 1)
    study = project.folder / "mine" / "study.yaml"
    lines = study.read_text(encoding="utf-8").splitlines()
    line = lines.index("  gold: ../pairs.csv") + 1
    advice = "`gold: {file: ../pairs.csv, columns: {score: ...}}`"
    assert all(fact in called.errors[0] for fact in (f"study.yaml:{line}: ", "'first', 'second'", advice))
    assert "sentences: 2 sentences" in called.out
    mended = advice.strip("`").replace("...", "second")
    study.write_text("\n".join(lines).replace("gold: ../pairs.csv", mended), encoding="utf-8")
    assert project.call("validate", study, "--profile", "sandbox").code == 0


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("mine", "--gold", "absent.csv"), ("absent.csv", "no such file")),
        (("mine", "--llm", "openai/gpt-5-mini"), ("--gold", "--sentences")),
        (("--gold", "pairs.csv"), ("folder",)),
        (("mine", "--gold", "pairs.csv", "--paper", "dino"), ("--paper", "--gold")),
        (("mine", "--gold", "tickets.txt"), ("tickets.txt", ".tsv")),
        (("taken", "--gold", "pairs.csv"), ("taken", "not empty")),
    ],
    ids=" ".join,
)
def test_own_data_that_can_t_be_used_are_refused_in_one_line(
    project: Project, arguments: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    _own_files(project.folder)
    (project.folder / "taken").mkdir()
    (project.folder / "taken" / "notes.txt").write_text("mine", encoding="utf-8")
    called = project.call("init", *arguments)
    assert (called.code, called.out, len(called.errors)) == (2, "", 1)
    assert all(fact in called.errors[0] for fact in facts)
    assert not (project.folder / "mine").exists()
