"""Stages that train a model, or choose among trained models by dev scores."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from synthbench.base.errors import UserError
from synthbench.base.frozen import in_identity
from synthbench.base.runtime import use_threads
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import (
    CHOICE_FILE,
    DATASET_FOLDER,
    Choice,
    chosen_by,
    model_folder,
    read_dataset,
    read_json,
    write_json,
)
from synthbench.engine.stage import START, Operation, Stage
from synthbench.engine.workspace import Workspace
from synthbench.models.artifact import check_artifact
from synthbench.models.interfaces import PairScorer
from synthbench.models.own_code import with_own_code
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.code import code_of
from synthbench.plugins.model_contracts import Evaluator, Trainer, TrainingContext, TrainingSummary
from synthbench.stages.joint_training import train_together
from synthbench.stages.own_prompts import OwnPrompts, as_setting
from synthbench.stages.plugin_calls import PluginOperation, check_task, checked_return
from synthbench.training.settings import TrainingSettings

SUMMARY_FILE = "training.json"
PAUSED = "paused"
DATA = "data:"


class StoredTraining(BaseModel):
    """The content of training.json."""

    seed: int
    num_steps: int = 0
    num_records: int = 0
    best_step: int | None = None
    dev_score: float | None = None
    history: list[tuple[int, str, float]] = Field(default_factory=list)


@dataclass(frozen=True)
class Train(PluginOperation[Trainer]):
    """Trains a model on all "data:..." inputs.

    Checkpoints are selected on "dev:..." inputs, and on the records with split "dev" of "dev-part:..."
    inputs. `parts` and `dev_parts` name the data in messages. `weights` and `temperatures` have one value for
    each data set, as in TrainingContext.

    With `until` below 1, the training pauses after that share of its steps. A "paused" input is the paused
    training to resume, or the stage that chooses it among candidates. The seed is then that of the paused
    training. A "start" input is the model to start from.
    """

    kind: ClassVar[str] = "train"
    seed: int
    evaluator_name: str = ""
    evaluator: Evaluator | None = None
    parts: tuple[str, ...] = ()
    dev_parts: tuple[str, ...] = ()
    until: float = 1.0
    weights: tuple[float, ...] = ()
    temperatures: tuple[float | None, ...] = ()
    own_prompts: OwnPrompts = ()
    """The model's own query and passage prompts, which dev rankings use, if it has any."""

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return the code of the trainer and of the evaluator that selects the checkpoint."""
        selecting = [] if self.evaluator is None else [(self.evaluator_name, self.evaluator)]
        return code_of([(self.name, self.plugin), *selecting])

    def config(self) -> Mapping[str, Any]:
        """Return the trainer's configuration, seed, checkpoint selection, pause, weights and temperatures."""
        config: dict[str, Any] = {**super().config(), "seed": self.seed}
        if self.until < 1:
            config["until"] = self.until
        if self.weights:
            config["weights"] = list(self.weights)
        if self.temperatures:
            config["temperatures"] = list(self.temperatures)
        if self.evaluator is not None:
            config["selection"] = {
                "evaluator": self.evaluator_name,
                "version": self.evaluator.version,
                **in_identity(self.evaluator),
                **as_setting(self.own_prompts),
            }
        return config

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """Name -> revision of the base model and of the other models that the trainer reads."""
        return self.plugin.revisions()

    @property
    def trusted(self) -> tuple[Pretrained, ...]:
        """The models that the experiment allows to run their own code."""
        return tuple(with_own_code(self.plugin))

    def check_artifact(self, folder: Path, stage: Stage) -> None:
        """Raise UserError if the model's files or the summary are not valid."""
        check_artifact(folder, stage.trusted)
        _summary_of(folder)

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Raise UserError if the evaluator can't score checkpoints on a dev source."""
        if self.evaluator is not None:
            for _, folder in _named(inputs, "dev:"):
                check_task(self.evaluator, folder / DATASET_FOLDER)

    @property
    def num_devices(self) -> int:
        """The number of GPUs, or of CPU processes, that share the training."""
        return self.plugin.num_devices

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Train, or resume a killed training; in several processes if `num_devices` is above 1."""
        if self.num_devices > 1:
            train_together(self.train, self.num_devices, inputs, work)
        else:
            self.train(inputs, work, work.output)

    def train(self, inputs: Mapping[str, Path], work: Workspace, output: Path) -> None:
        """Train in this process, perhaps one of several; write the model and the summary to `output`."""
        use_threads(work.runtime)
        data = _parts(inputs, self.parts)
        dev = [*_datasets(inputs, "dev:"), *map(dev_split, _datasets(inputs, "dev-part:"), self.dev_parts)]
        paused = model_folder(inputs[PAUSED]) if PAUSED in inputs else None
        context = TrainingContext(
            seed=self.seed if paused is None else _summary_of(paused)["seed"],
            checkpoints=work.checkpoints,
            output=output,
            runtime=work.runtime,
            progress=work.progress,
            select=mean_main_score(self.evaluator, dev) if self.evaluator is not None else None,
            until=self.until,
            resume=paused,
            weights=self.weights,
            temperatures=self.temperatures,
            copy_checkpoints=work.save,
        )
        trainer = self.plugin
        if START in inputs:
            assert isinstance(trainer, TrainingSettings), "loading the file has checked it"
            trainer = trainer.starting_from(model_folder(inputs[START]), work.trusted)
        summary = checked_return(trainer.train(data, context), TrainingSummary, self.name, "train")
        write_json(output / SUMMARY_FILE, {**asdict(summary), "seed": context.seed})


def _summary_of(artifact: Path) -> Mapping[str, Any]:
    """Return a training's own summary; raises UserError if the file holds something else."""
    if not (artifact / SUMMARY_FILE).is_file():
        raise UserError(f"{artifact}: has no {SUMMARY_FILE}")
    summary: Mapping[str, Any] = read_json(artifact / SUMMARY_FILE, StoredTraining)
    return summary


def _named(inputs: Mapping[str, Path], prefix: str) -> Iterator[tuple[str, Path]]:
    return ((name[len(prefix) :], folder) for name, folder in inputs.items() if name.startswith(prefix))


def _datasets(inputs: Mapping[str, Path], prefix: str) -> list[SyntheticDataset]:
    return [read_dataset(folder) for _, folder in _named(inputs, prefix)]


def _parts(inputs: Mapping[str, Path], names: Sequence[str]) -> list[SyntheticDataset]:
    """Read the training data; raises UserError for an empty part, since the row is named after its parts."""
    found = {name: read_dataset(folder) for name, folder in _named(inputs, DATA)}
    for name, dataset in zip(names or found, found.values(), strict=True):
        if not len(dataset):
            dropped = "; ".join(f"{number:,} {reason}" for reason, number in dataset.manifest.dropped.items())
            raise UserError(f"data.{name}: no record is left" + (f"; dropped: {dropped}" if dropped else ""))
    return list(found.values())


@dataclass(frozen=True)
class Select(Operation):
    """Chooses the "candidate:..." input with the highest dev score; ties go to the first, NaN is lowest."""

    kind: ClassVar[str] = "select"
    component: ClassVar[str] = "max"
    version: ClassVar[int] = 1
    candidates: tuple[Mapping[str, Any], ...]

    def config(self) -> Mapping[str, Any]:
        """Return the settings that distinguish each candidate, such as its seed."""
        return {"candidates": [dict(chosen) for chosen in self.candidates]}

    def check_artifact(self, folder: Path, stage: Stage) -> None:
        """Raise UserError if the chosen candidate is not one of the inputs."""
        chosen_by(read_json(folder / CHOICE_FILE, Choice), stage)

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Write the winner and all dev scores; raises UserError if a candidate has no dev score."""
        scores = []
        for name, folder in inputs.items():
            score = _summary_of(folder).get("dev_score")
            if score is None:
                raise UserError(f"{name} has no dev score to be selected by; give its trainer a selection")
            scores.append(float(score))
        winner = max(range(len(scores)), key=lambda index: (not math.isnan(scores[index]), scores[index]))
        name = list(inputs)[winner]
        choice = {
            "winner": name,
            "identity": inputs[name].name,
            "chosen": dict(self.candidates[winner]),
            "scores": scores,
        }
        write_json(work.output / CHOICE_FILE, choice)


DEV = "dev"


def dev_split(data: SyntheticDataset, part: str) -> SyntheticDataset:
    """Return the records with split "dev" of a part of the training data.

    Raises UserError, naming the part, if there are none.
    """
    found = [record for record in data if record.split == DEV]
    if not found:
        raise UserError(
            f"train.selection.parts: none of the {len(data):,} records of part '{part}' is in split dev; "
            f"a last step such as {{step: split, dev: 0.1}} in data.{part}.prepare sets some apart"
        )
    return data.with_records(found)


def mean_main_score(evaluator: Evaluator, dev: Sequence[SyntheticDataset]) -> Callable[[PairScorer], float]:
    """Return a function from a model to the mean of its main scores on the dev sets."""

    def score(model: PairScorer) -> float:
        results = [evaluator.evaluate(model, task) for task in dev]
        return sum(result.scores[result.main_score] for result in results) / len(results)

    return score
