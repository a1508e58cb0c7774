"""One run's sections to configured plug-ins."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from synthbench.config.documents import Document, KeyPath, flatten
from synthbench.config.experiment import EvaluationPlan, Part, RunConfig, Selection
from synthbench.config.problems import Problems, parse
from synthbench.config.schema import (
    EvaluateSection,
    PartSection,
    RunSection,
    Section,
    SelectionSection,
    TrainSection,
)
from synthbench.data.records import RecordKind
from synthbench.errors import UserError, did_you_mean
from synthbench.models.interfaces import ModelKind
from synthbench.plugins import Method, TrainedModel, Trainer, component
from synthbench.sources.models import Source

S = TypeVar("S", bound=Section)


class RunParser:
    """Parses run documents, noting every fault; remembers which sources were used.

    A source whose own section did not parse is given as None: known by name, of unknown kind.
    """

    def __init__(self, sources: Mapping[str, Source | None], problems: Problems) -> None:
        self.sources = sources
        self.problems = problems
        self.used_sources: set[str] = set()

    def parse(self, document: Document) -> RunConfig | None:
        """Return the run's configuration, or None with its faults noted."""
        before = len(self.problems.messages)
        section = parse(RunSection, document.data, document, (), self.problems)
        data, train, evaluate = (_mapping(document.data, key) for key in ("data", "train", "evaluate"))
        parts = [self._part(document, name, raw) for name, raw in data.items() if isinstance(raw, dict)]
        trained = self._train(document, train) if train else None
        evaluations = {
            name: self._evaluation(document, ("evaluate", name), raw)
            for name, raw in evaluate.items()
            if isinstance(raw, dict)
        }
        self._check_tasks(document, evaluations)
        if trained is not None:
            self._check_model_kind(document, trained[1], evaluations)
        if section is None or trained is None or len(self.problems.messages) > before:
            return None
        trainer_name, trainer, selection = trained
        return RunConfig(
            parts=tuple(part for part in parts if part),
            trainer_name=trainer_name,
            trainer=trainer,
            selection=selection,
            evaluations=tuple(evaluation for evaluation in evaluations.values() if evaluation),
            parameters=dict(
                flatten({key: document.data[key] for key in ("data", "train") if key in document.data})
            ),
        )

    def _part(self, document: Document, name: str, raw: dict[str, Any]) -> Part | None:
        path: KeyPath = ("data", name)
        section, settings = self._split(PartSection, document, path, raw)
        if section is None:
            return None
        if (section.source is None) == (section.method is None):
            self.problems.add(document, path, "needs either `source:` or `method:`, not both")
            return None
        if section.source is not None:
            self._reject_settings(document, path, settings, PartSection)
            if section.sources:
                self.problems.add(document, (*path, "sources"), "only a method has roles; leave it out")
            self._use(document, (*path, "source"), section.source)
            return Part(name, section.prepare, source=section.source)
        plugin = self._plugin("methods", str(section.method), document, path)
        if plugin is None:
            return None
        self._check_roles(document, path, plugin, section.sources)
        method: Method | None = parse(plugin, settings, document, path, self.problems)
        if method is None:
            return None
        self._check_needs(document, path, method)
        return Part(
            name, section.prepare, method=method, method_name=str(section.method), roles=section.sources
        )

    def _check_roles(
        self, document: Document, path: KeyPath, method: type[Method], given: Mapping[str, str]
    ) -> None:
        known = {**method.source_roles, **method.optional_source_roles}
        for role, source in given.items():
            if role not in known:
                hint = did_you_mean(role, known)
                self.problems.add(document, (*path, "sources", role), f"unknown role of the method{hint}")
                continue
            self._use(document, (*path, "sources", role), source, known[role])
        for role, kind in method.source_roles.items():
            if role not in given:
                message = f"missing role '{role}': the method needs a source of kind {kind}"
                self.problems.add(document, (*path, "sources"), message)

    def _check_needs(self, document: Document, path: KeyPath, method: Method) -> None:
        """Validate the configuration of what the method has trained or generated for it."""
        for name, need in method.needs().items():
            inner, settings = (*path, name), dict(need.config)
            if isinstance(need, TrainedModel):
                self._component("trainers", (need.trainer, settings), document, inner)
            else:
                generator = self._component("methods", (need.method, settings), document, inner)
                if generator is not None:
                    self._check_needs(document, inner, generator)

    def _train(self, document: Document, raw: dict[str, Any]) -> tuple[str, Trainer, Selection | None] | None:
        section, settings = self._split(TrainSection, document, ("train",), raw)
        if section is None:
            return None
        trainer = self._component("trainers", (section.trainer, settings), document, ("train",))
        selection = self._selection(document, section.selection) if section.selection else None
        if trainer is None:
            return None
        if trainer.takes_data != bool(document.data.get("data")):
            wrong = "needs data, there is none" if trainer.takes_data else "takes no data; leave it empty"
            self.problems.add(document, ("data",), f"trainer '{section.trainer}' {wrong}")
        return section.trainer, trainer, selection

    def _selection(self, document: Document, section: SelectionSection) -> Selection | None:
        path: KeyPath = ("train", "selection")
        evaluator = self._component("evaluators", (section.evaluator, {}), document, path)
        if evaluator is None:
            return None
        if evaluator.needs_encoder:
            message = f"'{section.evaluator}' needs an encoder; select with an evaluator that scores pairs"
            self.problems.add(document, (*path, "evaluator"), message)
        for index, source in enumerate(section.sources):
            self._use(document, (*path, "sources", index), source, evaluator.record_kind)
            if getattr(self.sources.get(source), "split", "dev") == "test":
                self.problems.add(
                    document, (*path, "sources", index), f"'{source}' is a test set; select on dev"
                )
        return Selection(section.evaluator, evaluator, section.sources)

    def _evaluation(self, document: Document, path: KeyPath, raw: dict[str, Any]) -> EvaluationPlan | None:
        section, settings = self._split(EvaluateSection, document, path, raw)
        if section is None:
            return None
        evaluator = self._component("evaluators", (section.evaluator, settings), document, path)
        if evaluator is None:
            return None
        for key in ("tasks", "if_found"):
            for index, source in enumerate(getattr(section, key)):
                self._use(document, (*path, key, index), source, evaluator.record_kind)
        for index, source in enumerate(section.exclude):
            self._use(document, (*path, "exclude", index), source, RecordKind.SCORED_PAIR)
        return EvaluationPlan(section.evaluator, evaluator, section.tasks, section.if_found, section.exclude)

    def _check_tasks(self, document: Document, evaluations: Mapping[str, EvaluationPlan | None]) -> None:
        """Require that each task is named once: results are told apart by their task."""
        seen: set[str] = set()
        for name, evaluation in evaluations.items():
            for key in ("tasks", "if_found"):
                for index, task in enumerate(getattr(evaluation, key, ())):
                    if task in seen:
                        message = f"'{task}' is evaluated already; to do it twice, give the source two names"
                        self.problems.add(document, ("evaluate", name, key, index), message)
                    seen.add(task)

    def _check_model_kind(
        self, document: Document, trainer: Trainer, evaluations: Mapping[str, EvaluationPlan | None]
    ) -> None:
        if trainer.model_kind is ModelKind.ENCODER:
            return
        for name, evaluation in evaluations.items():
            if evaluation is not None and evaluation.evaluator.needs_encoder:
                message = f"'{evaluation.evaluator_name}' needs an encoder, the trainer makes a pair scorer"
                self.problems.add(document, ("evaluate", name, "evaluator"), message)

    def _split(
        self, schema: type[S], document: Document, path: KeyPath, raw: dict[str, Any]
    ) -> tuple[S | None, dict[str, Any]]:
        """Parse the section's own keys and return the others, which belong to the plug-in."""
        own = {key: value for key, value in raw.items() if key in schema.model_fields}
        rest = {key: value for key, value in raw.items() if key not in schema.model_fields}
        section: S | None = parse(schema, own, document, path, self.problems)
        return section, rest

    def _plugin(self, group: str, name: str, document: Document, path: KeyPath) -> Any:  # noqa: ANN401
        """Return the plug-in's class, or None with the fault noted."""
        try:
            return component(group, name)
        except UserError as error:
            self.problems.add_error(document, (*path, group[:-1]), error)
            return None

    def _component(
        self, group: str, named: tuple[str, dict[str, Any]], document: Document, path: KeyPath
    ) -> Any:  # noqa: ANN401 - an instance of the group's contract
        """Return the plug-in with its settings, or None with the faults noted."""
        name, settings = named
        plugin = self._plugin(group, name, document, path)
        return None if plugin is None else parse(plugin, settings, document, path, self.problems)

    def _reject_settings(
        self, document: Document, path: KeyPath, settings: Iterable[str], schema: type[Section]
    ) -> None:
        for key in settings:
            hint = did_you_mean(key, schema.model_fields)
            self.problems.add(document, (*path, key), f"unknown key{hint}")

    def _use(self, document: Document, path: KeyPath, name: str, kind: RecordKind | None = None) -> None:
        if name not in self.sources:
            self.problems.add(
                document, path, f"no source is called '{name}'{did_you_mean(name, self.sources)}"
            )
            return
        self.used_sources.add(name)
        source = self.sources[name]
        if kind is not None and source is not None and source.record_kind != kind:
            message = f"'{name}' holds records of kind {source.record_kind}, here {kind} is needed"
            self.problems.add(document, path, message)


def _mapping(data: Any, key: str) -> dict[str, Any]:  # noqa: ANN401
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}
