"""Golden outputs: one small stage of every method, step, trainer and evaluator, pinned with its version.

A component's output may change only when its `version` does: stores serve artifacts by it. After raising a
version, or adding a case: `make golden`, which refuses outputs that changed under the same version. A case
that is changed itself gets another name.
"""

import hashlib
import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
from contract.method_cases import METHOD_CASES
from contract.stand_ins import (
    ENCODER,
    PAIRS,
    TEXTS,
    Context,
    Model,
    Reply,
    Silent,
    numbered,
    pairs,
    sentences,
    triplets,
)
from contract.step_cases import STEP_CASES
from mteb_folders import write_tasks

from synthbench.api import (
    Evaluation,
    Evaluator,
    GenerationContext,
    Method,
    Pair,
    Ranking,
    Record,
    RecordKind,
    RetrievalText,
    Runtime,
    ScoredPair,
    Sentence,
    Step,
    StepContext,
    SyntheticDataset,
    Trainer,
    TrainingContext,
    Unit,
)
from synthbench.models import artifact
from synthbench.models.building import build_cross_encoder
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.importers import Importer, ImportOptions
from synthbench.plugins.loading import GROUPS, component, installed

GOLDEN = Path(__file__).with_name("golden_outputs.json")
EXACT, ROUNDED = 1e-9, 1e-3
"""Relative tolerances: of arithmetic in float64, and of models, whose sums depend on the processor."""
SMALLEST = 1e-6


@dataclass(frozen=True)
class Output:
    """A stage's golden output: exact texts, and numbers with a tolerance."""

    texts: Sequence[str]
    numbers: Mapping[str, Sequence[float]]
    tolerance: float


@dataclass(frozen=True)
class Case:
    """A component with its settings, and the data sets that it gets."""

    group: str
    name: str
    settings: Mapping[str, Any]
    data: Mapping[str, SyntheticDataset] = field(default_factory=dict)
    tolerance: float = EXACT
    reply: Reply = numbered

    @property
    def plugin(self) -> Any:
        return component(self.group, self.name)

    def output(self, folder: Path) -> Output:
        """Run the stage."""
        configured = self.plugin.model_validate_json(json.dumps(self.settings))
        run: Callable[..., tuple[Sequence[str], Mapping[str, Sequence[float]]]]
        run = {
            "methods": generated,
            "steps": prepared,
            "trainers": trained,
            "evaluators": evaluated,
            "importers": imported,
        }[self.group]
        texts, numbers = run(configured, self, folder)
        return Output(texts, numbers, self.tolerance)


ROWS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "dino": [
        {"text_a": "A man. ", "text_b": "a man", "label": "0.5"},
        {"text_a": "A man.", "text_b": "A dog.", "label": 0.9},
        {"text_a": "A man.", "text_b": " ", "label": "1"},
        {"text_a": "A cat.", "text_b": None, "label": "good"},
    ],
    "reranking": [
        {"query": ["q", "r"], "positive": ["a"], "negative": ["b", "c"], "order": [0, 1, 0]},
        {"id": "x", "query": "q", "positive": ["a"], "negative": []},
        {"query": "q", "positive": [], "negative": []},
    ],
    "clhaif": [
        {"anchor": "A man.", "positive": "A person.", "negative": "A dog.", "good": 0.9, "bad": 0.1},
        {"anchor": "A cat.", "positive": " ", "negative": "A dog.", "good": 0.8, "bad": 0},
    ],
}
"""Files in the formats of importers."""


def imported(importer: Importer, case: Case, folder: Path) -> Any:
    """Return the records read of each kind, with their conversions and the dropped ones."""
    file = folder / f"rows{importer.suffix}"
    rows = ROWS[case.name]
    if importer.suffix == ".csv":
        pd.DataFrame(rows).to_csv(file, index=False)
    else:
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    asked = [(None, False), *((kind, False) for kind in importer.kinds), *((k, True) for k in importer.makes)]
    contents = [importer.read(file, kind, ImportOptions("dev", converts=made)) for kind, made in asked]
    records = [json.dumps(record.values()) for content in contents for record in content.records]
    return [*records, *(json.dumps([content.dropped, content.notes]) for content in contents)], {}


def generated(method: Method, case: Case, _: Path) -> Any:
    """Return a method's dependencies and output: keys, texts and provenance; the scores separately."""
    context = Context(case.data, case.reply)
    needs = method.needs()
    sources = {name: each for name, each in case.data.items() if name not in needs}
    texts = [json.dumps({name: asdict(each) for name, each in needs.items()})]
    scores: list[float] = []
    outputs = list(method.generate(sources, cast("GenerationContext", context)))
    # Units come in any order: their positions decide the order of their records in the data set.
    for made in sorted(outputs, key=lambda each: each.position if isinstance(each, Unit) else 0):
        records: Sequence[Record] = made.records if isinstance(made, Unit) else [made]
        values = [record.values() for record in records]
        scores += [each.pop("score") for each in values if "score" in each]
        about = [made.key, made.position, dict(made.dropped)] if isinstance(made, Unit) else []
        texts.append(json.dumps([*about, *values]))
    return texts, {"scores": scores, **{name: [value] for name, value in context.counted.items()}}


def prepared(step: Step, case: Case, _: Path) -> Any:
    """Return a step's output for "data", with its counts; other data sets are its further sources."""
    context = Context(case.data, case.reply)
    records = case.data["data"]
    made = list(step.apply(records, cast("StepContext", context)))
    after = SyntheticDataset.create(step.kind_after(records.kind), made)
    values = [record.values() for record in after]
    scores = [each.pop("score") for each in values if "score" in each]
    counted = {name: [value] for name, value in context.counted.items()}
    return [step.remark(records, after), *map(json.dumps, values)], {"scores": scores, **counted}


def trained(trainer: Trainer, case: Case, folder: Path) -> Any:
    """Return a training's summary, and its model's output for some sentences."""
    for name in ("checkpoints", "output"):
        (folder / name).mkdir()
    runtime = Runtime(device="cpu", threads=1)
    scored: list[float] = []

    def select(scorer: PairScorer) -> float:
        scored.extend(scorer.score(PAIRS).tolist())
        return scored[0]

    summary = trainer.train(
        list(case.data.values()),
        TrainingContext(1, folder / "checkpoints", folder / "output", runtime, Silent(), select),
    )
    model = artifact.load(folder / "output", runtime)
    made = model.encode(TEXTS[:2])[:, :4].ravel() if isinstance(model, Encoder) else model.score(PAIRS)
    texts = [f"{summary.num_steps} steps on {summary.num_records} records, best {summary.best_step}"]
    texts += sorted(path.name for path in (folder / "output").iterdir())
    curve = [value for _, name, value in summary.history if name == "loss"]
    return texts, {"loss": curve, "dev": scored, "model": made.tolist()}


def evaluated(evaluator: Evaluator, case: Case, _: Path) -> Any:
    """Return scores, per-item columns and influences."""
    found: Evaluation = evaluator.evaluate(Model(), case.data["task"])
    columns = {name: np.array(values) for name, values in found.items.items()}
    influence = evaluator.influence(columns, found.scores)
    numbers = {name: [value] for name, value in found.scores.items()}
    texts = [f"{found.main_score} of {found.num_items}"]
    for name, column in columns.items():
        if column.dtype.kind == "f":
            numbers[f"items: {name}"] = column.tolist()
        elif name != "id":
            texts.append(f"{name}: {column.tolist()}")
    return texts, numbers | ({} if influence is None else {"influence": influence.tolist()})


def task() -> SyntheticDataset:
    """Return test pairs of two subsets."""
    found = [
        ScoredPair(id=str(row), sentence1=f"a {row}", sentence2="b", score=row % 7 / 6, subset="xy"[row % 2])
        for row in range(20)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, found)


@cache
def mteb_folder() -> str:
    """Return a folder with a small task in mteb's layout."""
    folder = Path(tempfile.mkdtemp())
    write_tasks(folder, ("STS12",))
    return str(folder)


def classes(splits: Sequence[str]) -> SyntheticDataset:
    """Return sentences of two classes; texts within a class have similar lengths."""
    found = [
        Sentence(
            id=str(row), sentence="word " * (1 + row % 3) + str(row), label="ab"[row // 2 % 2], split=split
        )
        for row in range(60)
        for split in [splits[row % len(splits)]]
    ]
    return SyntheticDataset.create(RecordKind.SENTENCE, found)


def rankings() -> SyntheticDataset:
    found = [
        Ranking(
            id=str(row),
            query=f"query {row}",
            further_queries=("also",) * (row % 2),
            candidates=tuple(f"candidate {each}" for each in range(4 + row)),
            grades=tuple(float((each + row) % 3 == 0 and row != 5) for each in range(4 + row)),
            subset="xy"[row % 2],
        )
        for row in range(6)
    ]
    return SyntheticDataset.create(RecordKind.RANKING, found)


def bitext() -> SyntheticDataset:
    found = [Pair(id=str(row), anchor=anchor, positive=other) for row, (anchor, other) in enumerate(PAIRS)]
    return SyntheticDataset.create(RecordKind.PAIR, found, config={"task": "bitext"})


def corpus() -> SyntheticDataset:
    passages = [RetrievalText(id=f"passage/{row}", text=text) for row, text in enumerate(TEXTS)]
    queries = [
        RetrievalText(
            id=f"query/{row}",
            text=f"query {row}",
            judged=(f"passage/{row}", "passage/5"),
            grades=(1, row % 3),
        )
        for row in range(5)
    ]
    return SyntheticDataset.create(RecordKind.RETRIEVAL, [*passages, *queries])


@cache
def ready_cross_encoder() -> str:
    """Return the folder of a cross-encoder with a head."""
    folder = tempfile.mkdtemp()
    build_cross_encoder(Pretrained(model="sandbox/cross-encoder"), 5, "cpu").save(folder)
    return folder


def cases() -> dict[str, Case]:
    """Return the cases by name; each method, trainer and evaluator has at least one."""
    short = {"base": ENCODER, "epochs": 2.0, "batch_size": 2, "learning_rate": 1e-3, "evaluations": 1}
    halves, thirds = ("train", "test"), ("train", "dev", "test")
    trainers = {
        "none": ("none", {"base": ENCODER}, {}),
        "none-cross-encoder": ("none-cross-encoder", {"base": {"model": ready_cross_encoder()}}, {}),
        "baseline jaccard": ("baseline", {"scorer": "jaccard"}, {}),
        "baseline constant": ("baseline", {"scorer": "constant"}, {}),
        "bi-encoder": ("bi-encoder", short, {"gold": pairs()}),
        "cross-encoder": ("cross-encoder", {**short, "both_orders": True}, {"gold": pairs()}),
        "simcse triplets": (
            "simcse",
            {**short, "hard_negative_weight": 0.5, "temperature": 0.1, "mlm_weight": 0.1},
            {"silver": triplets()},
        ),
        "simcse soft labels, masked": (
            "simcse",
            {
                **short,
                "batch_size": 4,
                "soft_labels": "all",
                "false_negatives": {"teacher": {**ENCODER, "pooling": "mean"}, "above": 0.6},
            },
            {"silver": triplets(scored=True)},
        ),
        "simcse pairs, cached": (
            "simcse",
            {**short, "learns_from": "pair", "pooling": "mean", "batch_size": 4, "chunk_size": 2},
            {"silver": triplets()},
        ),
    }
    if torch.backends.mkl.is_available():
        # With MKL, dropout masks are the same on every processor; other libraries draw other masks.
        unsupervised = {**short, "learns_from": "sentence", "dropout": 0.1}
        trainers["simcse sentences"] = ("simcse", unsupervised, {"silver": sentences(*TEXTS)})
    again = pairs(12, scores=(0.2, 0.9, 0.4), splits=("train",))
    steps = {
        f"step {name}": (name, settings, {"data": again, "task": task(), "gold": pairs()})
        for name, settings in {
            "add-random-negatives": {"per_group": 1, "seed": 3},
            "add-swapped": {},
            "drop-duplicates": {"unordered": True, "normalised": True},
            "drop-identical": {"normalised": True},
            "drop-overlap": {"sources": ["gold", "missing"]},
            "drop-refusals": {},
            "keep-per-group": {"columns": ["sentence1"], "most": 2, "seed": 1},
            "length": {"max_words": 7},
            "drop-contaminated": {"sources": ["gold", "missing"]},
            "drop-near-duplicates": {"threshold": 0.7, "seed": 1},
            "judge": {"question": {"prompt": "{sentence1} {sentence2}"}, "unclear": "keep"},
            "keep-best": {"labeller": {"encoder": {"base": ENCODER}}, "size": 4},
            "keep-consistent": {"labeller": {"encoder": {"base": ENCODER}}, "tolerance": 0.6},
            "keep-language": {"language": "en", "sure": 0.6},
            "sample": {"size": 5, "seed": 2},
            "semantic-dedup": {"encoder": {"base": ENCODER}, "threshold": 0.6},
            "smooth-labels": {"epsilon": 0.1},
            "split": {"dev": 0.25, "seed": 4},
        }.items()
    }
    steps["step mine-negatives"] = (
        "mine-negatives",
        {"encoder": {"base": ENCODER}, "number": 2},
        {"data": triplets()},
    )
    steps["step mine-negatives bm25"] = (
        "mine-negatives",
        {"miner": "bm25", "number": 2},
        {"data": triplets()},
    )
    steps["step relabel-retrieved"] = (
        "relabel-retrieved",
        {"rankings": [{"encoder": {"base": ENCODER}}], "number": 2, "negative": "drawn"},
        {"data": triplets()},
    )
    steps["step write-negatives"] = ("write-negatives", {"number": 2, "add": True}, {"data": triplets()})
    steps["step draw-negatives"] = ("draw-negatives", {"number": 1, "seed": 2}, {"data": triplets()})
    steps["step score-triplets"] = (
        "score-triplets",
        {"labeller": {"encoder": {"base": ENCODER}}, "scale": "own"},
        {"data": triplets()},
    )
    evaluators = {
        "sts": ("sts", {}, {"task": task()}),
        "sts mean": ("sts", {"aggregation": "mean"}, {"task": task()}),
        "sts wmean": ("sts", {"aggregation": "wmean"}, {"task": task()}),
        "reranking": ("reranking", {}, {"task": rankings()}),
        "retrieval": ("retrieval", {}, {"task": corpus()}),
        "bitext": ("bitext", {}, {"task": bitext()}),
        "reranking mixed": ("reranking", {"queries": "mixed"}, {"task": rankings()}),
        **{
            f"pairs {measure}": (
                "pairs",
                {"measure": measure},
                {"task": pairs(24, splits=("dev", "test", "test"))},
            )
            for measure in ("f1", "accuracy", "average_precision", "auc_0.05")
        },
        "transfer": ("transfer", {}, {"task": classes(thirds)}),
        "transfer folds": ("transfer", {"folds": 2}, {"task": classes(halves)}),
        "transfer nested": (
            "transfer",
            {"folds": 2, "classifier": "logistic-regression"},
            {"task": classes(["test"])},
        ),
        "transfer-pairs": ("transfer-pairs", {}, {"task": pairs(60, splits=thirds)}),
    }
    if importlib.util.find_spec("mteb") is not None and "mteb" in installed("evaluators"):
        named = SyntheticDataset.create(RecordKind.SENTENCE, sentences("a"), config={"task": "STS12"})
        evaluators["mteb"] = ("mteb", {"folder": mteb_folder()}, {"task": named})
    modelled = {"contextual-substitution", *trainers}
    methods = {
        name: Case(
            "methods",
            case.name,
            case.settings,
            case.data,
            ROUNDED if case.name in modelled else EXACT,
            case.reply,
        )
        for name, case in METHOD_CASES.items()
    }
    of_llms = {
        f"step {name} by an LLM": Case("steps", name, case.settings, case.data, EXACT, case.reply)
        for name, case in STEP_CASES.items()
    }
    return (
        methods
        | of_llms
        | {
            name: Case(group, plugin, settings, data, ROUNDED if name in modelled else EXACT)
            for group, listed in (
                ("steps", steps),
                ("trainers", trainers),
                ("evaluators", evaluators),
                ("importers", {f"{name} files": (name, {}, {}) for name in ROWS}),
            )
            for name, (plugin, settings, data) in listed.items()
        }
    )


CASES = cases()


def pinned() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.is_file() else {}
    return content


def changes(output: Output, known: Mapping[str, Any]) -> Iterator[str]:
    """Say what differs from a pinned output."""
    first = next((text for text in output.texts[1:]), "")
    if digest(output.texts) != known["sha256"]:
        yield f"its {len(output.texts)} texts, the second now {first!r}, before {known['second']!r}"
    for name in sorted({*output.numbers, *known["numbers"]}):
        now, before = output.numbers.get(name, []), known["numbers"].get(name, [])
        if now != pytest.approx(before, rel=output.tolerance, abs=SMALLEST):
            yield f"{name}: {now}, before {before}"


def digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@pytest.mark.parametrize("name", CASES)
def test_an_output_changes_only_with_its_version(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case, known = CASES[name], pinned().get(name)
    output, version = case.output(tmp_path), case.plugin.version
    if known is not None and version == known["version"]:
        changed = "; ".join(changes(output, known))
        assert not changed, f"output changed: raise `version` or mend the code: {changed}"
    elif request.config.getoption("renew"):
        second = next((text for text in output.texts[1:]), "")
        numbers = {
            each: [float(f"{value:.10g}") for value in values] for each, values in output.numbers.items()
        }
        entry = {"version": version, "second": second, "sha256": digest(output.texts), "numbers": numbers}
        kept = {each: value for each, value in pinned().items() if each in CASES}
        content = {each: (kept | {name: entry})[each] for each in CASES if each in kept or each == name}
        lines = (f"{json.dumps(each)}: {json.dumps(value)}" for each, value in content.items())
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    else:
        pytest.fail(f"{case.name}: version {version} has no golden output: make golden")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.group == "evaluators"])
def test_each_item_of_an_evaluator_has_its_sentences_unless_they_are_unknown(name: str) -> None:
    case = CASES[name]
    evaluator = case.plugin.model_validate_json(json.dumps(case.settings))
    test_set = case.data["task"]

    sentences = evaluator.sentences(test_set)

    if sentences is None:
        assert case.name == "mteb", "its items are no records"
        return
    items = evaluator.evaluate(Model(), test_set).items["id"]
    assert {*items} <= sentences.keys()
    texts = {text for row in test_set.text_rows() for text in row}
    assert all(sentences[item] and {*sentences[item]} <= texts for item in items)


def test_every_component_has_a_case() -> None:
    """Cases that are gone leave the file with the next `make golden`."""
    assert {(case.group, case.name) for case in CASES.values()} >= {
        (group, name) for group in GROUPS for name, point in installed(group).items() if is_ours(point)
    }
    assert pinned().keys() >= CASES.keys()


def is_ours(point: Any) -> bool:
    return point.dist is None or point.dist.name == "synthbench"
