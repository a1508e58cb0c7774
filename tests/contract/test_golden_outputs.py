"""Golden outputs: one small stage of every method, step, trainer and evaluator, pinned with its version.

A component's output may change only when its `version` does: stores serve artifacts by it. After raising a
version, or adding a case: `make golden`, which refuses outputs that changed under the same version. A case
that is changed itself gets another name.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from synthbench.api import (
    ChatAnswer,
    ChatModel,
    ChatRequest,
    Evaluation,
    Evaluator,
    GenerationContext,
    Method,
    Ranking,
    Record,
    RecordKind,
    Runtime,
    ScoredPair,
    Sentence,
    Step,
    StepContext,
    SyntheticDataset,
    Trainer,
    TrainingContext,
    Triplet,
    Unit,
)
from synthbench.models import artifact
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.pretrained import Pretrained, build_cross_encoder
from synthbench.plugin_loading import GROUPS, component, installed

GOLDEN = Path(__file__).with_name("golden_outputs.json")
EXACT, ROUNDED = 1e-9, 1e-3
"""Relative tolerances: of arithmetic in float64, and of models, whose sums depend on the processor."""
SMALLEST = 1e-6
ENCODER = {"model": "sandbox/encoder"}
TEXTS = (
    "A man plays a red guitar on the stage.",
    "Two dogs run along the wet beach.",
    "The girl paints a picture of the sea.",
    "A man is playing the guitar.",
    "Some dogs are running on the beach at noon.",
    "The children are asleep in the old house.",
    "Heavy rain delays trains in the north.",
    "A girl is painting.",
)
PAIRS = [(TEXTS[0], TEXTS[3]), (TEXTS[1], TEXTS[4]), (TEXTS[2], TEXTS[7]), (TEXTS[5], TEXTS[6])]
SCORES = (0.8, 1.0, 0.6, 0.0)
LABELS = {
    "1": {"instruction": 'Write two sentences that mean the same.\n1: "<X1>"\n2: "'},
    "0.5": {"instruction": 'Write two similar sentences.\n1: "<X1>"\n2: "', "counterlabels": ["1"]},
    "0": {"instruction": 'Write two unlike sentences.\n1: "<X1>"\n2: "', "counterlabels": ["0.5", "1"]},
}


def number(*of: object) -> int:
    """Return a number that looks random and is the same for equal arguments everywhere."""
    return int.from_bytes(hashlib.sha256(repr(of).encode()).digest()[:6])


class Model:
    """Gives sentences vectors and pairs scores that no machine computes otherwise."""

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        rows = [[number(text, axis) / 2**47 - 1 for axis in range(4)] for text in sentences]
        return np.array(rows, np.float32)

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([number(*pair) % 1000 / 1000 for pair in pairs])


class Chat:
    """Answers with a list, or a sentence, that tells every request from every other."""

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        for asked in requests:
            told = number(asked.key, asked.sample, asked.sampling, asked.messages)
            lines = [f"{line}. The number {line} of {told} is new." for line in range(1, 22)]
            is_list = not asked.messages[-1]["content"].startswith("Input:")
            yield ChatAnswer(asked, "\n".join(lines) if is_list else f"Sentence: It says {told}.", "")


class Silent:
    """Progress that nobody sees."""

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Silent"]:
        yield self

    def advance(self, amount: int = 1) -> None: ...

    def say(self, message: str) -> None: ...


@dataclass
class Context:
    """What a method asks for: the models above and given data sets; remembers what it counts."""

    datasets: Mapping[str, SyntheticDataset]
    counted: dict[str, float] = field(default_factory=dict)
    runtime: Runtime = field(default_factory=lambda: Runtime(device="cpu", threads=1))
    progress: Silent = field(default_factory=Silent)
    finished_units: frozenset[str] = frozenset()
    llm: ChatModel = field(default_factory=lambda: ChatModel("llm", "http://127.0.0.1:1/v1", "a-model"))

    def is_mine(self, piece: int) -> bool:
        return True

    def chat(self) -> Chat:
        return Chat()

    def pair_scorer(self, need: str) -> Model:
        return Model()

    def encoder(self, need: str) -> Model:
        return Model()

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        return iter(())

    def dataset(self, need: str) -> SyntheticDataset:
        return self.datasets[need]

    def records(self, need: str) -> SyntheticDataset:
        return self.datasets[need]

    def source(self, name: str) -> SyntheticDataset | None:
        return self.datasets.get(name)

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        self.counted[reason] = self.counted.get(reason, 0) + amount

    def measure(self, name: str, value: float) -> None:
        self.counted[name] = value


@dataclass(frozen=True)
class Output:
    """What a stage came to: texts that are equal everywhere, and numbers that are nearly so."""

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

    @property
    def plugin(self) -> Any:
        return component(self.group, self.name)

    def output(self, folder: Path) -> Output:
        """Run the stage."""
        configured = self.plugin.model_validate_json(json.dumps(self.settings))
        run: Callable[..., tuple[Sequence[str], Mapping[str, Sequence[float]]]]
        run = {"methods": generated, "steps": prepared, "trainers": trained, "evaluators": evaluated}[
            self.group
        ]
        texts, numbers = run(configured, self.data, folder)
        return Output(texts, numbers, self.tolerance)


def generated(method: Method, data: Mapping[str, SyntheticDataset], _: Path) -> Any:
    """Return what a method needs and makes: keys, texts and provenance, and apart from them the scores."""
    context = Context(data)
    needs = method.needs()
    sources = {name: each for name, each in data.items() if name not in needs}
    texts = [json.dumps({name: asdict(each) for name, each in needs.items()})]
    scores: list[float] = []
    outputs = list(method.generate(sources, cast("GenerationContext", context)))
    # Units come in any order: their positions decide where their records stand in the data set.
    for made in sorted(outputs, key=lambda each: each.position if isinstance(each, Unit) else 0):
        records: Sequence[Record] = made.records if isinstance(made, Unit) else [made]
        values = [record.values() for record in records]
        scores += [each.pop("score") for each in values if "score" in each]
        about = [made.key, made.position, dict(made.dropped)] if isinstance(made, Unit) else []
        texts.append(json.dumps([*about, *values]))
    return texts, {"scores": scores, **{name: [value] for name, value in context.counted.items()}}


def prepared(step: Step, data: Mapping[str, SyntheticDataset], _: Path) -> Any:
    """Return what a step makes of "data", with what it counts; other data sets are its further sources."""
    context = Context(data)
    records = tuple(data["data"])
    after = step.apply(records, cast("StepContext", context))
    values = [record.values() for record in after]
    scores = [each.pop("score") for each in values if "score" in each]
    counted = {name: [value] for name, value in context.counted.items()}
    return [step.remark(records, after), *map(json.dumps, values)], {"scores": scores, **counted}


def trained(trainer: Trainer, data: Mapping[str, SyntheticDataset], folder: Path) -> Any:
    """Return what a training tells, and what its model makes of some sentences."""
    for name in ("checkpoints", "output"):
        (folder / name).mkdir()
    runtime = Runtime(device="cpu", threads=1)
    scored: list[float] = []

    def select(scorer: PairScorer) -> float:
        scored.extend(scorer.score(PAIRS).tolist())
        return scored[0]

    summary = trainer.train(
        list(data.values()),
        TrainingContext(1, folder / "checkpoints", folder / "output", runtime, Silent(), select),
    )
    model = artifact.load(folder / "output", runtime)
    made = model.encode(TEXTS[:2])[:, :4].ravel() if isinstance(model, Encoder) else model.score(PAIRS)
    texts = [f"{summary.num_steps} steps on {summary.num_records} records, best {summary.best_step}"]
    texts += sorted(path.name for path in (folder / "output").iterdir())
    curve = [value for _, name, value in summary.history if name == "loss"]
    return texts, {"loss": curve, "dev": scored, "model": made.tolist()}


def evaluated(evaluator: Evaluator, data: Mapping[str, SyntheticDataset], _: Path) -> Any:
    """Return scores, per-item columns and influences."""
    found: Evaluation = evaluator.evaluate(Model(), data["task"])
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


def sentences(*texts: str, **columns: Any) -> SyntheticDataset:
    records = [Sentence(id=f"s{row}", sentence=text, **columns) for row, text in enumerate(texts)]
    return SyntheticDataset.create(RecordKind.SENTENCE, records)


def pairs(
    number_of: int = 4, scores: Sequence[float] = SCORES, splits: Sequence[str] = ("train",), **columns: Any
) -> SyntheticDataset:
    records = []
    for row in range(number_of):
        first, second = PAIRS[row % 4]
        texts = {"sentence1": first, "sentence2": f"{second}{' Again.' * (row // 4)}"}
        score, split = scores[row % len(scores)], splits[row % len(splits)]
        records.append(ScoredPair(id=f"p{row}", score=score, split=split, **texts, **columns))
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def task() -> SyntheticDataset:
    """Return test pairs of two subsets."""
    found = [
        ScoredPair(id=str(row), sentence1=f"a {row}", sentence2="b", score=row % 7 / 6, subset="xy"[row % 2])
        for row in range(20)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, found)


def classes(splits: Sequence[str]) -> SyntheticDataset:
    """Return sentences of two classes, the texts of each class alike in length."""
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


def triplets() -> SyntheticDataset:
    found = [
        Triplet(anchor=a, positive=b, negative=TEXTS[(row * 3 + 5) % 8]) for row, (a, b) in enumerate(PAIRS)
    ]
    return SyntheticDataset.create(RecordKind.TRIPLET, found)


@cache
def ready_cross_encoder() -> str:
    """Return the folder of a cross-encoder with a head."""
    folder = tempfile.mkdtemp()
    build_cross_encoder(Pretrained(model="sandbox/cross-encoder"), 5, "cpu").save(folder)
    return folder


def augsbert(**sampler: Any) -> dict[str, Any]:
    return {"cross_encoder": {"base": ENCODER}, "seed": 3, "sampler": sampler}


def cases() -> dict[str, Case]:
    """Return the cases by name; each method, trainer and evaluator has at least one."""
    short = {"base": ENCODER, "epochs": 2.0, "batch_size": 2, "learning_rate": 1e-3, "evaluations": 1}
    gold, both = {"gold": pairs()}, {"bi_encoder": {"base": ENCODER}}
    labelled = {"gold": pairs(), "labelled": pairs(40, [row / 40 for row in range(40)])}
    found = {"gold": pairs(), "bm25": pairs(3), "semantic-search": pairs(6)}
    lm = {"language_model": {"model": "sandbox/lm"}, "seed": 1, "max_new_tokens": 12, "tries": 2}
    task_of = {"task": {"labels": LABELS}}
    written = {"sentences": sentences(*TEXTS[:3])}
    halves, thirds = ("train", "test"), ("train", "dev", "test")
    methods = {
        "augsbert random": ("augsbert", augsbert(name="random", size=6), gold),
        "augsbert kde": ("augsbert", augsbert(name="kde", size=40), labelled),
        "augsbert kde by class": (
            "augsbert",
            augsbert(name="kde", size=40),
            {**labelled, "gold": pairs(scores=(1.0, 1.0, 1.0, 0.0))},
        ),
        "augsbert bm25": ("augsbert", augsbert(name="bm25", k=2), gold),
        "augsbert semantic": ("augsbert", augsbert(name="semantic-search", k=2, **both), gold),
        "augsbert both": (
            "augsbert",
            augsbert(name="bm25+semantic-search", k=2, semantic_k=1, **both),
            found,
        ),
        "augsbert-domain": (
            "augsbert-domain",
            {"cross_encoder": {"base": ENCODER}, "both_orders": False},
            {"gold": pairs(1), "target": pairs(3)},
        ),
        "contextual-substitution": (
            "contextual-substitution",
            {"language_model": ENCODER, "top_k": 20, "copies": 2},
            {"gold": pairs(2)},
        ),
        "relabel": (
            "relabel",
            {"labeller": {"cross_encoder": {"base": ENCODER}}, "seed": 3},
            {"pairs": pairs(), "gold": pairs()},
        ),
        "relabel mixed": (
            "relabel",
            {"labeller": {"cross_encoder": {"base": ENCODER}}, "share": 0.5, "within": 0.6},
            {"pairs": pairs(), "gold": pairs(), "scores": pairs(scores=(0.1, 0.9, 0.5, 0.2))},
        ),
        "relabel triplets by cosine": (
            "relabel",
            {"labeller": {"encoder": {"base": ENCODER}}},
            {"triplets": triplets()},
        ),
        "dino": ("dino", {**lm, **task_of, "samples": 1, "decay": 20.0}, {"x1": sentences(*TEXTS[:2])}),
        "dino x1": (
            "dino",
            {**lm, **task_of, "samples": 1, "x1": {"size": 3}},
            {"x1": sentences(TEXTS[2])},
        ),
        "dino-texts": ("dino-texts", {**lm, "size": 3, "labels": {"a": {"instruction": 'Say: "'}}}, {}),
        "syncse-partial": ("syncse-partial", {"seed": 2}, {"sentences": sentences(*TEXTS[:3])}),
        "syncse-scratch": ("syncse-scratch", {"size": 30}, written),
        "syncse-naive": ("syncse-naive", {"size": 30}, written),
        "syncse-sentences": ("syncse-sentences", {"size": 30, "seed": 2}, {}),
        "syncse-sentences domain": ("syncse-sentences", {"size": 20, "domain": "biomedicine"}, {}),
    }
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
        "simcse pairs, cached": (
            "simcse",
            {**short, "learns_from": "pair", "pooling": "mean", "batch_size": 4, "chunk_size": 2},
            {"silver": triplets()},
        ),
    }
    if torch.backends.mkl.is_available():
        # MKL draws dropout masks that are the same on every processor; others draw others.
        unsupervised = {**short, "learns_from": "sentence", "dropout": 0.1}
        trainers["simcse sentences"] = ("simcse", unsupervised, {"silver": sentences(*TEXTS)})
    again = pairs(12, scores=(0.2, 0.9, 0.4), splits=("train",))
    steps = {
        f"step {name}": (name, settings, {"data": again, "task": task(), "gold": pairs()})
        for name, settings in {
            "add-random-negatives": {"per_group": 1, "seed": 3},
            "drop-duplicates": {"unordered": True, "normalised": True},
            "drop-identical": {"normalised": True},
            "drop-overlap": {"sources": ["gold", "missing"]},
            "drop-refusals": {},
            "keep-per-group": {"columns": ["sentence1"], "most": 2, "seed": 1},
            "length": {"max_words": 7},
            "drop-contaminated": {"sources": ["gold", "missing"]},
            "drop-near-duplicates": {"threshold": 0.7, "seed": 1},
            "judge": {"question": {"prompt": "{sentence1} {sentence2}"}, "unclear": "keep"},
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
    modelled = {"contextual-substitution", *trainers}
    return {
        name: Case(group, plugin, settings, data, ROUNDED if name in modelled else EXACT)
        for group, listed in (
            ("methods", methods),
            ("steps", steps),
            ("trainers", trainers),
            ("evaluators", evaluators),
        )
        for name, (plugin, settings, data) in listed.items()
    }


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


def test_every_component_has_a_case() -> None:
    """Cases that are gone leave the file with the next `make golden`."""
    assert {(case.group, case.name) for case in CASES.values()} >= {
        (group, name) for group in GROUPS for name, point in installed(group).items() if is_ours(point)
    }
    assert pinned().keys() >= CASES.keys()


def is_ours(point: Any) -> bool:
    return point.dist is None or point.dist.name == "synthbench"
