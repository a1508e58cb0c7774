"""What a method may ask for before it generates: a trained model, or the data of another method."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrainedModel:
    """Something a method needs first: a model trained by a shared trainer on the method's own sources.

    `data` and `selection` name source roles of the method; `config` is the trainer's configuration.
    `seed_optimization` is a section as `train` has it (`seeds`, `at`): that many trainings begin, and the
    best on the selection is finished. It needs a source for the role `selection`.
    """

    trainer: str
    config: Mapping[str, Any]
    data: tuple[str, ...]
    seed: int
    evaluator: str = ""
    selection: str = ""
    seed_optimization: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class GeneratedData:
    """Something a method needs first: the data set of another method; `sources` maps its roles to ours.

    An optional role of the other method is not handed on where ours has no source.
    """

    method: str
    config: Mapping[str, Any]
    sources: Mapping[str, str]


Need = TrainedModel | GeneratedData
