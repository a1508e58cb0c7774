"""Scores of mteb's runner as an Evaluation: named numbers, and item scores where mteb has them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from synthbench.api import Encoder, Evaluation
from synthbench_mteb.tasks import isolated

BATCH_SIZE = 1024
"""Texts that mteb passes at once; the encoder makes its own batches."""
_PER_QUERY = {"ndcg_at": "ndcg_cut", "map_at": "map_cut", "recall_at": "recall", "precision_at": "P"}
"""mteb's name of a mean -> the name of a query's score."""
_DIAGNOSTICS = "nauc_"
"""Prefix of scores that are left out: over a hundred per retrieval task, on abstaining from queries."""
Part = tuple[str, str]
"""Split and subset."""
Items = dict[str, list[Any]]


def score(model: Encoder, task: Any, num_items: int) -> Evaluation:  # noqa: ANN401 - an AbsTask of mteb
    """Return mteb's scores of an encoder on an opened task; `num_items`: used if mteb has no item scores."""
    from synthbench_mteb.encoder import EncoderForMTEB

    with isolated(), TemporaryDirectory() as folder:
        queries = _QueryScores.of(task)
        parts = _scores(EncoderForMTEB(model), task, Path(folder))
        predictions = _predictions(task, Path(folder))
    items = queries.items() if queries is not None else _items(task, predictions)
    main = str(task.metadata.main_score)
    return Evaluation(_named(parts, main), main, len(items.get("id", ())) or num_items, items)


def _scores(model: Any, task: Any, folder: Path) -> Mapping[Part, Mapping[str, Any]]:  # noqa: ANN401
    import mteb

    found = mteb.evaluate(
        model,
        task,
        cache=None,
        co2_tracker=False,
        show_progress_bar=False,
        prediction_folder=folder if _has_predictions(task) else None,
        encode_kwargs={"batch_size": BATCH_SIZE, "show_progress_bar": False},
    ).task_results[0]
    return {(split, each["hf_subset"]): each for split, entries in found.scores.items() for each in entries}


def _named(parts: Mapping[Part, Mapping[str, Any]], main: str) -> dict[str, float]:
    """Return each score's mean over the parts, and `SCORE/PART` for each part unless there is only one."""
    scores: dict[str, list[float]] = {}
    of_parts: dict[str, float] = {}
    for part, values in parts.items():
        numbers = {name: value for name, value in values.items() if _is_score(name, value)}
        # mteb gives no score to a model with constant scores; it counts as the worst, not as missing.
        numbers = {main: 0.0, "main_score": 0.0, **numbers}
        for name, value in numbers.items():
            scores.setdefault(name, []).append(float(value))
            of_parts[f"{name}/{part_name(part, parts)}"] = float(value)
    means = {name: sum(found) / len(found) for name, found in scores.items() if len(found) == len(parts)}
    return means if len(parts) == 1 else {**means, **of_parts}


def _is_score(name: str, value: Any) -> bool:  # noqa: ANN401 - mteb has lists and texts among them
    return not name.startswith(_DIAGNOSTICS) and isinstance(value, int | float) and math.isfinite(value)


def part_name(part: Part, parts: Mapping[Part, Any]) -> str:
    """Return the subset, prefixed by the split if `parts` have several splits."""
    return part[1] if len({split for split, _ in parts}) == 1 else ":".join(part)


def _has_predictions(task: Any) -> bool:  # noqa: ANN401
    """Return whether mteb saves a prediction for each item of this kind of task."""
    from mteb.abstasks import AbsTaskClassification, AbsTaskPairClassification, AbsTaskSTS

    return isinstance(task, AbsTaskClassification | AbsTaskPairClassification | AbsTaskSTS)


def _predictions(task: Any, folder: Path) -> Mapping[Part, Any]:  # noqa: ANN401
    file = folder / task.prediction_file_name
    if not file.is_file():
        return {}
    content = json.loads(file.read_text(encoding="utf-8"))
    content.pop("mteb_model_meta", None)
    return {(split, subset): found for subset, splits in content.items() for split, found in splits.items()}


def _items(task: Any, predictions: Mapping[Part, Any]) -> Items:  # noqa: ANN401
    """Return the item columns of all parts, joined; {} if one part has none."""
    from synthbench_mteb.items import rows_of

    whole: Items = {}
    for (split, subset), predicted in predictions.items():
        columns = _columns(task, rows_of(task, split, subset), predicted)
        if not columns or (whole and whole.keys() != {"id", "part", *columns}):
            return {}
        number = len(next(iter(columns.values())))
        name = part_name((split, subset), predictions)
        found = {"id": [f"{name}:{row}" for row in range(number)], "part": [name] * number, **columns}
        for column, values in found.items():
            whole.setdefault(column, []).extend(values)
    return whole


def _columns(task: Any, rows: Mapping[str, Sequence[Any]], predicted: Any) -> Items:  # noqa: ANN401
    from mteb.abstasks import AbsTaskPairClassification, AbsTaskSTS

    main = task.metadata.main_score
    if isinstance(task, AbsTaskSTS):
        gold = [float(value) for value in rows["score"]]
        is_ranked = main == "cosine_spearman"
        names = ("gold", "predicted") if is_ranked else ("label", "cosine")
        return dict(zip(names, (gold, list(predicted["cosine_scores"])), strict=True))
    labels = list(rows[task.label_column_name])
    if isinstance(task, AbsTaskPairClassification):
        return {"label": labels, "cosine": list(predicted["cosine_scores"])}
    if main != "accuracy" or any(len(each) != len(labels) for each in predicted):
        return {}
    # mteb's accuracy is the mean over classifiers, each trained on another small sample.
    return {
        "value": [
            sum(each[row] == label for each in predicted) / len(predicted) for row, label in enumerate(labels)
        ]
    }


@dataclass
class _QueryScores:
    """The main score of each query: mteb passes them to a method of the task, but saves only their means."""

    key: str
    found: dict[Part, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Any) -> "_QueryScores | None":  # noqa: ANN401
        """Return a collector hooked into a task; None unless the task's main score is a mean over queries."""
        name, _, depth = str(task.metadata.main_score).rpartition("_")
        if not hasattr(task, "task_specific_scores") or name not in _PER_QUERY:
            return None
        scores, add_scores = cls(f"{_PER_QUERY[name]}_{depth}"), task.task_specific_scores

        def shown(of_queries: Mapping[str, Mapping[str, float]], *others: Any, **where: Any) -> Any:  # noqa: ANN401
            part = (where["hf_split"], where["hf_subset"])
            scores.found[part] = {query: each[scores.key] for query, each in of_queries.items()}
            return add_scores(of_queries, *others, **where)

        task.task_specific_scores = shown
        return scores

    def items(self) -> Items:
        """Return the item columns of all parts, joined."""
        rows = [
            (part_name(part, self.found), query, value)
            for part, queries in self.found.items()
            for query, value in sorted(queries.items())
        ]
        return {
            "id": [f"{name}:{query}" for name, query, _ in rows],
            "part": [name for name, _, _ in rows],
            "value": [value for _, _, value in rows],
        }
