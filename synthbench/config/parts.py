"""The parts of a run's data: their inputs, their steps, and whether the trainer can use them."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from synthbench.base.errors import did_you_mean
from synthbench.config.components import Components
from synthbench.config.experiment import Part, PrepareStep
from synthbench.config.problems import Cursor, readable
from synthbench.config.schema import PartRole, PartSection, StepSection
from synthbench.data.records import RecordKind
from synthbench.plugins.contracts import Method, Step
from synthbench.plugins.model_contracts import Trainer
from synthbench.sources.models import FileSource


class PartReader:
    """Reads the parts in one run's section `data` (`at`); notes every fault."""

    def __init__(self, components: Components, at: Cursor) -> None:
        self.components = components
        self.at = at
        self.raw = at.mapping

    def read(self) -> list[Part]:
        """Return the parts; faulty ones may be missing."""
        found = (self._part(at) for _, at in self.at.sections)
        return [part for part in found if part is not None]

    def _part(self, at: Cursor) -> Part | None:
        section, settings = self.components.split(PartSection, at)
        raw = at.mapping
        if ("source" in raw) == ("method" in raw):
            at.add(self._source_or_method_fault(str(at.path[-1]), raw))
            return None
        read = self._from_method if "method" in raw else self._from_source
        return read(at, section, settings)

    def _source_or_method_fault(self, name: str, raw: Mapping[str, Any]) -> str:
        if "source" in raw:
            return "has both `source:` and `method:`; it needs one of them"
        near = [
            *(word for key in raw for word in difflib.get_close_matches(key, ("source", "method"), n=1)),
            *difflib.get_close_matches(name, [other for other in self.raw if other != name], n=1),
        ]
        return "needs `source:` or `method:`" + (f"; did you mean '{near[0]}'?" if near else "")

    def _from_source(self, at: Cursor, section: PartSection, settings: Collection[str]) -> Part | None:
        for key in settings:
            at[key].add(f"unknown key{did_you_mean(key, PartSection.model_fields)}")
        if section.sources:
            at["sources"].add("only a method has roles; leave it out")
        if section.llm is not None:
            at["llm"].add("only a method asks an LLM; leave it out")
        if section.source is None:
            return None
        self.components.use(at["source"], section.source, learns=True)
        source = self.components.sources.get(section.source)
        steps = self._steps(at, section, None if source is None else source.record_kind)
        return Part(str(at.path[-1]), steps, source=section.source, **_in_training(section))

    def _from_method(self, at: Cursor, section: PartSection, settings: dict[str, Any]) -> Part | None:
        components = self.components
        plugin: type[Method] | None = components.plugin("methods", section.method, at)
        self._check_roles(at["sources"], section.sources, plugin)
        steps = self._steps(at, section, None if plugin is None else plugin.record_kind)
        if plugin is None:
            return None
        method = components.method(plugin, settings, section.sources, at)
        llm = components.llm(plugin, method, section.llm, at)
        if method is None:
            return None
        return Part(
            str(at.path[-1]),
            steps,
            method=method,
            method_name=str(section.method),
            roles=section.sources,
            llm=llm,
            **_in_training(section),
        )

    def _check_roles(
        self, at: Cursor, given: Mapping[str, str | PartRole], plugin: type[Method] | None
    ) -> None:
        """Check a method's roles: all mandatory ones present, no unknown ones, each with a fitting source."""
        needed: Mapping[str, RecordKind] = {} if plugin is None else plugin.source_roles
        known = {**needed, **({} if plugin is None else plugin.optional_source_roles)}
        for role in given if plugin is not None else ():
            if role not in known:
                at[role].add(f"unknown role of the method{did_you_mean(role, known)}")
        for role, kind in needed.items():
            if role not in given:
                at.add(f"missing role '{role}': the method needs a source of kind {kind}")
        for role, taken in given.items():
            if plugin is not None and role not in known:
                continue
            if isinstance(taken, PartRole):
                self._check_part_of_role(at[role], taken, known.get(role))
            elif taken not in self.components.sources and taken in self.raw:
                at[role].add(f"'{taken}' is a part of `data`, not a source; write {{part: {taken}}}")
            else:
                self.components.use(at[role], taken, known.get(role), learns=True)

    def _check_part_of_role(self, at: Cursor, taken: PartRole, kind: RecordKind | None) -> None:
        """Note a fault if a role can't read its part; `kind` is the kind that the role needs, None: any."""
        _, own, _, role = at.path
        wrong = self._obstacle(str(own), taken.part)
        if taken.part in self.components.sources and taken.part not in self.raw:
            wrong = f"'{taken.part}' is a source, not a part of `data`; write {role}: {taken.part}"
        if not wrong:
            wrong = _wrong_kind(taken.part, self.kind_of(taken.part, prepared=taken.prepared), kind)
        if wrong:
            at["part"].add(wrong)

    def _obstacle(self, own: str, name: str) -> str:
        """Return why part `own` can't be made from part `name`, "" if it can."""
        if name not in self.raw:
            others = [other for other in self.raw if other != own]
            near = did_you_mean(name, others) if others else f"; there is none but '{own}' itself"
            return f"no part of `data` is called '{name}'{near}"
        if name == own:
            return f"'{own}' can't be made from itself"
        cycle = self._way(name, own)
        if cycle:
            return f"a cycle: {' is made from '.join([own, *cycle])}; one of them needs another source"
        order = list(self.raw)
        if order.index(name) > order.index(own):
            return f"part '{name}' comes later in `data`; move it before '{own}'"
        return ""

    def _way(self, start: str, goal: str, seen: Collection[str] = ()) -> tuple[str, ...]:
        """Return a chain of parts from `start` to `goal`, each made from the next; () if there is none."""
        if start == goal:
            return (goal,)
        for role in self.at[start]["sources"].mapping:
            name = self.at[start]["sources"][role].mapping.get("part")
            way = self._way(name, goal, (*seen, start)) if isinstance(name, str) and name not in seen else ()
            if way:
                return (start, *way)
        return ()

    def _steps(self, at: Cursor, section: PartSection, kind: RecordKind | None) -> tuple[PrepareStep, ...]:
        """Return a part's steps; `kind` is the records' kind before the first step (None: unknown)."""
        steps: list[PrepareStep] = []
        for index in range(len(section.prepare)):
            inner = at["prepare"][index]
            own, settings = self.components.split(StepSection, inner)
            plugin = self.components.plugin("steps", own.step, inner)
            step = self.components.step(plugin, settings, inner)
            llm = None if plugin is None else self.components.llm(plugin, step, own.llm, inner)
            if step is None:
                kind = None
                continue
            obstacle = "" if kind is None else step.obstacle(kind)
            if obstacle:
                inner.add(f"{own.step}: {obstacle}")
            kind = None if kind is None or obstacle else step.kind_after(kind)
            steps.append(PrepareStep(own.step, step, llm))
        return tuple(steps)

    def kind_of(self, name: str, *, prepared: bool = True) -> RecordKind | None:
        """Return the kind of a part's records, after its steps (`prepared`) or before; None if unknown."""
        part = self.at[name].mapping
        source = part.get("source")
        made: Any = self.components.known("methods", part.get("method"))
        if isinstance(source, str):
            made = self.components.sources.get(source)
        kind: RecordKind | None = None if made is None else made.record_kind
        for plugin, raw in self._known_steps(name) if prepared else ():
            if plugin is not None and kind is not None:
                step = readable(plugin, raw, self.components.folder)
                # A step that can't take the records has its own line, and says nothing of what follows.
                kind = None if step.obstacle(kind) else step.kind_after(kind)
        return kind

    def _known_steps(self, name: str) -> Iterator[tuple[type[Step] | None, Mapping[str, Any]]]:
        """Yield the class and settings of each readable step of a part; the class is None if unknown."""
        steps = self.at[name].mapping.get("prepare")
        for raw in steps if isinstance(steps, list) else ():
            own = raw if isinstance(raw, dict) else {}
            yield self.components.known("steps", own.get("step")), own

    def check_selecting(self, at: Cursor, names: Sequence[str], kind: RecordKind | None) -> None:
        """Check the selection parts: each exists, occurs once, fits the evaluator and has dev records."""
        for index, name in enumerate(names):
            if name in names[:index]:
                at[index].add(f"'{name}' is listed twice")
            is_there = at[index].is_known("part of `data`", name, self.raw)
            if is_there and (wrong := _wrong_kind(name, self.kind_of(name), kind)):
                at[index].add(wrong)
            part = self.at[name].mapping
            is_divided = any(step.get("step") == "split" for _, step in self._known_steps(name))
            source = part.get("source")
            known = self.components.sources.get(source) if isinstance(source, str) else None
            split = getattr(known, "final_split", None)
            if not is_divided and split not in (None, "dev"):
                at[index].add(
                    f"no record of '{name}' is in split dev: all are in {split}; a last step such as"
                    f" {{step: split, dev: 0.1}} in data.{name}.prepare sets some apart"
                )

    def check_trainer(self, trainer: Trainer) -> None:
        """Note a fault for each part with records, weight or temperature that the trainer can't use."""
        for name, at in self.at.sections:
            raw = at.mapping
            if raw.get("train_on") is False:
                continue
            if raw.get("weight", 1) != 1 and not trainer.takes_weights:
                at["weight"].add("the trainer takes no part's weight")
            if raw.get("loss_temperature") is not None and not trainer.takes_temperatures:
                at["loss_temperature"].add(
                    "the trainer takes no part's loss_temperature; simcse and the loss multiple-negatives do"
                )
            kind = self.kind_of(name)
            obstacle = "" if kind is None else trainer.obstacle(kind)
            if not obstacle and kind and trainer.if_unscored() and self._is_unscored(name):
                is_file = isinstance(self.components.sources.get(str(raw.get("source"))), FileSource)
                unread = " (of a file, `columns: {scores: NAME}` reads them)" if is_file else ""
                obstacle = trainer.if_unscored().format(
                    missing=f"the triplets of '{name}' have no scores{unread}"
                )
            if obstacle:
                at.add(obstacle)

    def _is_unscored(self, name: str) -> bool:
        """Return whether a part's triplets certainly have no teacher scores."""
        kind = self.kind_of(name, prepared=False)
        source = self.components.sources.get(str(self.at[name].mapping.get("source")))
        can_be = kind == RecordKind.TRIPLET and (source is None or source.has_scores)
        is_scored = None if can_be else False
        for plugin, raw in self._known_steps(name):
            if plugin is None or kind is None:
                return False
            after = readable(plugin, raw, self.components.folder).kind_after(kind)
            becomes = plugin.scores_triplets
            is_scored = becomes if becomes is not None or after != kind else is_scored
            kind = after
        return is_scored is False

    def check_bases_apart(self, base: object) -> None:
        """Note a fault for each step that selects training data with the model under test, `base`."""
        for name, at in self.at.sections:
            for index, (plugin, raw) in enumerate(self._known_steps(name)):
                if plugin is not None and base in _bases_apart(plugin, raw):
                    message = f"{raw['step']}: its encoder is the one under test (train.base); take another"
                    at["prepare"][index].add(message)


def _wrong_kind(name: str, found: RecordKind | None, kind: RecordKind | None) -> str:
    """Return a message if kind `found` is not the needed `kind`; "" if equal, or if either is unknown."""
    if kind is None or found is None or found == kind:
        return ""
    return f"'{name}' holds records of kind {found}, here {kind} is needed"


def _bases_apart(plugin: type[Step], raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    step: Step = readable(plugin, raw)
    try:
        return step.bases_apart()
    except (AttributeError, TypeError):  # invalid settings, noted elsewhere
        return ()


def _in_training(section: PartSection) -> dict[str, Any]:
    """Return a part's weight, loss temperature and `train_on`, as fields of Part."""
    return {"weight": section.weight, "temperature": section.loss_temperature, "train_on": section.train_on}


def ancestors_of(names: Collection[str], parts: Sequence[Part]) -> set[str]:
    """Return the names of these parts and of all parts that they are made from."""
    found = set(names)
    for part in reversed(parts):  # a part reads only earlier parts
        if part.name in found:
            found.update(role.part for role in (part.roles or {}).values() if isinstance(role, PartRole))
    return found
