"""The contracts of trainers and evaluators."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from synthbench.base.runtime import Progress, Runtime, not_shared
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.item_texts import texts_by_item
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer, Searcher
from synthbench.models.work import Work
from synthbench.plugins.contracts import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class TrainingContext:
    """Services and settings for a trainer, besides its data.

    The trainer writes checkpoints into the folder `checkpoints`, which is kept if the process is killed, and
    the finished model into the folder `output`. `select` scores a model on the dev tasks (higher is better);
    None without selection.

    A trainer with `can_pause` stops after the share `until` of its steps, in (0, 1], and writes into `output`
    all that resuming needs. `resume`: the `output` folder of the paused training to continue; None starts
    anew. The paused training had equal settings, seed and data. The two trainings together give the result
    of an uninterrupted training.

    Call `copy_checkpoints` before writing a checkpoint. It copies the previous checkpoint to a shared store,
    and returns once the copy has succeeded or failed. So a lost machine costs at most the work between two
    checkpoints.
    """

    seed: int
    checkpoints: Path
    output: Path
    runtime: Runtime
    progress: Progress
    select: Callable[[PairScorer], float] | None = None
    weights: tuple[float, ...] = ()
    """How often an epoch repeats the records of each data set; empty: once."""
    temperatures: tuple[float | None, ...] = ()
    """The contrastive loss's temperature for each data set's records; None, or empty: the trainer's."""
    until: float = 1.0
    resume: Path | None = None
    copy_checkpoints: Callable[[], None] = not_shared


@dataclass(frozen=True)
class TrainingSummary:
    """The outcome of a training: the selected dev score, and curves as (step, name, value).

    The dev score of a paused training is the score at its last step.
    """

    num_steps: int = 0
    num_records: int = 0
    best_step: int | None = None
    dev_score: float | None = None
    history: tuple[tuple[int, str, float], ...] = ()


class Trainer(Component, ABC):
    """Trains a model on data sets of any record kind that it accepts."""

    model_kind: ClassVar[ModelKind]
    is_seeded: ClassVar[bool] = True
    """Whether the seed matters; if not, all seeds share one training."""
    can_pause: ClassVar[bool] = False
    """Whether it can stop after the context's share `until` and continue from `resume`."""
    takes_data: ClassVar[bool] = True
    """Whether it trains on data; if not, a run that gives it data is refused."""
    takes_weights: ClassVar[bool] = False
    """Whether it follows the context's `weights`."""

    @property
    def num_devices(self) -> int:
        """Number of GPUs, or CPU processes, that share a training.

        If several, `train` runs in that many processes, already connected by torch.distributed. Only the
        first process's model and summary are used; all write checkpoints into one folder.
        """
        return 1

    @property
    def takes_temperatures(self) -> bool:
        """Whether the trainer uses the context's `temperatures`; only some losses have a temperature."""
        return False

    def pair_readers(self) -> Mapping[str, bool]:
        """Return settings key of each pretrained cross-encoder -> whether it must have a trained head."""
        return {}

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the trainer can't learn from records of this kind; "" if it can.

        The message names the kinds that the trainer accepts.
        """
        return ""

    def if_unscored(self) -> str:
        """Return the error message for triplets without a teacher's scores; "" if training needs no scores.

        {missing} in the message stands for a text like "3 of 9 triplets have no scores of a teacher".
        """
        return ""

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Return the FLOPs to train on `num_records` records and score `num_dev` pairs; None: unknown."""
        return None if self.takes_data else Work("", 0.0, 0.0)

    @abstractmethod
    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all `data` together and save the model with `save_model`."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of one model on one task.

    `scores` are named; `main_score` names the one for tables. `items` holds per-item columns of equal length
    (`id` among them) for paired statistics.
    """

    scores: Mapping[str, float]
    main_score: str
    num_items: int
    items: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Evaluator(Component, ABC):
    """Scores a model on a task's data set."""

    record_kind: ClassVar[RecordKind]
    needs_encoder: ClassVar[bool] = False
    """Whether it needs one vector for each text, from an Encoder."""
    takes_searchers: ClassVar[bool] = False
    """If `needs_encoder`: whether it also takes a Searcher (a sparse or late-interaction encoder)."""
    learns_from: ClassVar[Collection[str]] = ()
    """Splits other than test that it learns from ("train", "dev"); an evaluation may name their sources.

    Their records are then part of the task, with that split; all others are test data.
    """

    def takes(self, model: PairScorer | Encoder) -> bool:
        """Return whether the evaluator can score the model; an encoder scores pairs by cosine."""
        is_searcher = self.takes_searchers and isinstance(model, Searcher)
        return not self.needs_encoder or isinstance(model, Encoder) or is_searcher

    def check_learning(self, given: Collection[str]) -> None:
        """Raise UserError if these settings don't suit `given`, the splits that have a source."""

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if no model could be scored on a task, such as one whose gold scores are all equal.

        Called before any training.
        """

    @property
    @abstractmethod
    def main_score(self) -> str:
        """Name of the score that tables show and that checkpoint selection maximises."""

    @property
    def main_score_title(self) -> str:
        """The main score in words, for readers of a table."""
        return self.main_score

    def texts(self, task: SyntheticDataset) -> Iterable[str]:
        """Return the sentences that `evaluate` will encode; all tasks' sentences are encoded at once."""
        return task.texts

    def sentences(self, task: SyntheticDataset) -> Mapping[str, Sequence[str]] | None:
        """Return item's id -> the texts that decide the item's score; None if the texts are unknown.

        Statistics treat items that share a text as dependent. Default: a record's texts; for a query, the
        query's text and the texts of its relevant passages.
        """
        return texts_by_item(task)

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64] | None":
        """Return the influence function of the main score at each item, shape (items,); None if unknown.

        `items` and `scores` are fields of one `Evaluation`. An item's influence is the main score's
        derivative by the item's weight in the test set, times the number of items. All influences sum to 0.
        If the score is a mean over items, an item's influence is its value minus the mean. Confidence
        intervals over test items are computed from the influences.
        """
        return None

    @abstractmethod
    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Score `model` (an Encoder if `needs_encoder`, else a PairScorer) on `task`."""

    def evaluate_with_progress(
        self, model: PairScorer | Encoder, task: SyntheticDataset, progress: Progress | None
    ) -> Evaluation:
        """Evaluate as `evaluate` does, and report progress; override this if scoring itself takes long."""
        return self.evaluate(model, task)
