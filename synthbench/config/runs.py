"""Turn one run's sections into configured plug-ins."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from synthbench.base.errors import UserError, did_you_mean
from synthbench.config.audits import AuditParser
from synthbench.config.chains import ChainParser, ancestors_of
from synthbench.config.components import ComponentParser
from synthbench.config.documents import Document, KeyPath, flatten
from synthbench.config.experiment import (
    EvaluationPlan,
    Part,
    PrepareStep,
    RunConfig,
    SeedOptimization,
    Selection,
)
from synthbench.config.llm import NamedLLM
from synthbench.config.problems import Problems, parse, readable
from synthbench.config.provided_tasks import check_provided_tasks
from synthbench.config.schema import (
    EvaluateSection,
    PartRole,
    PartSection,
    RunSection,
    Section,
    SelectionSection,
    StepSection,
    TrainSection,
)
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.plugins.contracts import Evaluator, Trainer
from synthbench.plugins.task_providers import TaskProvider
from synthbench.sources.models import Source

S = TypeVar("S", bound=Section)
Sources = Mapping[str, Source | None]
LEARNING = ("train", "dev")


@dataclass(frozen=True)
class _Trained:
    """What the section `train` came to."""

    name: str
    trainer: Trainer | None
    selection: Selection | None
    seed_optimization: SeedOptimization | None
    starts_from: str = ""


class RunParser:
    """Parses one run's document, noting every fault; `components` remembers which sources were used."""

    def __init__(
        self,
        sources: Sources,
        problems: Problems,
        folder: Path,
        llms: Mapping[str, NamedLLM | None],
        *,
        draws_data: bool,
    ) -> None:
        self.problems = problems
        self.draws_data = draws_data
        self.components = ComponentParser(sources, problems, llms)
        self.chains = ChainParser(self.components, problems)
        self.audits = AuditParser(self.components, problems, folder)
        self.idle: dict[str, Document] = {}
        """Parts that are neither trained on nor used otherwise, with the row that has them."""

    def parse(self, document: Document) -> RunConfig | None:
        """Return the run's configuration, or None with its faults noted."""
        parse(RunSection, document.data, document, (), self.problems)
        self._check_aliases(document)
        data, evaluate, audit = (_mapping(document.data, key) for key in ("data", "evaluate", "audit"))
        self._check_ends(document)
        parts = [self._part(document, name, raw) for name, raw in data.items() if isinstance(raw, dict)]
        trained = self._train(document, _mapping(document.data, "train"))
        evaluations = [
            self._evaluation(document, ("evaluate", name), raw)
            for name, raw in evaluate.items()
            if isinstance(raw, dict)
        ]
        self._check_tasks(document, evaluate)
        audits = [
            self.audits.audit(document, name, raw) for name, raw in audit.items() if isinstance(raw, dict)
        ]
        if self.problems.faults:
            return None
        trained = trained or _Trained("", None, None, None)
        return RunConfig(
            parts=self._used(document, [part for part in parts if part]),
            trainer_name=trained.name,
            trainer=trained.trainer,
            selection=trained.selection,
            seed_optimization=trained.seed_optimization,
            starts_from=trained.starts_from,
            evaluations=tuple(evaluation for evaluation in evaluations if evaluation),
            audits=tuple(plan for plan in audits if plan),
            parameters=dict(
                flatten({key: document.data[key] for key in ("data", "train") if key in document.data})
            ),
        )

    def _used(self, document: Document, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the parts that are trained on, that select or are audited, and those they are made from.

        Without training every part is made for its own sake.
        """
        if not document.data.get("train"):
            return tuple(parts)
        selecting = _mapping(_mapping(document.data, "train"), "selection").get("parts", ())
        audited = [audit.get("part") for audit in _mapping(document.data, "audit").values()]
        own = {part.name for part in parts if part.train_on}
        used = ancestors_of({*own, *selecting, *audited}, parts)
        self.idle |= {part.name: document for part in parts if part.name not in used}
        return tuple(part for part in parts if part.name in used)

    def _check_aliases(self, document: Document) -> None:
        """Require that no name stands for a source of its own and for another one."""
        for alias in _mapping(document.data, "aliases"):
            if alias in self.components.sources:
                message = f"'{alias}' is a source; what stands for one needs a name of its own"
                self.problems.add(document, ("aliases", alias), message)

    def _check_ends(self, document: Document) -> None:
        """Require training and tests, or neither and data that are audited, made, prepared or drawn."""
        given = {key: bool(document.data.get(key)) for key in ("train", "evaluate", "audit")}
        parts = [part for part in _mapping(document.data, "data").values() if isinstance(part, dict)]
        is_made = any("method" in part or part.get("prepare") for part in parts)
        is_end = given["audit"] or self.draws_data or is_made
        if is_end and not given["train"] and not given["evaluate"]:
            return
        why = "a run that is audited has neither `train` nor `evaluate`, or both"
        for key in ("train", "evaluate"):
            if not given[key]:
                message = f"missing; {why if given['audit'] else 'it has no default'}"
                self.problems.add(document, (key,), message)

    def _part(self, document: Document, name: str, raw: dict[str, Any]) -> Part | None:
        path: KeyPath = ("data", name)
        section, settings = self._split(PartSection, document, path, raw)
        if ("source" in raw) == ("method" in raw):
            self.problems.add(document, path, _no_one_nature(document, name, raw))
            return None
        if "source" in raw:
            return self._taken_part(document, name, section, settings)
        return self._made_part(document, name, section, settings)

    def _taken_part(
        self, document: Document, name: str, section: PartSection, settings: Iterable[str]
    ) -> Part | None:
        path: KeyPath = ("data", name)
        for key in settings:
            hint = did_you_mean(key, PartSection.model_fields)
            self.problems.add(document, (*path, key), f"unknown key{hint}")
        if section.sources:
            self.problems.add(document, (*path, "sources"), "only a method has roles; leave it out")
        if section.llm is not None:
            self.problems.add(document, (*path, "llm"), "only a method asks an LLM; leave it out")
        if section.source is None:
            return None
        self.components.learn_from(document, (*path, "source"), section.source)
        source = self.components.sources.get(section.source)
        steps = self._steps(document, name, section, None if source is None else source.record_kind)
        return Part(name, steps, source=section.source, **_in_training(section))

    def _made_part(
        self, document: Document, name: str, section: PartSection, settings: dict[str, Any]
    ) -> Part | None:
        path: KeyPath = ("data", name)
        plugin = self.components.plugin("methods", section.method, document, path)
        if plugin is None:
            self._roles(document, name, section.sources, None)
            self._steps(document, name, section, None)
            return None
        self.components.check_roles(plugin, section.sources, document, path)
        known = {**plugin.source_roles, **plugin.optional_source_roles}
        self._roles(document, name, section.sources, known)
        steps = self._steps(document, name, section, plugin.record_kind)
        method = self.components.method(plugin, settings, section.sources, document, path)
        llm = self.components.llm(plugin, method, section.llm, document, path)
        if method is None:
            return None
        return Part(
            name,
            steps,
            method=method,
            method_name=str(section.method),
            roles=section.sources,
            llm=llm,
            **_in_training(section),
        )

    def _roles(
        self,
        document: Document,
        part: str,
        given: Mapping[str, str | PartRole],
        known: Mapping[str, RecordKind] | None,
    ) -> None:
        """Look at what each role takes; `known` are the roles' kinds, None of a method that is not there."""
        for role, source in given.items():
            if known is not None and role not in known:
                continue
            kind = None if known is None else known[role]
            if isinstance(source, PartRole):
                self.chains.take(document, part, role, source, kind)
            elif not self.chains.is_mistaken(document, part, role, source):
                self.components.learn_from(document, ("data", part, "sources", role), source, kind)

    def _steps(
        self, document: Document, name: str, section: PartSection, kind: RecordKind | None
    ) -> tuple[PrepareStep, ...]:
        """Return the steps of a part whose records are of this kind at first; None: unknown."""
        steps: list[PrepareStep] = []
        for index, raw in enumerate(section.prepare):
            path: KeyPath = ("data", name, "prepare", index)
            own, settings = self._split(StepSection, document, path, raw)
            plugin = self.components.plugin("steps", own.step, document, path)
            step = self.components.step(plugin, settings, document, path)
            llm = None if plugin is None else self.components.llm(plugin, step, own.llm, document, path)
            if step is None:
                kind = None
                continue
            obstacle = "" if kind is None else step.obstacle(kind)
            if obstacle:
                self.problems.add(document, path, f"{own.step}: {obstacle}")
            kind = None if kind is None or obstacle else step.kind_after(kind)
            steps.append(PrepareStep(own.step, step, llm))
        return tuple(steps)

    def _train(self, document: Document, raw: dict[str, Any]) -> "_Trained | None":
        if not raw:
            return None
        section, settings = self._split(TrainSection, document, ("train",), raw)
        selection = self._selection(document, raw["selection"]) if _mapping(raw, "selection") else None
        plugin = self.components.plugin("trainers", section.trainer, document, ("train",))
        trainer, _ = self.components.configured(plugin, settings, document, ("train",))
        if plugin is None:
            return None
        parts = _mapping(document.data, "data").values()
        has_data = any(not isinstance(part, dict) or part.get("train_on") is not False for part in parts)
        if plugin.takes_data != has_data:
            wrong = "needs data, there is none" if plugin.takes_data else "takes no data; leave it empty"
            self.problems.add(document, ("data",), f"trainer '{section.trainer}' {wrong}")
        self._check_model_kind(document, plugin)
        if trainer is not None:
            self.components.check_taken(document, trainer)
        self.components.check_bases_apart(document, raw)
        optimization = self._seed_optimization(document, section, plugin)
        if trainer is None:
            return None
        return _Trained(section.trainer, trainer, selection, optimization, section.starts_from or "")

    def _seed_optimization(
        self, document: Document, section: TrainSection, plugin: type[Trainer]
    ) -> SeedOptimization | None:
        given = section.seed_optimization
        if given is None:
            return None
        wrong = ""
        if section.selection is None:
            wrong = "needs train.selection: dev decides which training goes on"
        elif not plugin.is_seeded or not plugin.can_pause:
            wrong = f"trainer '{section.trainer}' can't begin with several seeds and go on with one"
        if wrong:
            self.problems.add(document, ("train", "seed_optimization"), wrong)
        return SeedOptimization(given.seeds, given.at)

    def _selection(self, document: Document, raw: dict[str, Any]) -> Selection | None:
        path: KeyPath = ("train", "selection")
        section, _ = self._split(SelectionSection, document, path, raw)
        plugin = self.components.plugin("evaluators", section.evaluator, document, path)
        for index, source in enumerate(section.sources or ()):
            self.components.learn_from(document, (*path, "sources", index), source, _kind(plugin))
        self._check_dev_parts(document, section.parts, _kind(plugin))
        if plugin is None:
            return None
        if plugin.needs_encoder:
            message = f"'{section.evaluator}' needs an encoder; select with an evaluator that scores pairs"
            self.problems.add(document, (*path, "evaluator"), message)
        evaluator, _ = self.components.configured(plugin, {}, document, path)
        return (
            None
            if evaluator is None
            else Selection(section.evaluator, evaluator, section.sources, section.parts)
        )

    def _check_dev_parts(self, document: Document, parts: Sequence[str], kind: RecordKind | None) -> None:
        """Require that each part that selects is there, once, and of the kind that the evaluator scores."""
        for index, name in enumerate(parts):
            path: KeyPath = ("train", "selection", "parts", index)
            if name in parts[:index]:
                self.problems.add(document, path, f"'{name}' is listed twice")
            found = self._kind_of_part(document, path, name)
            if kind is not None and found is not None and found != kind:
                message = f"'{name}' holds records of kind {found}, here {kind} is needed"
                self.problems.add(document, path, message)
            self.components.check_dev(document, path, name)

    def _kind_of_part(self, document: Document, path: KeyPath, name: str) -> RecordKind | None:
        """Return a part's kind, None if that is unknown; note the problem if there is no such part."""
        parts = _mapping(document.data, "data")
        if name not in parts:
            message = f"no part of `data` is called '{name}'{did_you_mean(name, parts)}"
            self.problems.add(document, path, message)
            return None
        return self.components.kind_of(parts[name])

    def _evaluation(self, document: Document, path: KeyPath, raw: dict[str, Any]) -> EvaluationPlan | None:
        section, settings = self._split(EvaluateSection, document, path, raw)
        plugin = self.components.plugin("evaluators", section.evaluator, document, path)
        if plugin is None or not issubclass(plugin, TaskProvider):
            self._check_sources(document, path, section, plugin)
        evaluator, _ = self.components.configured(plugin, settings, document, path)
        if evaluator is None:
            return None
        if isinstance(evaluator, TaskProvider):
            check_provided_tasks(self.components, document, path, section, evaluator)
        try:
            evaluator.check_learning({key for key in LEARNING if getattr(section, key)})
        except UserError as error:
            self.problems.add_error(document, path, error)
        # Sorted, because what is excluded is the same in any order, and is computed once.
        exclude = tuple(sorted(set(section.exclude)))
        return EvaluationPlan(
            section.evaluator,
            evaluator,
            section.tasks,
            section.if_found,
            exclude,
            section.train,
            section.dev,
            section.prompts,
        )

    def _check_sources(
        self, document: Document, path: KeyPath, section: EvaluateSection, plugin: type[Evaluator] | None
    ) -> None:
        for key in ("tasks", "if_found"):
            for index, source in enumerate(getattr(section, key)):
                self.components.use(document, (*path, key, index), source, _kind(plugin))
        for index, source in enumerate(section.exclude):
            self.components.use(document, (*path, "exclude", index), source, RecordKind.SCORED_PAIR)
        self._check_learning(document, path, section, plugin)

    def _check_learning(
        self,
        document: Document,
        path: KeyPath,
        section: EvaluateSection,
        plugin: type[Evaluator] | None,
    ) -> None:
        """Require that what the evaluator learns from is of its kind, no test set, and used by it."""
        for key in LEARNING:
            names: tuple[str, ...] = getattr(section, key)
            if names and plugin is not None and key not in plugin.learns_from:
                message = f"'{section.evaluator}' learns nothing from it; leave it out"
                self.problems.add(document, (*path, key), message)
            for index, source in enumerate(names):
                self.components.learn_from(document, (*path, key, index), source, _kind(plugin))

    def _check_tasks(self, document: Document, evaluate: Mapping[str, Any]) -> None:
        """Require that each task is named once: results are distinguished by their task."""
        seen: set[str] = set()
        for path, task in named_tasks(evaluate):
            if task in seen:
                message = f"'{task}' is evaluated already; to do it twice, give the source two names"
                self.problems.add(document, ("evaluate", *path), message)
            seen.add(task)

    def _check_model_kind(self, document: Document, trainer: type[Trainer]) -> None:
        if trainer.model_kind is ModelKind.ENCODER:
            return
        for name, raw in _mapping(document.data, "evaluate").items():
            evaluator = raw.get("evaluator") if isinstance(raw, dict) else None
            if isinstance(raw, dict) and raw.get("prompts") is not None:
                message = "an encoder reads prompts, the trainer makes a pair scorer; leave them out"
                self.problems.add(document, ("evaluate", name, "prompts"), message)
            if getattr(self.components.known("evaluators", evaluator), "needs_encoder", False):
                message = f"'{evaluator}' needs an encoder, the trainer makes a pair scorer"
                self.problems.add(document, ("evaluate", name, "evaluator"), message)

    def _split(
        self, schema: type[S], document: Document, path: KeyPath, raw: dict[str, Any]
    ) -> tuple[S, dict[str, Any]]:
        """Parse the section's own keys and return the others, which belong to the plug-in.

        Of a faulty section (the problems are noted) what can be read is returned.
        """
        own = {key: value for key, value in raw.items() if key in schema.model_fields}
        rest = {key: value for key, value in raw.items() if key not in schema.model_fields}
        self.components.section_keys[path] = schema.model_fields
        section: S | None = parse(schema, own, document, path, self.problems)
        return (readable(schema, own) if section is None else section), rest


def named_tasks(evaluate: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the test sources that an `evaluate` section names, as far as it is readable, with their paths."""
    for name, raw in evaluate.items():
        for key in ("tasks", "if_found"):
            listed = raw.get(key) if isinstance(raw, dict) else None
            for index, task in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(task, str):
                    yield (name, key, index), task


def _no_one_nature(document: Document, name: str, raw: Mapping[str, Any]) -> str:
    if "source" in raw:
        return "has both `source:` and `method:`; it needs one of them"
    others = [other for other in _mapping(document.data, "data") if other != name]
    near = [
        *(word for key in raw for word in difflib.get_close_matches(key, ("source", "method"), n=1)),
        *difflib.get_close_matches(name, others, n=1),
    ]
    return "needs `source:` or `method:`" + (f"; did you mean '{near[0]}'?" if near else "")


def _kind(evaluator: type[Evaluator] | None) -> RecordKind | None:
    if evaluator is None or issubclass(evaluator, TaskProvider):
        return None
    return evaluator.record_kind


def _mapping(data: Any, key: str) -> dict[str, Any]:  # noqa: ANN401
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _in_training(section: PartSection) -> dict[str, Any]:
    """Return what a part says of its place in the training."""
    return {"weight": section.weight, "temperature": section.loss_temperature, "train_on": section.train_on}
