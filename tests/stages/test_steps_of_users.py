"""A step may be a class in a Python file beside the experiment: plain, with a model, or with an LLM."""

from pathlib import Path

import pytest
from small_experiment import Project, finished
from wording import worded

from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import DATASET_FOLDER
from synthbench.engine.store import Store
from synthbench.llm.ledger import entries
from synthbench.plugins.files import ALLOWED

STEPS = '''\
from synthbench.api import ChatRequest, Record, RecordKind, Step, TrainedModel


class Dogless(Step):
    """Drop sentences about dogs and wolves."""

    version = 1
    kinds = frozenset({RecordKind.SENTENCE})
    word: str = "dog"

    def apply(self, records, context):
        context.count_dropped("a dog", sum("dog" in record.sentence for record in records))
        return [record for record in records if not {"dog", "wolf"} & set(record.sentence.split())]


class Unlike(Step):
    """Keep sentences that a model tells from the first one."""

    version = 1

    def needs(self):
        return {"model": TrainedModel("none", {"base": {"model": "sandbox/encoder"}}, (), 0)}

    def apply(self, records, context):
        vectors = context.encoder("model").encode([record.texts()[0] for record in records])
        context.measure("dimensions", vectors.shape[1])
        return [record for record, vector in zip(records, vectors) if abs(vector - vectors[0]).max() > 0]


class Asked(Step):
    """Keep what an LLM has an answer to."""

    version = 1
    uses_llm = True

    def apply(self, records, context):
        asked = [
            ChatRequest(each.id, ({"role": "user", "content": each.sentence},), {"temperature": 0})
            for each in records
        ]
        kept = {answer.request.key for answer in context.llm.answers(asked) if answer.text}
        return [record for record in records if record.id in kept]
'''
EXPERIMENT = """\
experiment: small
sources: {texts: {file: texts.txt}}
baseline: plain
vary: [sample]
defaults:
  data.texts: {source: texts, prepare: [{step: "own.py:Dogless"}]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An experiment whose steps are in `own.py` beside it."""
    monkeypatch.setenv(ALLOWED, str(tmp_path))
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "small.yaml").write_text(EXPERIMENT)
    (folder / "own.py").write_text(STEPS)
    (folder / "texts.txt").write_text("A dog runs.\nIt rains.\nA wolf howls.\nThe sun is out.\n")
    return Project(folder, tmp_path / "home")


def datasets(project: Project) -> list[SyntheticDataset]:
    """Return all prepared data sets in the store, the newest last."""
    found = sorted(project.home.glob("store/artifacts/*/*/stage.json"), key=lambda file: file.stat().st_mtime)
    return [
        SyntheticDataset.read(file.parent / DATASET_FOLDER)
        for file in found
        if '"kind": "prepare"' in file.read_text()
    ]


def test_a_step_counts_drops_by_reason_or_under_its_name(project: Project) -> None:
    called = project.call("run", "small.yaml")
    assert called.code == 0
    (prepared,) = datasets(project)
    assert prepared.column("sentence") == ["It rains.", "The sun is out."]
    assert prepared.manifest.dropped == {"own.py:Dogless: a dog": 1, "own.py:Dogless": 1}


def test_a_changed_step_is_applied_again(project: Project) -> None:
    assert project.call("run", "small.yaml").code == 0
    file = project.folder / "own.py"
    file.write_text(file.read_text().replace('"wolf"', '"owl"'))
    assert "code of 'own.py:Dogless' changed" in finished(project.start("plan", "small.yaml")).out


def test_a_steps_settings_are_checked_like_a_methods(project: Project) -> None:
    project.change('{step: "own.py:Dogless"}', '{step: "own.py:Dogless", wrod: cat}')
    worded(
        project.call("validate", "small.yaml").errors, "small.yaml:6", "data.texts.prepare.0.wrod", "'word'"
    )


def test_a_step_with_a_model_is_a_separate_stage(project: Project) -> None:
    project.change(
        '{step: "own.py:Dogless"}',
        '{step: "own.py:Dogless"}, {step: "own.py:Unlike"}, {step: sample, size: 1}',
    )
    called = project.call("run", "small.yaml")
    assert (called.code, called.errors) == (0, []), called.err
    assert [line.split()[0] for line in called.executed] == [
        "source",
        "prepare",
        "train",
        "prepare",
        "prepare",
    ]
    *_, last = datasets(project)
    assert len(last) == 1
    assert last.manifest.dropped == {
        "own.py:Dogless: a dog": 1,
        "own.py:Dogless": 1,
        "own.py:Unlike": 1,
        "sample": 0,
    }
    assert last.manifest.measured["dimensions"] > 1


def test_a_step_with_an_llm_requires_one_and_is_in_the_ledger(project: Project) -> None:
    project.change('{step: "own.py:Dogless"}', '{step: "own.py:Asked"}')
    worded(project.call("validate", "small.yaml").errors, "data.texts.prepare.0.step", "LLM", "llm: sandbox")
    project.file.write_text(project.file.read_text() + "llm: sandbox\n")
    called = project.call("run", "small.yaml")
    assert called.code == 0
    (entry,) = entries(Store(project.home / "store").answers, "small")
    assert entry.answered.num_attempts == 4
