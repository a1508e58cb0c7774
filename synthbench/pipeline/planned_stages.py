"""Collect the stages of a plan, equal ones only once, and the missing files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.user_files import STARTS_FROM
from synthbench.config.experiment import Experiment
from synthbench.engine.plan import Plan
from synthbench.engine.stage import Stage
from synthbench.plugins.contracts import Method
from synthbench.plugins.loading import component
from synthbench.stages.data import ReadSource

_NOT_AT_HAND = {"not at hand": ""}
"""Stands for the hashes and commits of a stage's files if it is planned without these files."""


@dataclass(frozen=True)
class Address:
    """A stage's address in the experiment: a key for the store, a label for messages, a seed."""

    key: str
    label: str
    seed: int

    def within(self, key: str, label: str) -> "Address":
        """Return an address below this address, for a dependency, a candidate, a seed or a prepare step."""
        return Address(f"{self.key}|{key}", label, self.seed)


def summed(own: int, run: int) -> int:
    """Return the configured seed plus the run's seed, modulo 2**32."""
    return (own + run) % 2**32


class PlannedStages:
    """Collects a plan's stages, among them those that read its sources."""

    def __init__(self, experiment: Experiment, does_without: tuple[type[UserError], ...] = ()) -> None:
        self.experiment = experiment
        self.does_without = does_without
        self.plan = Plan(experiment)
        self.messages: dict[str, None] = {}
        # Optional sources without data.
        self.absent: set[str] = set()
        # Tasks that no model is scored on: their own data, or those of their `train` or `dev`, are absent.
        self.unscored: set[str] = set()
        self.sources = {
            name: Stage(ReadSource(source, experiment.roots), label=name)
            for name, source in experiment.sources.items()
        }

    def check_sources(self) -> None:
        """Raise one UserError for all missing sources, before stages that read them are planned.

        Sources of optional tasks may be missing; errors of the types `does_without` are only recorded in the
        plan.
        """
        configs = [c.config for variant in self.experiment.variants for c in variant.candidates]
        evaluations = [evaluation for config in configs for evaluation in config.evaluations]
        optional = {name for evaluation in evaluations for name in evaluation.optional}
        for name, stage in self.sources.items():
            try:
                _ = stage.operation.outside
            except UserError as error:
                if name in optional:
                    self.absent.add(name)
                elif isinstance(error, self.does_without):
                    self._do_without(stage, error, f"sources.{name}")
                else:
                    location = self.experiment.document.location(("sources", name))
                    where = f"{location}: sources.{name}" if location else f"sources.{name}"
                    self.messages.update(dict.fromkeys(f"{where}: {line}" for line in error.messages))
        if self.messages:
            raise UserError(*self.messages)
        self.unscored |= self.absent
        for evaluation in evaluations:
            if not self.absent.isdisjoint((*evaluation.train, *evaluation.dev)):
                self.unscored.update(evaluation.if_found)

    def _do_without(self, stage: Stage, error: UserError, where: str = "") -> None:
        """Record the error's missing files, and plan the stage without them."""
        stage.operation.assume(_NOT_AT_HAND)
        for message in error.messages:
            self.plan.not_at_hand.setdefault(message, []).extend([where] if where else [])

    def source(self, name: str) -> Stage:
        """Return the stage that reads a source, with the sample that the file sets, whatever the seed."""
        return self.add(self.sources[name], f"source.{name}")

    def training_source(self, name: str, address: Address) -> Stage:
        """Return the stage that reads a training source; if samples vary by seed, with the seed's sample."""
        source = self.experiment.sources[name]
        if "sample" not in self.experiment.vary or source.sample is None or not address.seed:
            return self.source(name)
        sample = source.sample.model_copy(update={"seed": summed(source.sample.seed, address.seed)})
        drawn = ReadSource(source.model_copy(update={"sample": sample}), self.experiment.roots)
        return self.add(Stage(drawn, label=f"{name} seed {address.seed}"), f"source.{name}|{address.seed}")

    def seeded(self, method: Method, address: Address) -> Method:
        """Return the method with the run's seed, if generation varies by seed and the method has one."""
        own = getattr(method, "seed", None)
        if "generation" not in self.experiment.vary or not isinstance(own, int):
            return method
        return method.model_copy(update={"seed": summed(own, address.seed)})

    def configured(self, group: str, name: str, config: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the group's contract
        """Return a dependency's plug-in; validation has already parsed the same values."""
        context = {STARTS_FROM: self.experiment.roots.base}
        return component(group, name).model_validate_json(json.dumps(config), context=context)

    def add(self, stage: Stage, address: str) -> Stage:
        """Add a stage under its address; return it, or an equal stage that was planned earlier."""
        try:
            _ = stage.operation.outside
        except self.does_without as error:
            self._do_without(stage, error)
        reads_unsure = any(source.identity in self.plan.unsure for source in stage.inputs.values())
        if reads_unsure or stage.operation.outside == _NOT_AT_HAND:
            self.plan.unsure.add(stage.identity)
        self.plan.addresses[address] = stage.identity
        return self.plan.stages.setdefault(stage.identity, stage)
