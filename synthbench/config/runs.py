"""Configures the plug-ins of one run of an experiment file; notes every fault of the run's sections."""

from collections.abc import Iterator, Mapping
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.user_files import RootedName, path_of, why_no_file
from synthbench.config.components import Components
from synthbench.config.documents import Document, KeyPath, flatten
from synthbench.config.experiment import (
    AuditPlan,
    EvaluationPlan,
    Part,
    RunConfig,
    Selection,
)
from synthbench.config.parts import PartReader, ancestors_of
from synthbench.config.problems import Cursor, Problems
from synthbench.config.published_tables import read_published_audit
from synthbench.config.rows import ALL
from synthbench.config.schema import AuditSection, EvaluateSection, RunSection, SelectionSection, TrainSection
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.model_contracts import Evaluator, Trainer
from synthbench.plugins.task_providers import TaskProvider

LEARNING = ("train", "dev")
FOR_SOURCES = ("if_found", "exclude", *LEARNING)
"""Keys of an evaluation that don't apply to tasks with their own data."""
ASKED_FOR_SIMILARITY = (RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET, RecordKind.RANKING)
"""Record kinds whose audit asks annotators for the similarity of two sentences."""


class RunReader:
    """Reads one run's document; `components` tracks the used sources and LLMs."""

    def __init__(
        self, components: Components, document: Document, problems: Problems, *, draws_data: bool
    ) -> None:
        self.components = components
        self.at = Cursor(document, problems)
        self.draws_data = draws_data
        self.parts = PartReader(components, self.at["data"])
        self.idle: list[str] = []
        """Names of unused parts."""

    def config(self) -> RunConfig | None:
        """Return the run's configuration, or None with its faults noted."""
        self.at.parse(RunSection)
        self._check_aliases()
        self._check_ends()
        parts = self.parts.read()
        trained = self._trained(self.at["train"])
        evaluations = [self._evaluation(at) for _, at in self.at["evaluate"].sections]
        self._check_tasks_once()
        audits = [self._audit(name, at) for name, at in self.at["audit"].sections]
        if self.at.problems.faults:
            return None
        given = {key: self.at.value[key] for key in ("data", "train") if key in self.at.value}
        return RunConfig(
            parts=self._used(parts),
            evaluations=tuple(each for each in evaluations if each),
            audits=tuple(each for each in audits if each),
            parameters=dict(flatten(given)),
            **(trained or {"trainer_name": "", "trainer": None, "selection": None}),
        )

    def _used(self, parts: list[Part]) -> tuple[Part, ...]:
        """Return the parts used for training, selection or audits, and all parts that they are made from.

        Without training, all parts count as used.
        """
        if not self.at["train"].value:
            return tuple(parts)
        selecting = self.at["train"]["selection"].mapping.get("parts", ())
        sections = [at.mapping for _, at in self.at["audit"].sections]
        audited = [str(each[key]) for each in sections for key in ("part", "gold") if each.get(key)]
        used = ancestors_of({*(part.name for part in parts if part.train_on), *selecting, *audited}, parts)
        self.idle += [part.name for part in parts if part.name not in used]
        return tuple(part for part in parts if part.name in used)

    def _check_aliases(self) -> None:
        """Require that no alias has the name of a source."""
        for alias in self.at["aliases"].mapping:
            if alias in self.components.sources:
                self.at["aliases"][alias].add(
                    f"'{alias}' is the name of a source; give the alias another name"
                )

    def _check_ends(self) -> None:
        """Require `train` and `evaluate`.

        Both may be missing if data are audited, generated, prepared or plotted.
        """
        given = {key: bool(self.at[key].value) for key in ("train", "evaluate", "audit")}
        parts = [at.mapping for _, at in self.at["data"].sections]
        is_made = any("method" in part or part.get("prepare") for part in parts)
        is_end = given["audit"] or self.draws_data or is_made
        if is_end and not given["train"] and not given["evaluate"]:
            return
        why = "a run that is audited has neither `train` nor `evaluate`, or both"
        for key in ("train", "evaluate"):
            if not given[key]:
                self.at[key].add(f"missing; {why if given['audit'] else 'it has no default'}")

    def _trained(self, at: Cursor) -> dict[str, Any] | None:
        """Return the fields of RunConfig that the section `train` sets; None without a known trainer."""
        if not at.mapping:
            return None
        section, settings = self.components.split(TrainSection, at)
        selection = self._selection(at["selection"]) if at["selection"].mapping else None
        plugin: type[Trainer] | None = self.components.plugin("trainers", section.trainer, at)
        trainer, _ = self.components.configured(plugin, settings, at)
        if plugin is None:
            return None
        raw = self.at["data"].mapping.values()
        has_data = any(not isinstance(part, dict) or part.get("train_on") is not False for part in raw)
        if plugin.takes_data != has_data:
            wrong = "needs data, there is none" if plugin.takes_data else "takes no data; leave it empty"
            self.at["data"].add(f"trainer '{section.trainer}' {wrong}")
        base = getattr(trainer, "base", None)
        if plugin.model_kind is not ModelKind.ENCODER:
            self._check_pair_scorer()
        elif isinstance(base, Pretrained) and base.encoder != "dense":
            self._check_searcher(base)
        if trainer is not None:
            self.parts.check_trainer(trainer)
        self.parts.check_bases_apart(at.mapping.get("base"))
        given = section.seed_optimization
        if given is not None and section.selection is None:
            at["seed_optimization"].add("needs train.selection: dev decides which training goes on")
        elif given is not None and not (plugin.is_seeded and plugin.can_pause):
            message = f"trainer '{section.trainer}' can't begin with several seeds and go on with one"
            at["seed_optimization"].add(message)
        return {
            "trainer_name": section.trainer,
            "trainer": trainer,
            "selection": selection,
            "seed_optimization": given,
            "starts_from": section.starts_from or "",
        }

    def _check_pair_scorer(self) -> None:
        """Note evaluations that need an encoder or have prompts, since the trainer makes a pair scorer."""
        for _, at in self.at["evaluate"].sections:
            if at["prompts"].value is not None:
                message = "an encoder reads prompts, the trainer makes a pair scorer; leave them out"
                at["prompts"].add(message)
            evaluator = at.mapping.get("evaluator")
            if getattr(self.components.known("evaluators", evaluator), "needs_encoder", False):
                at["evaluator"].add(f"'{evaluator}' needs an encoder, the trainer makes a pair scorer")

    def _check_searcher(self, base: Pretrained) -> None:
        """Note evaluators that need one dense vector per text; a sparse or late-interaction base has none."""
        for _, at in self.at["evaluate"].sections:
            evaluator = at.mapping.get("evaluator")
            plugin = self.components.known("evaluators", evaluator)
            if getattr(plugin, "needs_encoder", False) and not plugin.takes_searchers:
                needs = "needs one vector for each text"
                at["evaluator"].add(f"'{evaluator}' {needs}, and train.base is a {base.encoder} encoder")

    def _selection(self, at: Cursor) -> Selection | None:
        section, _ = self.components.split(SelectionSection, at)
        plugin: type[Evaluator] | None = self.components.plugin("evaluators", section.evaluator, at)
        self._use(at, {"sources": section.sources or ()}, _kind(plugin), learns=True)
        self.parts.check_selecting(at["parts"], section.parts, _kind(plugin))
        if plugin is None:
            return None
        if plugin.needs_encoder:
            message = f"'{section.evaluator}' needs an encoder; select with an evaluator that scores pairs"
            at["evaluator"].add(message)
        evaluator, _ = self.components.configured(plugin, {}, at)
        return evaluator and Selection(section.evaluator, evaluator, section.sources, section.parts)

    def _use(
        self,
        at: Cursor,
        named: Mapping[str, tuple[str, ...]],
        kind: RecordKind | None,
        *,
        learns: bool = False,
    ) -> None:
        """Mark sources as used and note their faults; `named`: key of the section -> its sources."""
        for key, names in named.items():
            for index, name in enumerate(names):
                self.components.use(at[key][index], name, kind, learns=learns)

    def _evaluation(self, at: Cursor) -> EvaluationPlan | None:
        section, settings = self.components.split(EvaluateSection, at)
        plugin: type[Evaluator] | None = self.components.plugin("evaluators", section.evaluator, at)
        if plugin is None or not issubclass(plugin, TaskProvider):
            self._use(at, {"tasks": section.tasks, "if_found": section.if_found}, _kind(plugin))
            self._use(at, {"exclude": section.exclude}, RecordKind.SCORED_PAIR)
            for key in LEARNING:
                names = getattr(section, key)
                if names and plugin is not None and key not in plugin.learns_from:
                    at[key].add(f"'{section.evaluator}' learns nothing from it; leave it out")
                self._use(at, {key: names}, _kind(plugin), learns=True)
        evaluator, _ = self.components.configured(plugin, settings, at)
        if evaluator is None:
            return None
        if isinstance(evaluator, TaskProvider):
            self._check_provided_tasks(at, section, evaluator)
        at.passes(lambda: evaluator.check_learning({key for key in LEARNING if getattr(section, key)}))
        # Sorted, so that any order of the same sources shares one stage.
        changed = {"evaluator": evaluator, "exclude": tuple(sorted(set(section.exclude)))}
        return EvaluationPlan(section.evaluator, **{**dict(section), **changed})

    def _check_provided_tasks(self, at: Cursor, section: EvaluateSection, provider: TaskProvider) -> None:
        """Note unknown tasks, tasks named like a source, and keys that need sources."""
        for key in FOR_SOURCES:
            if getattr(section, key):
                at[key].add(f"the tasks of '{section.evaluator}' bring their own data; leave it out")
        for index, task in enumerate(section.tasks):
            inner = at["tasks"][index]
            if task in self.components.sources:
                inner.add(
                    f"'{task}' is a task of '{section.evaluator}' and a source's name; rename the source"
                )
            with inner.noting():
                if task != ALL:
                    provider.check_name(task)
                elif len(section.tasks) > 1:
                    raise UserError(f"'{ALL}' stands alone: list it, or the tasks")
                else:
                    provider.names()

    def _check_tasks_once(self) -> None:
        """Require that each task is named once, since results are keyed by task."""
        seen: set[str] = set()
        for path, task in named_tasks(self.at["evaluate"].mapping):
            if task in seen:
                message = f"'{task}' is evaluated already; to do it twice, give the source two names"
                self.at.problems.add(self.at.document, ("evaluate", *path), message)
            seen.add(task)

    def _audit(self, name: str, at: Cursor) -> AuditPlan | None:
        section: AuditSection | None = at.parse(AuditSection)
        if section is None:
            return None
        if not at["part"].is_known("part of `data`", section.part, self.at["data"].mapping):
            return None
        kind = self.parts.kind_of(section.part)
        if section.gold is not None:
            for key, part in (("gold", section.gold), ("part", section.part)):
                if not at[key].is_known("part of `data`", part, self.at["data"].mapping):
                    return None
                if (of := self.parts.kind_of(part)) not in (None, RecordKind.SCORED_PAIR):
                    at[key].add(f"gold scores are compared with scored pairs, '{part}' has {of} records")
        is_judged = section.oracle is not None or bool(section.sheets)
        if kind is not None and kind not in ASKED_FOR_SIMILARITY and not is_judged:
            at.add(
                f"what to ask about {kind} records is not known; write a sheet with `synthbench data audit "
                "--write`, and name the answered ones under `sheets:`"
            )
        sheets = tuple(path_of(RootedName(sheet, self.components.folder)) for sheet in section.sheets)
        for index, sheet in enumerate(sheets):
            if wrong := why_no_file(sheet):
                at["sheets"][index].add(f"{wrong}: {sheet}")
        published, shown = section.published, None
        if published is not None:
            with at["published"].noting():
                file = path_of(RootedName(published.file, self.components.folder))
                shown = read_published_audit(file, published.rows, published.columns)
        return AuditPlan(name, **{**dict(section), "sheets": sheets, "published": shown})


def named_tasks(evaluate: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and name of each test source in an `evaluate` section, as far as readable."""
    for name, raw in evaluate.items():
        for key in ("tasks", "if_found"):
            listed = raw.get(key) if isinstance(raw, dict) else None
            for index, task in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(task, str):
                    yield (name, key, index), task


def _kind(evaluator: type[Evaluator] | None) -> RecordKind | None:
    if evaluator is None or issubclass(evaluator, TaskProvider):
        return None
    return evaluator.record_kind
