"""Identities omit only fixed literals, for settings that older versions did not have; no live defaults.

Otherwise a changed default or constant would be served the artifacts of the former one.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from contract.settings_models import LLMS, other_values, settings_models, title
from pydantic import BaseModel

from synthbench.base.frozen import CONSTANTS_KEY, Omitted, WithConstants, in_identity
from synthbench.config.experiment import AuditPlan, PrepareStep
from synthbench.data import conversions
from synthbench.data.conversions import Thresholds
from synthbench.engine.stage import Operation, Stage
from synthbench.generation import seq2seq
from synthbench.llm import judging
from synthbench.llm.endpoint import AnswerOptions
from synthbench.models.pretrained import Prompts
from synthbench.plugins.labellers import Judge
from synthbench.plugins.loading import component
from synthbench.sources.description import Roots
from synthbench.sources.models import SOURCE_TYPES
from synthbench.stages.asking import Shard
from synthbench.stages.auditing import AuditLabels
from synthbench.stages.data import ReadOwnTask, ReadSource
from synthbench.stages.evaluation import Evaluate
from synthbench.stages.generation import Generate, GenerateShard
from synthbench.stages.preparation import ApplyStep, Prepare
from synthbench.stages.training import Select, Train
from synthbench.training import library_losses, simcse
from synthbench.training.library_losses import LibraryLoss
from synthbench.worlds.sandbox import source as sandbox_source

ROOT = Path(__file__).parents[2]
PINNED = Path(__file__).with_name("omitted_settings.json")
FIELDS = [
    pytest.param(model, name, id=f"{model.__name__}.{name}")
    for model in settings_models()
    for name in model.model_fields
]


def omission(model: type[BaseModel], name: str) -> Omitted | None:
    made = model.model_fields[name].exclude_if
    assert made is None or isinstance(made, Omitted), "declare it by added_field"
    return made


OMITTED = [each for each in FIELDS if omission(*each.values)]  # type: ignore[arg-type]


def is_held(model: type[BaseModel], name: str, value: object) -> bool:
    """Return whether identities include this value, both as a default and if set."""
    field = model.model_fields[name]
    return bool(model.model_construct(**{name: value}).model_dump(include={name}) or field.exclude)


@pytest.mark.parametrize(("model", "name"), OMITTED)
def test_a_field_is_omitted_only_at_its_frozen_value(model: type[BaseModel], name: str) -> None:
    field = model.model_fields[name]
    values = [*other_values(field), field.get_default(call_default_factory=True)]
    left_out = [value for value in values if not is_held(model, name, value)]
    assert left_out, "nothing is left out: is the literal right?"
    assert len(left_out) < len(values), "no other value was tried"
    assert all(value == left_out[0] and type(value) is type(left_out[0]) for value in left_out), left_out


def test_the_omitted_value_never_changes(request: pytest.FixtureRequest) -> None:
    """A new setting comes in by `make golden`, which changes no value that is pinned.

    Is today's default another one? Then keep the first: `added_field(FIRST, default=TODAY)`.
    """
    found = {}
    for model, name in (each.values for each in OMITTED):
        made = omission(model, name)  # type: ignore[arg-type]
        assert made is not None
        found[title(model, name)] = json.loads(json.dumps(made.value))  # type: ignore[arg-type]
    pinned = json.loads(PINNED.read_text("utf-8"))
    if request.config.getoption("renew"):
        pinned = {name: pinned.get(name, value) for name, value in sorted(found.items())}
        PINNED.write_text(json.dumps(pinned, indent=0) + "\n", encoding="utf-8")
    assert found == pinned, "never change the first argument of added_field; a new one: make golden"


@pytest.mark.parametrize("model", settings_models(), ids=lambda model: model.__name__)
def test_no_field_is_omitted_at_every_value(model: type[BaseModel]) -> None:
    assert [name for name, field in model.model_fields.items() if field.exclude] == []


def test_no_omission_depends_on_a_current_default() -> None:
    """pydantic's `exclude_defaults` and `exclude_unset` compare with today's defaults."""
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for package in ("synthbench", "methods", "evaluators")
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.keyword) and node.arg in ("exclude_defaults", "exclude_unset")
    ]
    assert wrong == []


# The meaning of null. For a constant of the code, CASES must show that changing it changes identities.
NOTHING = "no limit, no such part, or not sent"
OUTSIDE = "what files say whose hash or commit identities hold"
CHECKED = "no more than a check"
SETTING = "another setting"
WHERE = "where it is found or how it is paid; no answer depends on it"
CODE = "a rule, which `version` stands for"
CONSTANT = "a constant of the code"
MEANING_OF_NULL: Mapping[str, str] = {
    "AnswerOptions.chat_template_kwargs": NOTHING,
    "JudgeStep.labeller": NOTHING,
    "KeepBest.by": NOTHING,
    "DropContaminated.words": NOTHING,
    "DropOverlap.words": NOTHING,
    "Filters.words": NOTHING,
    "Length.words": NOTHING,
    "KeepBest.labeller": NOTHING,
    "KeepBest.fraction": SETTING,
    "KeepBest.size": SETTING,
    "JudgeStep.question": NOTHING,
    "RelabelRetrieved.encoder": CODE,
    "RelabelRetrieved.source": NOTHING,
    "WithLabeller.cross_encoder": NOTHING,
    "WithLabeller.labeller": NOTHING,
    "AnswerOptions.extra_body": NOTHING,
    "AnswerOptions.max_completion_tokens": NOTHING,
    "AnswerOptions.reasoning_effort": NOTHING,
    "AnswerOptions.response_format": NOTHING,
    "BM25SemanticSampler.semantic_k": SETTING,
    "BiEncoder.lora": NOTHING,
    "BiEncoder.no_duplicates": CODE,
    "BiEncoder.loss": CODE,
    "CommonPacing.budget_tokens": WHERE,
    "CommonPacing.budget_usd": WHERE,
    "CommonPacing.price": WHERE,
    "ContextualSubstitution.max_words": NOTHING,
    "CorpusSource.judgements": OUTSIDE,
    "CorpusSource.judgements_revision": OUTSIDE,
    "CorpusSource.revision": OUTSIDE,
    "CrossEncoder.hidden_size": OUTSIDE,
    "CrossEncoder.loss": CODE,
    "BrainstormPrompts.long_long": CONSTANT,
    "BrainstormPrompts.long_short": CONSTANT,
    "BrainstormPrompts.short_long": CONSTANT,
    "BrainstormPrompts.short_short": CONSTANT,
    "BrainstormPrompts.sts": CONSTANT,
    "BrainstormSettings.prompt_file": NOTHING,
    "CategoryPrompts.task": SETTING,
    "CategoryPrompts.tasks": SETTING,
    "DINO.x1": NOTHING,
    "EndpointAddress.key_variable": WHERE,
    "FileSource.format": CODE,
    "FileSource.hub": NOTHING,
    "FileSource.kind": CODE,
    "FileSource.revision": OUTSIDE,
    "FileSource.scores": NOTHING,
    "FileSource.where": NOTHING,
    "Filters.language": NOTHING,
    "Filters.max_words": NOTHING,
    "GPLQueries.queries_per_passage": CONSTANT,
    "GPLQueries.seq2seq": NOTHING,
    "JudgeStep.least": CODE,
    "Labeller.cross_encoder": NOTHING,
    "Labeller.encoder": NOTHING,
    "Labeller.judge": NOTHING,
    "Labeller.ready_cross_encoder": NOTHING,
    "Length.max_words": NOTHING,
    "Length.min_words": NOTHING,
    "LibraryLoss.guide": NOTHING,
    "LibraryLoss.sparsity": NOTHING,
    "LibraryLoss.teacher": NOTHING,
    "LibraryLoss.temperature": CONSTANT,
    "LibraryLoss.label_temperature": CONSTANT,
    "LLMSettings.requests_per_minute": WHERE,
    "MTEB.benchmark": NOTHING,
    "MTEB.folder": OUTSIDE,
    "MineNegatives.encoder": NOTHING,
    "MineNegatives.margin": NOTHING,
    "MineNegatives.max_score": NOTHING,
    "NamedLanguageModel.revision": OUTSIDE,
    "Pacing.enqueued_tokens": WHERE,
    "Pacing.requests_per_minute": WHERE,
    "Pacing.tokens_per_minute": WHERE,
    "PairLabel.score": CODE,
    "Pretrained.max_length": OUTSIDE,
    "Pretrained.num_layers": OUTSIDE,
    "Pretrained.pooling": OUTSIDE,
    "Pretrained.prompts": OUTSIDE,
    "Pretrained.revision": OUTSIDE,
    "Pretrained.static_dimension": OUTSIDE,
    "PairPrompts.fill": CONSTANT,
    "PairPrompts.paraphrase": CONSTANT,
    "Price.cached_input": WHERE,
    "GradedPrompts.documents": CONSTANT,
    "GradedPrompts.levels": CONSTANT,
    "PersonaPrompts.configuration": CONSTANT,
    "PersonaPrompts.difficulties": CONSTANT,
    "PersonaPrompts.personas": CONSTANT,
    "PersonaPrompts.query": CONSTANT,
    "PersonaPrompts.types": CONSTANT,
    "PersonaSettings.encoder": NOTHING,
    "Prompt.exemplars_per_request": NOTHING,
    "Prompt.input": NOTHING,
    "Prompt.name": NOTHING,
    "QueryPrompts.queries": CONSTANT,
    "QueryPrompts.queries_of_two": CONSTANT,
    "Question.grades": CODE,
    "Relabel.within": NOTHING,
    "Sample.fraction": SETTING,
    "Sample.size": SETTING,
    "Seq2SeqLanguageModel.max_length": CONSTANT,
    "SentencePrompts.caption_prompts": NOTHING,
    "SentencePrompts.domain_prompts": NOTHING,
    "SentencePrompts.naive": NOTHING,
    "ServedModel.revision": OUTSIDE,
    "ServedModel.gpus": WHERE,
    "SetOptions.candidates": CONSTANT,
    "SetOptions.domains": OUTSIDE,
    "SetOptions.registers": OUTSIDE,
    "SimCSE.chunk_size": NOTHING,
    "SimCSE.dropout": OUTSIDE,
    "SimCSE.false_negatives": NOTHING,
    "SimCSE.mlp": CODE,
    "SimCSE.soft_labels": NOTHING,
    "SourceBase.converted_to": NOTHING,
    "SourceBase.part": NOTHING,
    "SourceBase.sample": NOTHING,
    "SourceBase.subsets": NOTHING,
    "Split.grouped_by": NOTHING,
    "SynCSEPrompts.negative": CONSTANT,
    "SynCSEPrompts.positive": CONSTANT,
    "SynCSEPrompts.sentences": CONSTANT,
    "TaskSource.expected_size": CHECKED,
    "TaskSource.origin": WHERE,
    "TrainingSettings.epochs": SETTING,
    "TrainingSettings.least_steps": NOTHING,
    "TrainingSettings.max_length": OUTSIDE,
    "TrainingSettings.max_steps": SETTING,
    "WithLabels.negative_pool": NOTHING,
    "WithLabels.positive_pool": NOTHING,
    "WithExemplars.num_exemplars": NOTHING,
    "WithPrompts.prompts": CONSTANT,
    "WithSentences.sentence_pool": NOTHING,
    "WithSubject.domain": NOTHING,
    "WithSubject.genres": OUTSIDE,
    "NegativePrompts.negative": CONSTANT,
    "RankingPrompts.likelihood": SETTING,
    "RankingPrompts.relevance": SETTING,
    "RelabelRetrieved.prompts": SETTING,
    "TripletPrompts.negative": CONSTANT,
    "TripletPrompts.positive": CONSTANT,
    "TripletWriting.seq2seq": NOTHING,
}


def test_every_null_has_a_known_meaning() -> None:
    found = {
        title(model, name)
        for model in settings_models()
        for name, field in model.model_fields.items()
        if not field.is_required() and field.default is None and field.default_factory is None
    }
    assert found == set(MEANING_OF_NULL)


BASE: dict[str, Any] = {"model": "sandbox/encoder"}
MODEL: dict[str, Any] = {"model": "package:contract_t5/model"}
PAIRS: dict[str, Any] = {"sandbox": "pairs", "split": "train", "size": 10}
CASES: Mapping[str, tuple[BaseModel, object, str, object]] = {
    "bi-encoder of pairs": (
        component("trainers", "bi-encoder").model_validate(
            {"base": BASE, "loss": {"name": "multiple-negatives"}}
        ),
        Thresholds, "high", 0.8,
    ),
    "bi-encoder of triplets": (
        component("trainers", "bi-encoder").model_validate(
            {"base": BASE, "loss": {"name": "gist", "guide": BASE, "learns_from": "triplet"}}
        ),
        Thresholds, "low", 0.2,
    ),
    "simcse": (component("trainers", "simcse").model_validate({"base": BASE}), Thresholds, "low", 0.2),
    "masked words": (
        component("trainers", "simcse").model_validate({"base": BASE, "mlm_weight": 0.1}),
        simcse, "MASKED_SHARE", 0.3,
    ),
    "a source as pairs": (SOURCE_TYPES["sandbox"](**PAIRS, **{"as": "pair"}), Thresholds, "high", 0.8),
    "a source as triplets": (SOURCE_TYPES["sandbox"](**PAIRS, **{"as": "triplet"}), Thresholds, "low", 0.2),
    "rankings as pairs": (
        SOURCE_TYPES["sandbox"](**{**PAIRS, "sandbox": "rankings", "as": "pair"}), Thresholds, "high", 0.8,
    ),
    "candidates": (
        SOURCE_TYPES["sandbox"](**{**PAIRS, "sandbox": "rankings"}), sandbox_source, "NUM_CANDIDATES", 10,
    ),
    "a loss": (LibraryLoss(name="cosent"), library_losses, "TEMPERATURE", 0.1),
    "a loss on lists": (LibraryLoss(name="kl-divergence"), library_losses, "TEMPERATURE_OF_KL", 2.0),
    "labels of lists": (LibraryLoss(name="kl-divergence"), library_losses, "LABEL_TEMPERATURE", 2.0),
    "a loss with a guide": (
        LibraryLoss.model_validate({"name": "gist", "guide": BASE}),
        library_losses, "TEMPERATURE_OF_GIST", 0.1,
    ),
    "queries": (
        component("methods", "gpl-queries").model_validate({}),
        __import__("synthbench_gpl.method", fromlist=["method"]), "LEAST_QUERIES", 1,
    ),
    "long inputs": (
        component("methods", "gpl-queries").model_validate({"seq2seq": MODEL}), seq2seq, "LONGEST_INPUT", 64,
    ),
    "a question": (Judge(), judging, "READING", 3),
}  # fmt: skip
CHANGED_SINCE = {"a question"}
"""Cases whose constant no longer has its first value."""


@pytest.mark.parametrize("case", CASES)
def test_a_changed_constant_changes_the_identity(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, owner, name, value = CASES[case]
    before = in_identity(settings)
    assert (CONSTANTS_KEY in before) == (case in CHANGED_SINCE)
    before.pop(CONSTANTS_KEY, None)
    assert before == settings.model_dump(mode="json")
    monkeypatch.setattr(owner, name, value)
    held = in_identity(settings).get(CONSTANTS_KEY, {})
    assert list(held.values()) == [value]


def test_every_class_with_constants_has_a_case() -> None:
    classes = {each for model in settings_models() for each in model.__mro__ if "constants" in vars(each)}
    tried = {each for settings, *_ in CASES.values() for each in type(settings).__mro__}
    tried |= {seq2seq.Seq2SeqLanguageModel}
    assert classes <= {WithConstants, *tried}


def test_each_stage_holds_the_constants_of_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = CASES["simcse"][0]
    train = Train("simcse", trainer, seed=0)  # type: ignore[type-var]
    read = ReadSource(CASES["candidates"][0], Roots())  # type: ignore[arg-type]
    before = [Stage(each).identity for each in (train, read)]
    monkeypatch.setattr(Thresholds, "low", 0.2)
    monkeypatch.setattr(sandbox_source, "NUM_CANDIDATES", 10)
    assert all(Stage(each).identity != known for each, known in zip((train, read), before, strict=True))


def test_a_changed_score_default_changes_the_identity() -> None:
    """The default of `positives_from` is the one of conversions."""
    trainer = component("trainers", "simcse")
    field = trainer.model_fields["positives_from"]
    assert field.default == Thresholds.high
    defaults = conversions.convert.__kwdefaults__
    assert (defaults["high"], defaults["low"]) == (Thresholds.high, Thresholds.low)
    settings = trainer.model_validate({"base": BASE, "learns_from": "pair"})
    changed = settings.model_copy(update={"positives_from": 0.8})
    assert "positives_from" not in in_identity(settings)
    assert in_identity(changed)["positives_from"] == 0.8


# Options for reaching, pacing and paying an LLM; they do not change its answers.
REACHED = {
    "base_url", "key_variable", "sends_sample", "concurrency", "timeout", "tries", "max_failure_rate",
    "budget_usd", "budget_tokens", "offline", "price", "requests_per_minute", "tokens_per_minute", "batch",
    "enqueued_tokens", "batch_size", "start_timeout_s", "replicas", "gpus", "revision", "latency",
    "rate_limited", "retry_after", "server_errors", "drops", "max_faults_in_a_row", "faults_by",
}  # fmt: skip
SMALLEST: Mapping[str, dict[str, Any]] = {
    "WorldLLM": {"endpoint": "sandbox"},
    "EndpointLLM": {"name": "n", "base_url": "http://localhost/v1", "model": "m"},
    "ServedLLM": {"serve": "vllm", "model": "m"},
}


@pytest.mark.parametrize("model", LLMS, ids=lambda model: model.__name__)
def test_an_llms_identity_holds_everything_that_affects_its_answers(model: type[BaseModel]) -> None:
    llm: Any = model.model_validate(SMALLEST[model.__name__])
    before = dict(llm.identity())
    for name in set(model.model_fields) - REACHED - {"endpoint"}:
        values = [each for each in other_values(model.model_fields[name]) if each != getattr(llm, name)]
        assert values, name
        for value in values:
            assert dict(llm.model_copy(update={name: value}).identity()) != before, (name, value)


def test_options_of_an_llm_are_omitted_by_literals() -> None:
    assert AnswerOptions().options() == {}
    assert AnswerOptions(system_prompt=False).options() == {"system_prompt": False}
    changed = AnswerOptions.model_construct(**{**AnswerOptions().model_dump(), "reasoning_effort": "low"})
    assert changed.options() == {"reasoning_effort": "low"}


ENCODER = component("trainers", "none").model_validate({"base": BASE})
STS = component("evaluators", "sts").model_validate({})
QUERIES = component("methods", "gpl-queries").model_validate({})
DROP = PrepareStep("drop-identical", component("steps", "drop-identical").model_validate({}))
PLAN = AuditPlan("labels", "part", 10, 0, "sandbox", ())
OPERATIONS: Sequence[tuple[Operation, Mapping[str, object]]] = [
    (Train("none", ENCODER, seed=0, evaluator_name="sts", evaluator=STS), {
        "name": "other", "plugin": ENCODER.model_copy(update={"base": Prompts(query="q")}), "seed": 1,
        "until": 0.5,
        "weights": (2.0,), "temperatures": (0.1,), "evaluator": None, "evaluator_name": "other",
        "own_prompts": ({"query": "q: "},),
    }),
    (Evaluate("sts", STS), {
        "name": "other", "prompts": Prompts(query="q"), "own_prompts": ({"query": "q: "},),
    }),
    (Generate("gpl-queries", QUERIES), {"name": "other", "plugin": QUERIES.model_copy(update={"seed": 1})}),
    (GenerateShard("gpl-queries", QUERIES, shard=Shard(0, 2)), {"shard": Shard(1, 2)}),
    (Prepare((DROP,)), {"steps": (DROP, DROP)}),
    (ApplyStep(DROP.name, DROP.plugin), {"name": "other", "own_prompts": ({"query": "q: "},)}),
    (Select(({"a": 1},)), {"candidates": ({"a": 2},)}),
    (AuditLabels(PLAN), {
        "plan": replace(PLAN, seed=1), "plan per_label": replace(PLAN, per_label=2),
        "plan oracle": replace(PLAN, oracle=None),
    }),
]  # fmt: skip
# Fields that do not change a stage's output: names for messages, and when it checks its sources.
OF_MESSAGES = {"parts", "dev_parts", "is_chained", "roots"}
HELD_ELSEWHERE = {"llm", "plugin", "name"}
"""Tried with one operation; all others inherit it."""


@pytest.mark.parametrize(("operation", "changes"), OPERATIONS, ids=lambda each: type(each).__name__)
def test_a_stage_holds_every_field_of_its_operation(
    operation: Operation, changes: Mapping[str, object]
) -> None:
    assert is_dataclass(operation)
    names = {each.name for each in fields(operation)}
    assert names <= {*(key.split()[0] for key in changes), *OF_MESSAGES, *HELD_ELSEWHERE, "steps"}
    for key, value in changes.items():
        changed = replace(operation, **{key.split()[0]: value})
        assert identity(changed) != identity(operation), key


def identity(operation: Operation) -> str:
    operation.assume({})
    return Stage(operation).identity


def test_every_operation_has_a_case() -> None:
    def below(kind: type[Operation]) -> Iterator[type[Operation]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    ours = {each for each in below(Operation) if each.__module__.startswith("synthbench.stages")}
    with_fields = {each for each in ours if fields(each) and not each.__abstractmethods__}  # type: ignore[arg-type]
    assert with_fields <= {*(type(each) for each, _ in OPERATIONS), ReadSource, ReadOwnTask}
