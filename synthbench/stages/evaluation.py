"""Stages that score a model on a task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, model_validator

from synthbench.base.errors import UserError
from synthbench.base.runtime import use_threads
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import DATASET_FOLDER, model_folder, read_dataset, write_json
from synthbench.engine.stage import GroupMember, Stage
from synthbench.engine.workspace import Workspace
from synthbench.models.interfaces import Encoder, PairScorer, of_passages, of_queries
from synthbench.models.pretrained import Prompts
from synthbench.plugins.model_contracts import Evaluation, Evaluator
from synthbench.stages.own_prompts import OF_QUERIES, OwnPrompts, as_setting
from synthbench.stages.plugin_calls import PluginOperation, check_task, checked_return

if TYPE_CHECKING:
    import pyarrow as pa

    from synthbench.models.encoder import StoredVectors

SCORES_FILE = "scores.json"
M = TypeVar("M", bound="Encoder | PairScorer")


class Scores(BaseModel):
    """The content of scores.json."""

    model_config = ConfigDict(extra="forbid")

    main_score: str
    scores: dict[str, float]
    num_items: int
    num_dropped: int = 0

    @model_validator(mode="after")
    def _has_the_main_one(self) -> Self:
        if self.main_score not in self.scores:
            raise ValueError("main_score is not among its scores")
        return self


ITEMS_FILE = "items.parquet"


SENTENCES = "sentences"


def read_items(file: Path, sentences: Mapping[str, Sequence[str]] | None) -> "pa.Table":
    """Return per-item scores; adds a column of each item's sentence ids if `sentences` has all items."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    items = pq.read_table(file)
    if sentences is None or "id" not in items.column_names or SENTENCES in items.column_names:
        return items
    ids = [sentences.get(str(item)) for item in items.column("id").to_pylist()]
    return items if None in ids else items.append_column(SENTENCES, pa.array(ids, pa.list_(pa.string())))


@dataclass(frozen=True)
class Evaluate(PluginOperation[Evaluator]):
    """Scores the "model" input on the "task" input; tasks with equal model and prompts share one pass."""

    kind: ClassVar[str] = "evaluate"
    prompts: Prompts | None = None
    """Prompts that replace the model's own before queries and passages; None keeps its own."""
    own_prompts: OwnPrompts = ()
    """The model's query and passage prompts, which rankings use, if they differ from its usual prompt."""

    def config(self) -> Mapping[str, Any]:
        """Return the evaluator's settings, and the prompts, if any."""
        own = {**super().config(), **as_setting(self.own_prompts)}
        return own if self.prompts is None else {**own, "prompts": self.prompts.model_dump(mode="json")}

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Raise UserError if the evaluator can't measure anything on its task."""
        check_task(self.plugin, inputs["task"] / DATASET_FOLDER)

    def group(self, inputs: Mapping[str, Stage]) -> str:
        """Return model and prompts as a key; evaluations with equal keys share one pass over the texts."""
        prompts = "" if self.prompts is None else f" {self.prompts.model_dump_json()}"
        return f"evaluate {inputs['model'].identity}{prompts}"

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Score one task."""
        for _ in self.run_together([GroupMember(self, inputs, work)]):
            pass

    def run_together(self, others: Sequence[GroupMember]) -> Iterator[GroupMember]:
        """Load the model once, encode the sentences of all tasks in one pass, and score each task.

        Texts with query or passage prompts are encoded during scoring. Yields each member once its scores are
        written. Raises UserError if an evaluator needs vectors and the model gives none.
        """
        from synthbench.models.artifact import load
        from synthbench.models.encoder import resumable
        from synthbench.models.pair_scorer import CosineScorer

        first = others[0]
        use_threads(first.work.runtime)
        work = first.work
        model = load(model_folder(first.inputs["model"]), work.runtime, work.progress, trusted=work.trusted)
        tasks = [read_dataset(member.inputs["task"]) for member in others]
        scorer: PairScorer
        if isinstance(model, Encoder):
            model = resumable(_with_prompts(model, first), _saved_vectors(others))
            evaluators = [_evaluator(member) for member in others]
            texts = [
                text
                for each, task in zip(evaluators, tasks, strict=True)
                # Texts read with query and passage prompts are encoded later, during scoring.
                if task.kind not in OF_QUERIES or of_queries(model) is of_passages(model) is model
                for text in each.texts(task)
            ]
            model.encode(list(dict.fromkeys(texts)))
            scorer = CosineScorer(model)
        else:
            model = scorer = _with_prompts(model, first)
        for member, task in zip(others, tasks, strict=True):
            evaluator = _evaluator(member)
            if not evaluator.takes(model):
                name = member.operation.component
                raise UserError(
                    f"evaluator '{name}' needs one vector for each text, and the model gives none"
                )
            scored = model if evaluator.needs_encoder else scorer
            result = evaluator.evaluate_with_progress(scored, task, member.work.progress)
            result = checked_return(result, Evaluation, member.operation.component, "evaluate")
            _check_scores(result, member.operation.component)
            _write_evaluation(result, task, member.work)
            yield member


def _saved_vectors(members: Sequence[GroupMember]) -> "StoredVectors":
    """Return the vectors that earlier attempts saved; new vectors go to the last member's checkpoints."""
    from synthbench.models.encoder import StoredVectors

    folders = [member.work.checkpoints for member in members]
    model = members[0].inputs["model"].name
    return StoredVectors(folders[-1], model, folders, members[0].work.progress)


def _with_prompts(model: M, member: GroupMember) -> M:
    """Return the model with the evaluation's prompts; unchanged if the evaluation sets none."""
    from synthbench.models.encoder import LengthBatchedEncoder
    from synthbench.models.search_encoders import SearchEncoder

    operation = member.operation
    assert isinstance(operation, Evaluate)
    if operation.prompts is None:
        return model
    assert isinstance(model, LengthBatchedEncoder | SearchEncoder)
    return cast("M", model.with_prompts(operation.prompts))


def _evaluator(member: GroupMember) -> Evaluator:
    operation = member.operation
    assert isinstance(operation, Evaluate)
    return operation.plugin


def _check_scores(result: Evaluation, name: str) -> None:
    """Raise UserError if an evaluator's main score is missing, or if a score is no number."""
    if result.main_score not in result.scores:
        raise UserError(
            f"{name}: `main_score` must be the name of a score: {', '.join(result.scores)}; it is"
            f" {result.main_score!r}"
        )
    for each, score in result.scores.items():
        if not isinstance(score, Real):
            raise UserError(f"{name}: the score '{each}' must be a number; it is {score!r}")


def _write_evaluation(result: Evaluation, task: SyntheticDataset, work: Workspace) -> None:
    from synthbench.data.contamination import STANDS_IN_GOLD

    scores = {
        "main_score": result.main_score,
        # JSON has no numbers of numpy.
        "scores": {
            name: score if isinstance(score, int) else float(score) for name, score in result.scores.items()
        },
        "num_items": int(result.num_items),
        "num_dropped": task.manifest.dropped.get(STANDS_IN_GOLD, 0),
    }
    write_json(work.output / SCORES_FILE, scores)
    if result.items:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(
            pa.table({name: list(values) for name, values in result.items.items()}), work.output / ITEMS_FILE
        )
