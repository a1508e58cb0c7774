"""What stages do with their inputs, but for generation, evaluation and audits."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.prepare import PrepareStep
from synthbench.errors import UserError
from synthbench.pipeline.selection import dev_split, mean_main_score
from synthbench.pipeline.stage import Operation
from synthbench.pipeline.task_checks import check_task
from synthbench.pipeline.workspace import Workspace
from synthbench.pipeline.yielded import returned
from synthbench.plugin_code import code_of
from synthbench.plugins import Component, Evaluator, Trainer, TrainingContext, TrainingSummary
from synthbench.runtime import Runtime
from synthbench.sources.models import Source
from synthbench.sources.places import Places

DATASET_FOLDER = "dataset"
SUMMARY_FILE = "training.json"
CHOICE_FILE = "choice.json"
PAUSED = "paused"
AGAINST = "against:"


def write_json(file: Path, value: Any) -> None:  # noqa: ANN401
    """Write a value as indented JSON."""
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(file: Path) -> Any:  # noqa: ANN401
    """Read a JSON file of an artifact."""
    return json.loads(file.read_text(encoding="utf-8"))


def read_dataset(artifact: Path) -> SyntheticDataset:
    """Read the data set of a source, exclude, prepare or generate stage."""
    return SyntheticDataset.read(artifact / DATASET_FOLDER)


def write_dataset(dataset: SyntheticDataset, work: Workspace) -> None:
    """Make a data set the stage's artifact."""
    dataset.write(dataset_folder(work))


def dataset_folder(work: Workspace) -> Path:
    """Make the folder of the stage's output in which a data set is to be written."""
    folder = work.output / DATASET_FOLDER
    folder.mkdir()
    return folder


def settings(plugin: Component) -> dict[str, Any]:
    """Return a plug-in's configuration as plain JSON values."""
    return plugin.model_dump(mode="json")


def limit_threads(runtime: Runtime) -> None:
    """Let torch use the threads that this process may use."""
    if runtime.threads is not None:
        import torch

        torch.set_num_threads(runtime.threads)


@dataclass(frozen=True)
class ReadSource(Operation):
    """Reads sentences or gold pairs into the schema."""

    kind: ClassVar[str] = "source"
    comes_first: ClassVar[bool] = True
    source: Source
    places: Places

    @property
    def component(self) -> str:
        """The source's shape: a task, or a file."""
        return type(self.source).__name__

    @property
    def version(self) -> int:
        """Version of the readers; raise it whenever the same files give other records."""
        return 1

    def config(self) -> Mapping[str, Any]:
        """Return the source's section, but for where it lies."""
        return self.source.model_dump(mode="json", exclude={"origin"})

    @cached_property
    def _fingerprint(self) -> Mapping[str, str]:
        return self.source.fingerprint(self.places)

    def outside(self) -> Mapping[str, str]:
        """Return the hashes of the files, or the commit of the repository."""
        return self._fingerprint

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Read, check and write the data set."""
        write_dataset(self.source.load(self.places), work)


@dataclass(frozen=True)
class ExcludePairs(Operation):
    """Drops a test set's pairs that stand in gold data ("task" and "gold:..." inputs)."""

    kind: ClassVar[str] = "exclude"
    comes_first: ClassVar[bool] = True
    component: ClassVar[str] = "pairs"
    version: ClassVar[int] = 1

    def config(self) -> Mapping[str, Any]:
        """Nothing but the inputs matters."""
        return {}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Drop and count."""
        from synthbench.data.overlap import drop_pairs_in

        gold = [read_dataset(folder) for name, folder in inputs.items() if name.startswith("gold:")]
        kept = drop_pairs_in(read_dataset(inputs["task"]), gold)
        if not len(kept):
            raise UserError("every pair stands in the excluded sources; nothing is left to be scored")
        write_dataset(kept, work)


@dataclass(frozen=True)
class JoinLearning(Operation):
    """Puts beside a test set ("task") what its evaluator learns from ("train:..." and "dev:..." inputs)."""

    kind: ClassVar[str] = "join"
    comes_first: ClassVar[bool] = True
    component: ClassVar[str] = "splits"
    version: ClassVar[int] = 1

    def config(self) -> Mapping[str, Any]:
        """Nothing but the inputs matters."""
        return {}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Mark every record with what it is for."""
        from synthbench.data.learning import with_learning

        learning = [
            (name.partition(":")[0], read_dataset(folder)) for name, folder in inputs.items() if ":" in name
        ]
        write_dataset(with_learning(read_dataset(inputs["task"]), learning), work)


@dataclass(frozen=True)
class Prepare(Operation):
    """Applies a recipe of prepare steps to the "data" input; steps read "against:..." inputs."""

    kind: ClassVar[str] = "prepare"
    component: ClassVar[str] = "steps"
    version: ClassVar[int] = 1
    steps: tuple[PrepareStep, ...]

    def config(self) -> Mapping[str, Any]:
        """Return each step with its version."""
        return {"steps": [dict(step.identity()) for step in self.steps]}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Apply the steps in order."""
        from synthbench.data.prepare import apply_steps

        others = {
            name.removeprefix(AGAINST): read_dataset(folder)
            for name, folder in inputs.items()
            if name.startswith(AGAINST)
        }
        write_dataset(apply_steps(read_dataset(inputs["data"]), self.steps, others), work)


@dataclass(frozen=True)
class Train(Operation):
    """Trains a model on all "data:..." inputs.

    "dev:..." inputs select its checkpoint, and of "dev-part:..." inputs the records with split "dev".
    `dev_parts` are the names of the latter, for messages only. With `until` below 1 the training pauses after
    that share of its steps; one that is the "paused" input, or was chosen by it, is finished, with the seed
    that it began with.
    """

    kind: ClassVar[str] = "train"
    trainer_name: str
    trainer: Trainer
    seed: int
    evaluator_name: str = ""
    evaluator: Evaluator | None = None
    dev_parts: tuple[str, ...] = ()
    until: float = 1.0

    @property
    def component(self) -> str:
        """The trainer's name."""
        return self.trainer_name

    @property
    def version(self) -> int:
        """The trainer's version."""
        return self.trainer.version

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return the code of the trainer and of what selects the checkpoint."""
        selecting = [] if self.evaluator is None else [(self.evaluator_name, self.evaluator)]
        return code_of([(self.trainer_name, self.trainer), *selecting])

    def config(self) -> Mapping[str, Any]:
        """Return the trainer's configuration, the seed and what selects the checkpoint."""
        config: dict[str, Any] = {**settings(self.trainer), "seed": self.seed}
        if self.until < 1:
            config["until"] = self.until
        if self.evaluator is not None:
            config["selection"] = {
                "evaluator": self.evaluator_name,
                "version": self.evaluator.version,
                **settings(self.evaluator),
            }
        return config

    @cached_property
    def _revisions(self) -> Mapping[str, str]:
        return self.trainer.revisions()

    def outside(self) -> Mapping[str, str]:
        """Return the revision of the base model."""
        return self._revisions

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Require that the checkpoints can be scored on each source that is to select among them."""
        if self.evaluator is not None:
            for _, folder in _named(inputs, "dev:"):
                check_task(self.evaluator, folder / DATASET_FOLDER)

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Train, or resume a training that was killed."""
        limit_threads(work.runtime)
        data = _parts(inputs)
        dev = [*_datasets(inputs, "dev:"), *map(dev_split, _datasets(inputs, "dev-part:"), self.dev_parts)]
        paused = model_folder(inputs[PAUSED]) if PAUSED in inputs else None
        context = TrainingContext(
            seed=self.seed if paused is None else int(read_json(paused / SUMMARY_FILE)["seed"]),
            checkpoints=work.checkpoints,
            output=work.output,
            runtime=work.runtime,
            progress=work.progress,
            select=mean_main_score(self.evaluator, dev) if self.evaluator is not None else None,
            until=self.until,
            resume=paused,
        )
        summary = returned(self.trainer.train(data, context), TrainingSummary, self.trainer_name, "train")
        write_json(work.output / SUMMARY_FILE, {**asdict(summary), "seed": context.seed})


def _named(inputs: Mapping[str, Path], prefix: str) -> Iterator[tuple[str, Path]]:
    return ((name[len(prefix) :], folder) for name, folder in inputs.items() if name.startswith(prefix))


def _datasets(inputs: Mapping[str, Path], prefix: str) -> list[SyntheticDataset]:
    return [read_dataset(folder) for _, folder in _named(inputs, prefix)]


def _parts(inputs: Mapping[str, Path]) -> list[SyntheticDataset]:
    """Read what is trained on; without one of its parts a row would not be what its name says."""
    found = {name: read_dataset(folder) for name, folder in _named(inputs, "data:")}
    for name, dataset in found.items():
        if not len(dataset):
            dropped = "; ".join(f"{number:,} {reason}" for reason, number in dataset.manifest.dropped.items())
            raise UserError(f"data.{name}: no record is left" + (f"; dropped: {dropped}" if dropped else ""))
    return list(found.values())


@dataclass(frozen=True)
class Select(Operation):
    """Chooses the "candidate:..." input with the highest dev score; of equal ones the first."""

    kind: ClassVar[str] = "select"
    component: ClassVar[str] = "max"
    version: ClassVar[int] = 1
    candidates: tuple[Mapping[str, Any], ...]

    def config(self) -> Mapping[str, Any]:
        """Return the values that each candidate stands for."""
        return {"candidates": [dict(chosen) for chosen in self.candidates]}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Compare the dev scores and name the winner."""
        scores = []
        for name, folder in inputs.items():
            score = read_json(folder / SUMMARY_FILE)["dev_score"]
            if score is None:
                raise UserError(f"{name} has no dev score to be selected by; give its trainer a selection")
            scores.append(float(score))
        winner = scores.index(max(scores))
        name = list(inputs)[winner]
        choice = {
            "winner": name,
            "identity": inputs[name].name,
            "chosen": dict(self.candidates[winner]),
            "scores": scores,
        }
        write_json(work.output / CHOICE_FILE, choice)


def model_folder(artifact: Path) -> Path:
    """Return the model that a train stage made, or that a select stage chose among its siblings."""
    if not (artifact / CHOICE_FILE).is_file():
        return artifact
    identity = str(read_json(artifact / CHOICE_FILE)["identity"])
    return artifact.parent.parent / identity[:2] / identity
