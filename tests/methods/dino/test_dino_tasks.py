"""Tasks for the language model: shipped ones, a user's own, and their faults."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dino_experiment import dino_project
from hub_cache import tiny_gpt2
from ruamel.yaml import YAML
from small_experiment import Project
from wording import refused, worded

from synthbench_dino import DINO, DINOTexts

PAGE = Path(__file__).parents[3] / "docs" / "dino.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SETTINGS = {"language_model": {"model": "sandbox/lm"}}
OWN = "      task: sts\n"
GIVEN = "      sources: {x1: x1}\n"
PROMPT = 'Say it again.\n1: "<X1>"\n2: "'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return dino_project(tmp_path)


def labels(**task: dict[str, Any]) -> str:
    """Return the file's `task:` section as JSON, which is YAML."""
    return f"      task: {json.dumps({'labels': task})}\n"


def label(instruction: str = PROMPT, **more: Any) -> dict[str, Any]:
    return {"instruction": instruction, **more}


def test_the_shipped_similarity_task_equals_the_papers() -> None:
    task = DINO.model_validate({**SETTINGS, "task": "sts"}).task
    assert task.prompts("A dog.") == {
        name: f'Task: Write two sentences that {phrase}.\nSentence 1: "A dog."\nSentence 2: "'
        for name, phrase in {
            "1": "mean the same thing",
            "0.5": "are somewhat similar",
            "0": "are on completely different topics",
        }.items()
    }
    assert {name: task.score(name) for name in task.labels} == {"1": 1.0, "0.5": 0.5, "0": 0.0}
    counterlabels = {name: set(label.counterlabels) for name, label in task.labels.items()}
    assert counterlabels == {"1": set(), "0.5": {"1"}, "0": {"0.5", "1"}}


def test_the_inference_task_is_shipped() -> None:
    task = DINO.model_validate({**SETTINGS, "task": "nli"}).task
    assert {name: task.score(name) for name in task.labels} == {
        "entailment": 1.0,
        "neutral": 0.5,
        "contradiction": 0.0,
    }
    assert len({prompt.partition("\n")[0] for prompt in task.prompts("A dog.").values()}) == 3


def test_tasks_in_the_docs_are_valid() -> None:
    given, own, classes = (YAML(typ="safe").load(text) for text in EXAMPLES)
    for settings in (given["data"]["x2"], {**SETTINGS, "method": "dino", **own}):
        known = {key: value for key, value in settings.items() if key not in ("method", "sources")}
        assert (settings["method"], DINO.model_validate_json(json.dumps(known)).samples) == ("dino", 2)
    texts = dict(classes["data"]["headlines"])
    assert texts.pop("method") == "dino-texts"
    assert set(DINOTexts.model_validate_json(json.dumps(texts)).labels) == {"sport", "politics"}


def test_prompts_for_generated_first_texts_contain_no_first_text() -> None:
    task = {
        "language_model": {"model": "any"},
        "size": 3,
        "labels": {"a": {"instruction": 'X: "<X1>"\nY: "'}},
    }
    with refused("'a'", "<X1>", "text", kind=ValueError):
        DINOTexts.model_validate(task)


def test_a_users_own_task_needs_no_code(project: Project) -> None:
    project.change(
        OWN, labels(yes=label(score=1.0), no=label('Not <X1>\n"', score=0.0, counterlabels=["yes"]))
    )
    called = project.call("validate", project.file)
    assert (called.code, called.err) == (0, "")


@pytest.mark.parametrize(
    ("task", "key", "message"),
    [
        (labels(**{"1": label('1: X1 2: "')}), ".labels.1.instruction", "needs the placeholder <X1>"),
        (labels(**{"1": label('<X1> <X1> "')}), ".labels.1.instruction", "the placeholder <X1> for the"),
        (labels(**{"1": label('1: "<X1>" 2: ')}), ".labels.1.instruction", "must end with an opening"),
        (labels(**{"1": label("")}), ".labels.1.instruction", "must "),
        (labels(**{"1": label(score=1.5)}), ".labels.1.score", "must be at most 1, is 1.5"),
        (labels(**{"1": label(scores=1)}), ".labels.1.scores", "unknown key; did you mean 'score'?"),
        (labels(**{"1": label(counterlabels=["2"])}), "", "label '1': no label is called '2'; there are 1"),
        (labels(**{"1": label(counterlabels=["1"])}), "", "counterlabels go round in a circle: 1 -> 1"),
        (
            labels(**{"1": label(counterlabels=["0"]), "0": label(counterlabels=["1"])}),
            "",
            "counterlabels go round in a circle: 1 -> 0 -> 1",
        ),
        (labels(good=label()), "", "label 'good' is no number between 0 and 1; give it a `score:`"),
        (labels(**{"5": label()}), "", "label '5' is no number between 0 and 1; give it a `score:`"),
        (labels(nan=label()), "", "label 'nan' is no number between 0 and 1"),
        (labels(), ".labels", "must "),
        ("      task: similarity\n", "", "no task 'similarity' ships with the method, only nli, sts,"),
        ("", "", "missing"),
    ],
)  # fmt: skip
def test_a_faulty_task_is_reported_in_one_line_with_its_key(
    project: Project, task: str, key: str, message: str
) -> None:
    project.change(OWN, task)
    (error,) = project.call("validate", project.file).errors
    assert error.startswith(f"{project.file}:{12 if task else 8}: data.x2.task{key}: ")
    assert message in error


class TestFirstTexts:
    def test_first_texts_need_an_origin(self, project: Project) -> None:
        project.change(GIVEN, "")
        errors = project.call("validate", project.file).errors
        assert (
            f"{project.file}:8: data.x2.sources: no first texts: give a source of sentences as the "
            in errors[0]
        )

    def test_first_texts_have_only_one_origin(self, project: Project) -> None:
        project.change(OWN, OWN + "      x1: {size: 9}\n")
        (error,) = project.call("validate", project.file).errors
        worded(error, f"{project.file}:10", "data.x2.sources", "x1", "`x1:`")

    def test_first_texts_can_be_generated(self, project: Project) -> None:
        project.change(GIVEN, "      x1: {size: 9}\n")
        project.change("  x1: {file: x1.tsv, kind: sentence}\n", "")
        called = project.call("validate", project.file)
        assert (called.code, called.err) == (0, "")
        assert "generate dino-texts for x1" in project.call("plan", project.file, "--stages").out

    def test_first_texts_are_generated_only_between_quotation_marks(self, project: Project) -> None:
        project.change(OWN, labels(**{"1": label('1: <X1>\n2: "')}) + "      x1: {size: 9}\n")
        project.change(GIVEN, "")
        errors = project.call("validate", project.file).errors
        assert f"{project.file}:8: data.x2: label '1': for `x1:`, <X1> must be in quotation marks" in errors

    def test_first_texts_must_be_sentences(self, project: Project) -> None:
        project.change("sources: {x1: x1}", "sources: {x1: test}")
        errors = project.call("validate", project.file).errors
        assert any(
            "'test' holds records of kind scored_pair, here sentence is needed" in one for one in errors
        )


class TestTheLanguageModel:
    @pytest.mark.parametrize(
        ("named", "key", "message"),
        [
            ("./nowhere", "model", "./nowhere: no such folder"),
            ("sandbox/lmm", "model", "the sandbox has no such checkpoint; did you mean 'lm'?"),
            ("gpt2, revision: main", "revision", "must be a full commit hash"),
            ("sandbox/lm, dtype: int8", "dtype", "must be 'fp32', 'bf16' or 'fp16', is \"int8\""),
        ],
    )
    def test_validate_reports_unsuitable_language_models(
        self, project: Project, named: str, key: str, message: str
    ) -> None:
        project.change("model: sandbox/lm", f"model: {named}")
        (error,) = project.call("validate", project.file).errors
        assert error.startswith(f"{project.file}:11: data.x2.language_model.{key}: ")
        assert message in error

    def test_a_language_model_without_a_tokenizer_is_refused_before_any_work(self, project: Project) -> None:
        folder = project.folder / "bare"
        tiny_gpt2(folder)
        for file in folder.iterdir():
            if "token" in file.name or "vocab" in file.name:
                file.unlink()
        project.change("model: sandbox/lm", "model: ./bare")
        (error,) = project.call("validate", project.file).errors
        assert error.startswith(f"{project.file}:11: data.x2.language_model.model: ./bare: no tokenizer in ")

    def test_the_language_model_is_checked_together_with_that_of_first_texts(self, project: Project) -> None:
        project.change(GIVEN, "      x1: {size: 9}\n")
        project.change("  x1: {file: x1.tsv, kind: sentence}\n", "")
        project.change("model: sandbox/lm", "model: ./nowhere")
        errors = project.call("validate", project.file).errors
        assert "data.x2.language_model.model: ./nowhere: no such folder" in errors[0]


@pytest.mark.parametrize(
    ("classes", "key", "message"),
    [
        ('{a: {instruction: "Say: "}}', ".labels.a.instruction", "must end with an opening quotation mark"),
        ("{a: {instruction: 'Say: \"', counterlabels: [b]}}", "", "label 'a': no label is called 'b'"),
        ("{}", ".labels", "must "),
    ],
)
def test_classes_of_single_texts_are_checked_too(
    project: Project, classes: str, key: str, message: str
) -> None:
    project.change("method: dino\n", "method: dino-texts\n")
    project.change(GIVEN, "      size: 10\n")
    project.change(OWN, f"      labels: {classes}\n")
    errors = [one for one in project.call("validate", project.file).errors if "used by no variant" not in one]
    assert f": data.x2{key}: " in errors[0]
    assert message in errors[0]
