"""Planning: build the graph of stages of an experiment."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import groupby
from typing import Any

from synthbench.base.errors import NotAvailableError, UserError
from synthbench.config.experiment import (
    AuditPlan,
    Candidate,
    EvaluationPlan,
    Experiment,
    Part,
    PrepareStep,
    RunConfig,
    Start,
    Variant,
)
from synthbench.config.llm import NamedLLM
from synthbench.config.schema import PartRole, SeedOptimizationSection
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.stage import START, Stage
from synthbench.pipeline.planned_stages import Address, PlannedStages, summed
from synthbench.plugins.contracts import GeneratedData, Method, Need
from synthbench.plugins.task_providers import TaskProvider
from synthbench.stages.asking import AGAINST, NEED, SHARED, Shard
from synthbench.stages.auditing import GOLD, AuditLabels
from synthbench.stages.data import ExcludePairs, JoinLearning, ReadOwnTask
from synthbench.stages.evaluation import Evaluate
from synthbench.stages.generation import SOURCE, Generate, GenerateShard
from synthbench.stages.own_prompts import own_prompts, reads_queries
from synthbench.stages.preparation import ApplyStep, Prepare
from synthbench.stages.training import DATA, PAUSED, Select, Train

_Made = dict[str, tuple[Stage, Stage]]
"""A row's earlier parts: name -> the stages before and after its prepare steps."""


def make_plan(experiment: Experiment) -> Plan:
    """Build the stage graph; reads data files only to hash them.

    Raises one UserError for all missing sources; if there are none, one UserError with the first error of
    each row, such as a missing model.
    """
    return _Planner(experiment).make()


def make_outline(experiment: Experiment) -> Plan:
    """Build the stage graph even if the hub does not answer.

    `not_at_hand` of the plan then names the models and data sets that are missing. Downloads nothing, but may
    ask the hub for commits. Raises other UserErrors as `make_plan`.
    """
    return _Planner(experiment, does_without=(NotAvailableError,)).make()


def make_sketch(experiment: Experiment) -> Plan:
    """Build the stage graph of the first seed, even if all files are missing.

    The graph names every file and model to read, since all seeds read the same ones. Identities may differ
    from a run's.
    """
    return _Planner(replace(experiment, seeds=experiment.seeds[:1]), does_without=(UserError,)).make()


class _Planner(PlannedStages):
    def make(self) -> Plan:
        self.check_sources()
        for variant in self.experiment.variants:
            seeds = self.experiment.seeds
            for seed in seeds if self.experiment.is_seeded(variant) else seeds[:1]:
                try:
                    self.plan.runs.append(self._run(variant, seed))
                except UserError as error:
                    self.messages.update(dict.fromkeys(map(self.experiment.located, error.messages)))
        if self.messages:
            raise UserError(*self.messages)
        self.plan.missing_tasks = tuple(task for task in self.experiment.tasks if task in self.unscored)
        return self.plan

    def _run(self, variant: Variant, seed: int) -> PlannedRun:
        row = f"{variant.name}|{json.dumps(dict(variant.axes), sort_keys=True)}|{seed}"
        address = Address(row, f"{variant.label} seed {seed}", seed)
        trained = [self._candidate(candidate, address) for candidate in variant.candidates]
        models = [model for model, _ in trained if model is not None]
        model = self._best(variant.candidates, models, address)
        config = variant.candidates[0].config
        evaluations = dict(self._evaluations(config, model, address)) if model else {}
        audits = {audit.name: self._audit(audit, trained[0][1], address) for audit in config.audits}
        data = {stage.identity if stage else "": parts for stage, parts in trained}
        return PlannedRun(variant, seed, data, tuple(models), model, evaluations, audits)

    def _best(
        self, candidates: Sequence[Candidate], models: Sequence[Stage], address: Address
    ) -> Stage | None:
        """Return the only model, or the stage that chooses the best of several; None without models."""
        if len(models) < 2:
            return models[0] if models else None
        inputs = {f"candidate:{index}": stage for index, stage in enumerate(models)}
        operation = Select(tuple(candidate.chosen for candidate in candidates))
        return self.add(Stage(operation, inputs, address.label), f"{address.key}|select")

    def _start(self, start: Start, address: Address) -> Stage:
        """Return the model that a training starts from, trained with the same seed."""
        inner = Address(f"{address.key}|start", f"{start.label} seed {address.seed}", address.seed)
        trained = [self._candidate(candidate, inner) for candidate in start.candidates]
        model = self._best(start.candidates, [model for model, _ in trained if model is not None], inner)
        assert model is not None, "loading the file has checked it"
        return model

    def _audit(self, audit: AuditPlan, parts: Mapping[str, Stage], address: Address) -> Stage:
        label = f"{audit.name} of {audit.part} for {address.label}"
        inputs = {"data": parts[audit.part]}
        if audit.gold is not None:
            inputs[GOLD] = parts[audit.gold]
        stage = Stage(AuditLabels(audit), inputs, label)
        return self.add(stage, f"{address.key}|audit.{audit.name}")

    def _candidate(self, candidate: Candidate, address: Address) -> tuple[Stage | None, dict[str, Stage]]:
        config = candidate.config
        if candidate.chosen:
            chosen = json.dumps(dict(candidate.chosen), sort_keys=True)
            address = address.within(chosen, f"{address.label} with {_shown(candidate.chosen)}")
        made: _Made = {}
        for part in config.parts:
            made[part.name] = self._part(part, made, address)
        parts = {name: prepared for name, (_, prepared) in made.items()}
        return self._train(config, parts, address), parts

    def _train(self, config: RunConfig, parts: Mapping[str, Stage], address: Address) -> Stage | None:
        if config.trainer is None:
            return None
        trained_on = [part for part in config.parts if part.train_on]
        inputs = {f"{DATA}{index}": parts[part.name] for index, part in enumerate(trained_on)}
        weights = tuple(part.weight for part in trained_on)
        names = tuple(part.name for part in trained_on)
        operation = Train(config.trainer_name, config.trainer, address.seed, parts=names)
        if any(weight != 1 for weight in weights):
            operation = replace(operation, weights=weights)
        temperatures = tuple(part.temperature for part in trained_on)
        if any(temperature is not None for temperature in temperatures):
            operation = replace(operation, temperatures=temperatures)
        if (selection := config.selection) is not None:
            inputs |= {f"dev:{index}": self.source(name) for index, name in enumerate(selection.sources)}
            inputs |= {f"dev-part:{index}": parts[name] for index, name in enumerate(selection.parts)}
            operation = replace(
                operation,
                evaluator_name=selection.evaluator_name,
                evaluator=selection.evaluator,
                dev_parts=selection.parts,
            )
        if config.start is not None:
            inputs[START] = self._start(config.start, address)
        operation = _selecting(operation, inputs)
        if config.seed_optimization is not None:
            inputs[PAUSED] = self._best_start(operation, inputs, config.seed_optimization, address)
        return self.add(Stage(operation, inputs, address.label), f"{address.key}|train")

    def _best_start(
        self, training: Train, inputs: Mapping[str, Stage], how: SeedOptimizationSection, address: Address
    ) -> Stage:
        """Return the stage that selects the best of several paused trainings; no two runs share a seed."""
        seeds = [summed(training.seed * how.seeds, turn) for turn in range(how.seeds)]
        starts = {}
        for seed in seeds:
            inner = address.within(f"seed {seed}", f"{address.label}, {how.at:.0%} with seed {seed}")
            start = Stage(replace(training, seed=seed, until=how.at), dict(inputs), inner.label)
            starts[f"candidate:{seed}"] = self.add(start, f"{inner.key}|train")
        choice = Select(tuple({"seed": seed} for seed in seeds))
        label = f"{address.label} among {how.seeds} seeds"
        return self.add(Stage(choice, starts, label), f"{address.key}|select-seed")

    def _part(self, part: Part, made: _Made, address: Address) -> tuple[Stage, Stage]:
        """Return the part's stages before and after its prepare steps; `made` are the earlier parts."""
        if part.method is None:
            assert part.source is not None
            stage = self.training_source(part.source, address)
        else:
            method, given = self.seeded(part.method, address), part.roles or {}
            known = (*method.source_roles, *method.optional_source_roles)
            roles = {role: self._role_source(given[role], made, address) for role in known if role in given}
            is_chained = any(isinstance(source, PartRole) for source in given.values())
            stage = self._generate(
                part.method_name, method, roles, address, llm=part.llm, is_chained=is_chained
            )
        return stage, self._prepared(part, stage, address)

    def _role_source(self, source: str | PartRole, made: _Made, address: Address) -> Stage:
        """Return the stage that a role takes: a source, or another part."""
        if isinstance(source, PartRole):
            bare, prepared = made[source.part]
            return prepared if source.prepared else bare
        return self.training_source(source, address)

    def _prepared(self, part: Part, stage: Stage, address: Address) -> Stage:
        """Return the part's stage after its prepare steps."""
        key = f"prepare.{part.name}"
        label = f"{part.name} for {address.label}"
        for number, steps in enumerate(_grouped(part.prepare)):
            stage = self._applied(steps, stage, address.within(f"{key}.{number}" if number else key, label))
        return stage

    def _applied(self, steps: tuple[PrepareStep, ...], stage: Stage, address: Address) -> Stage:
        others = dict.fromkeys(name for step in steps for name in step.plugin.others())
        inputs = {"data": stage}
        inputs |= {AGAINST + name: self.source(name) for name in others if name not in self.absent}
        step = steps[0]
        if step.plugin.is_plain:
            return self.add(Stage(Prepare(steps), inputs, address.label), address.key)
        for name, need in step.plugin.needs().items():
            learnt = {source: self.training_source(source, address) for source in others}
            inner = address.within(f"{step.name}.{name}", f"{name} of {step.name} for {address.label}")
            inputs[NEED + name] = self._need(need, learnt, inner)
        encoders = [stage for name, stage in inputs.items() if name.startswith(NEED)]
        found = own_prompts(*encoders) if step.plugin.reads_queries else ()
        operation = ApplyStep(step.name, step.plugin, step.llm, found)
        return self.add(Stage(operation, inputs, f"{step.name} of {address.label}"), address.key)

    def _generate(
        self,
        name: str,
        method: Method,
        roles: Mapping[str, Stage],
        address: Address,
        *,
        llm: NamedLLM | None = None,
        is_chained: bool = False,
    ) -> Stage:
        known = (*method.source_roles, *method.optional_source_roles)
        inputs = {SOURCE + role: roles[role] for role in known if role in roles}
        for need_name, need in method.needs().items():
            inner = address.within(f"{name}.{need_name}", f"{need_name} of {name} for {address.label}")
            inputs[NEED + need_name] = self._need(need, roles, inner, llm=llm, is_chained=is_chained)
        operation = Generate(name, method, llm if method.needs_llm() else None, is_chained)
        whole = Stage(operation, inputs, f"{name} for {address.label}")
        key, of = f"{address.key}|generate.{name}", self.experiment.runtime.shards
        if of == 1 or not method.can_be_sharded():
            return self.add(whole, key)
        if (shared := method.shared_by_shards()) is not None:
            part = f"{name}/{type(shared).__name__}"
            before = self._generate(part, shared, roles, address, is_chained=is_chained)
            inputs = {**inputs, SHARED: before}
        given = {each.name: getattr(operation, each.name) for each in fields(operation)}
        shards = []
        for number in range(of):
            shard = Stage(
                GenerateShard(**given, shard=Shard(number, of)),
                inputs,
                f"{whole.label}, shard {number + 1} of {of}",
                paid_by=whole.identity,
            )
            shards.append(self.add(shard, f"{key}.{number}"))
        return self.add(replace(whole, shards=tuple(shards)), key)

    def _need(
        self,
        need: Need,
        sources: Mapping[str, Stage],
        address: Address,
        *,
        llm: NamedLLM | None = None,
        is_chained: bool = False,
    ) -> Stage:
        if isinstance(need, GeneratedData):
            method = self.configured("methods", need.method, need.config)
            inner = {role: sources[ours] for role, ours in need.sources.items() if ours in sources}
            return self._generate(need.method, method, inner, address, llm=llm, is_chained=is_chained)
        trainer = self.configured("trainers", need.trainer, need.config)
        inputs = {f"{DATA}{index}": sources[role] for index, role in enumerate(need.data)}
        operation = Train(need.trainer, trainer, need.seed)
        if need.selection in sources:
            evaluator = self.configured("evaluators", need.evaluator, {})
            inputs["dev:0"] = sources[need.selection]
            operation = Train(need.trainer, trainer, need.seed, need.evaluator, evaluator)
            operation = _selecting(operation, inputs)
        if need.seed_optimization is not None:
            how = SeedOptimizationSection.model_validate(need.seed_optimization)
            inputs[PAUSED] = self._best_start(operation, inputs, how, address)
        return self.add(Stage(operation, inputs, address.label), f"{address.key}|train")

    def _evaluations(self, config: RunConfig, model: Stage, address: Address) -> Iterator[tuple[str, Stage]]:
        for evaluation in config.evaluations:
            for task in (*evaluation.tasks, *evaluation.if_found):
                if task in self.unscored:
                    continue
                inputs = {"model": model, "task": self._task(task, evaluation)}
                operation = Evaluate(evaluation.evaluator_name, evaluation.evaluator, evaluation.prompts)
                if evaluation.prompts is None and reads_queries(evaluation.evaluator):
                    operation = replace(operation, own_prompts=own_prompts(model))
                stage = Stage(operation, inputs, f"{address.label} on {task}")
                yield task, self.add(stage, f"{address.key}|evaluate.{task}")

    def _task(self, task: str, evaluation: EvaluationPlan) -> Stage:
        if isinstance(evaluation.evaluator, TaskProvider):
            read = ReadOwnTask(evaluation.evaluator_name, evaluation.evaluator, task)
            return self.add(Stage(read, label=task), f"source.{task}")
        stage = self.source(task)
        if evaluation.exclude:
            inputs = {"task": stage, **{f"gold:{name}": self.source(name) for name in evaluation.exclude}}
            label = f"pairs of {' and '.join(evaluation.exclude)} from {task}"
            stage = self.add(Stage(ExcludePairs(), inputs, label), f"exclude.{task}")
        # If the task is its own dev set (as for thresholds), add it only once.
        own = self.sources[task].identity
        dev = tuple(name for name in evaluation.dev if self.sources[name].identity != own)
        learning = {"train": evaluation.train, "dev": dev}
        if any(learning.values()):
            inputs = {"task": stage} | {
                f"{split}:{name}": self.source(name) for split, names in learning.items() for name in names
            }
            label = f"{' and '.join(name for names in learning.values() for name in names)} to {task}"
            stage = self.add(Stage(JoinLearning(), inputs, label), f"join.{task}")
        return stage


def _selecting(operation: Train, inputs: Mapping[str, Stage]) -> Train:
    """Return the training, with its base's query and passage prompts if selection reads queries."""
    if operation.evaluator is None or not reads_queries(operation.evaluator):
        return operation
    return replace(operation, own_prompts=own_prompts(Stage(operation, inputs)))


def _grouped(steps: tuple[PrepareStep, ...]) -> Iterator[tuple[PrepareStep, ...]]:
    """Yield the steps of each stage: successive plain steps share one, any other step has its own."""
    for is_plain, group in groupby(steps, lambda step: step.plugin.is_plain):
        if is_plain:
            yield tuple(group)
        else:
            yield from ((step,) for step in group)


def _shown(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{path.rpartition('.')[2]}={value}" for path, value in chosen.items())
