"""A plug-in that breaks its contract is reported in one line, and affects only its users."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from installed_packages import forget

from synthbench.base.errors import UserError
from synthbench.cli import diagnosis
from synthbench.cli.diagnosis import Level
from synthbench.cli.listing import list_plugins
from synthbench.plugins import loading as plugin_loading

IMPORTS = """\
from typing import ClassVar
from synthbench.api import Evaluator, Method, ModelKind, RecordKind, Trainer
"""
METHOD = """\
class Plugin(Method):
    version = 1
    record_kind = RecordKind.PAIR

    def generate(self, sources, context):
        yield from ()
"""
TRAINER = """\
class Plugin(Trainer):
    version = 1
    model_kind = ModelKind.ENCODER

    def train(self, data, context): ...
"""
EVALUATOR = """\
class Plugin(Evaluator):
    version = 1
    record_kind = RecordKind.PAIR
    main_score = property(lambda self: "map")

    def evaluate(self, model, task): ...
"""
GOOD = {"methods": METHOD, "trainers": TRAINER, "evaluators": EVALUATOR}
Offer = Callable[[str, str], str]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Install another plug-in; return the line that reports its fault, "" if none."""

    def offered(group: str, source: str) -> str:
        site = tmp_path / str(len(list(tmp_path.iterdir())))
        info = site / "a_plugin-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "a_plugin.py").write_text(IMPORTS + source, encoding="utf-8")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[synthbench.{group}]\nnew = a_plugin:Plugin\n")
        monkeypatch.syspath_prepend(site)
        forget("a_plugin")
        try:
            plugin_loading.component(group, "new")
        except UserError as error:
            assert len(error.messages) == 1
            assert "\n" not in error.messages[0]
            return error.messages[0]
        return ""

    yield offered
    monkeypatch.undo()
    forget("a_plugin")


@pytest.mark.parametrize("group", GOOD)
def test_a_class_that_meets_its_contract_is_loaded(offer: Offer, group: str) -> None:
    assert offer(group, GOOD[group]) == ""


@pytest.mark.parametrize(
    ("group", "old", "new", "wrong"),
    [
        ("methods", "version = 1\n", "pass\n", "has no `version`; write `version = 1`"),
        (
            "methods",
            "version = 1",
            "version: int = 1",
            "`version` is a setting; write `version = 1`, without a type or as a ClassVar",
        ),
        (
            "trainers",
            "version = 1",
            'version = "1"',
            "`version` can't be '1'; write `version = 1`",
        ),
        (
            "evaluators",
            "version = 1",
            "version = True",
            "`version` can't be True; write `version = 1`",
        ),
        (
            "methods",
            "record_kind = RecordKind.PAIR",
            "pass",
            "has no `record_kind`; write `record_kind = RecordKind.SCORED_PAIR`",
        ),
        (
            "methods",
            "RecordKind.PAIR",
            '"pair"',
            "`record_kind` can't be 'pair'; write `record_kind = RecordKind.SCORED_PAIR` or the like",
        ),
        (
            "trainers",
            "model_kind = ModelKind.ENCODER",
            "pass",
            "has no `model_kind`; write `model_kind = ModelKind.ENCODER`",
        ),
        (
            "methods",
            "version = 1",
            'version = 1; source_roles = {"texts": "sentence"}',
            "`source_roles` can't be {'texts': 'sentence'}; write `source_roles = "
            '{"texts": RecordKind.SENTENCE}` or the like',
        ),
        ("methods", "generate(", "make(", "has no `generate`; write `def generate(self, sources, context)`"),
        ("trainers", "train(", "fit(", "has no `train`; write `def train(self, data, context)`"),
        ("evaluators", "evaluate(", "score(", "has no `evaluate`; write `def evaluate(self, model, task)`"),
        ("evaluators", "    main_score", "    main", "has no `main_score`; write a property `main_score`"),
        (
            "methods",
            "(self, sources, context)",
            "(self)",
            "`generate` can't be called as it is; write `def generate(self, sources, context)`",
        ),
        (
            "methods",
            "version = 1",
            "version = 1\n    def needs(self, sources): ...",
            "`needs` can't be called as it is; write `def needs(self)`",
        ),
        (
            "evaluators",
            'main_score = property(lambda self: "map")',
            "def main_score(self): ...",
            "`main_score` is a method; write @property above it",
        ),
        (
            "methods",
            "version = 1",
            "version = 1\n    def __init__(self): ...",
            "has an `__init__` of its own; settings are fields, such as `score: float = 1.0`",
        ),
        (
            "methods",
            "version = 1",
            'version = 1\n    size: "Unknown" = 1',
            "its settings can't be read: name 'Unknown' is not defined",
        ),
        (
            "methods",
            "version = 1\n    record_kind = RecordKind.PAIR",
            "pass",
            "has no `record_kind`; write `record_kind = RecordKind.SCORED_PAIR`; "
            "has no `version`; write `version = 1`",
        ),
    ],
)
def test_violations_of_the_contract_are_reported_with_the_correct_form(
    offer: Offer, group: str, old: str, new: str, wrong: str
) -> None:
    assert old in GOOD[group]
    told = offer(group, GOOD[group].replace(old, new))
    assert told.startswith(f"{group[:-1]} 'new' (a_plugin:Plugin of a-plugin 1.0): ")
    assert wrong in told


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class Plugin(Method)\n", "SyntaxError: expected ':'"),
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("raise SystemExit('bye')\n", "SystemExit: bye"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("raise ValueError('two\\nlines')\n", "ValueError: two"),
        ("", "module 'a_plugin' has no attribute 'Plugin'"),
        (
            "class Plugin(Method):\n    score = 1\n",
            "PydanticUserError: A non-annotated attribute",
        ),
    ],
)
def test_any_import_error_is_reported(offer: Offer, source: str, told: str) -> None:
    wrong = offer("methods", source)
    assert wrong.startswith(f"method 'new' (a_plugin:Plugin of a-plugin 1.0) can't be loaded: {told}")


@pytest.mark.parametrize(
    "source", ["raise SystemExit(0)", "class Plugin(Method):\n    version = 1", "class Plugin: ..."]
)
def test_a_faulty_plug_in_is_reported_by_doctor_and_other_plug_ins_work(
    offer: Offer, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = offer("methods", source)
    list_plugins("all")
    listed = capsys.readouterr().out
    assert f"new  left out: {told}\n" in listed
    assert "syncse-scratch  version " in listed
    assert "sts  version " in listed
    problem, fine, *_ = diagnosis.plugins()
    assert (problem.level, problem.text) == (Level.PROBLEM, told)
    assert (fine.level, "augsbert" in fine.text) == (Level.OK, True)
