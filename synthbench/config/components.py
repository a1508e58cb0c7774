"""Plug-ins as sections of an experiment file name them, with what they need and what they read."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from synthbench.base.errors import UserError, did_you_mean
from synthbench.config.documents import Document, KeyPath
from synthbench.config.llm import NamedLLM
from synthbench.config.problems import Problems, parse, readable
from synthbench.config.schema import SeedOptimizationSection
from synthbench.data.records import RecordKind
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.models.checks import check_files, check_layers, check_pair_reader
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.contracts import GeneratedData, Method, Need, Step, TrainedModel, Trainer
from synthbench.plugins.files import ALLOWED, may_run_code
from synthbench.plugins.loading import component
from synthbench.sources.models import FileSource, Source
from synthbench.worlds import NAME


class ComponentParser:
    """Finds and configures plug-ins, noting every fault; remembers which sources were used.

    A source or an LLM whose own section did not parse is given as None: known by name alone.
    """

    def __init__(
        self,
        sources: Mapping[str, Source | None],
        problems: Problems,
        llms: Mapping[str, NamedLLM | None],
    ) -> None:
        self.llms = llms
        self.sources = sources
        self.problems = problems
        self.used_sources: set[str] = set()
        self.used_llms: set[str] = set()
        self.section_keys: dict[KeyPath, Collection[str]] = {}
        """What a section may hold beside its plug-in's settings, by its path: for suggestions."""

    def plugin(self, group: str, name: str | None, document: Document, path: KeyPath) -> Any:  # noqa: ANN401
        """Return the plug-in's class, None with the fault noted, or None if no name could be read."""
        if name is None:
            return None
        try:
            return component(group, name, self.problems.folder)
        except UserError as error:
            self.problems.add_error(document, (*path, group[:-1]), error)
            return None

    def known(self, group: str, name: object) -> Any:  # noqa: ANN401 - a plug-in's class, or None
        """Return the plug-in's class, None if there is none of that name; notes nothing."""
        try:
            return component(group, name, self.problems.folder) if isinstance(name, str) else None
        except UserError:
            return None

    def configured(
        self,
        plugin: Any,  # noqa: ANN401 - a plug-in's class, or None
        settings: Mapping[str, Any],
        document: Document,
        path: KeyPath,
    ) -> tuple[Any, Any]:
        """Return the plug-in with its settings twice: None if a setting is wrong, and with what can be read.

        The models that it names are looked for where that takes no network.
        """
        if plugin is None:
            return None, None
        beside = self.section_keys.get(path, ())
        parsed = parse(plugin, settings, document, path, self.problems, beside)
        known = readable(plugin, settings, self.problems.folder) if parsed is None else parsed
        for inner, base in _models(known, path):
            for check, key in _checks(base):
                try:
                    check()
                except UserError as error:
                    self.problems.add_error(document, (*inner, key), error)
                    break
            else:
                self._check_pair_reader(known, base, document, inner)
        return parsed, known

    def _check_pair_reader(
        self, plugin: object, base: Pretrained | NamedLanguageModel, document: Document, path: KeyPath
    ) -> None:
        """Note why a model can't read pairs, where a trainer needs one that does."""
        if not (isinstance(plugin, Trainer) and isinstance(base, Pretrained)):
            return
        needs_head = plugin.pair_readers().get(str(path[-1]))
        try:
            if needs_head is not None:
                check_pair_reader(base, needs_head=needs_head)
        except UserError as error:
            self.problems.add_error(document, (*path, "model"), error)

    def method(
        self,
        plugin: Any,  # noqa: ANN401 - a Method's class, or None
        settings: Mapping[str, Any],
        given: Collection[str],
        document: Document,
        path: KeyPath,
    ) -> Method | None:
        """Return the method with its settings, checked with all that it needs; None with the faults noted.

        `given` are the roles that have a source.
        """
        parsed, known = self.configured(plugin, settings, document, path)
        if isinstance(parsed, Method):
            self._check_sources(parsed, given, document, path)
        for name, need in _needs(known, is_valid=parsed is not None).items():
            inner, config = _path_of(name, document, path), dict(need.config)
            absent = [role for role in _roles(need) if role not in given]
            for role in absent if parsed is not None else ():
                if role not in plugin.source_roles:
                    message = (
                        f"missing role '{role}': with these settings the method's {name} is made from it"
                    )
                    self.problems.add(document, (*path, "sources"), message)
            if isinstance(need, TrainedModel):
                trainer = self.plugin("trainers", need.trainer, document, inner)
                self.configured(trainer, config, document, inner)
                self._check_seed_optimization(need, trainer, given, document, inner)
            else:
                generator = self.plugin("methods", need.method, document, inner)
                roles = [role for role, ours in need.sources.items() if ours in given]
                self.method(generator, config, roles, document, inner)
        return parsed if isinstance(parsed, Method) else None

    def step(
        self,
        plugin: Any,  # noqa: ANN401 - a Step's class, or None
        settings: Mapping[str, Any],
        document: Document,
        path: KeyPath,
    ) -> Step | None:
        """Return the step with its settings, None with the faults noted."""
        parsed, _ = self.configured(plugin, settings, document, path)
        if not isinstance(parsed, Step):
            return None
        learnt = {source for need in parsed.needs().values() for source in need.data}
        for source in parsed.others():
            location = _key_of(source, settings, path)
            if source in learnt:
                self.learn_from(document, location, source)
            else:
                self.use(document, location, source)
        for name, need in parsed.needs().items():
            inner = _path_of(name, document, path)
            trainer = self.plugin("trainers", need.trainer, document, inner)
            self.configured(trainer, dict(need.config), document, inner)
            self._check_seed_optimization(need, trainer, parsed.others(), document, inner)
        return parsed

    def llm(
        self,
        plugin: type[Method | Step],
        made: Method | Step | None,
        given: str | None,
        document: Document,
        path: KeyPath,
    ) -> NamedLLM | None:
        """Return the LLM that a method or step asks, None if it asks none or the fault is noted.

        `made` is the plug-in with its settings, None if these are at fault; `given` is its section's `llm`.
        """
        word = "method" if issubclass(plugin, Method) else "step"
        asks = plugin.uses_llm if made is None else _asks(made)
        if not asks:
            if given is not None and made is not None:
                message = f"the {word} asks no LLM with these settings; leave it out"
                self.problems.add(document, (*path, "llm"), message)
            return None
        if not self.llms:
            message = f"the {word} uses an LLM; name one at the file's top level, such as `llm: {NAME}`"
            self.problems.add(document, (*path, word), message)
            return None
        if given is None and len(self.llms) > 1:
            names = ", ".join(self.llms)
            message = f"the {word} uses an LLM; say which with `llm: NAME`, one of {names}"
            self.problems.add(document, (*path, word), message)
            return None
        name = next(iter(self.llms)) if given is None else given
        if name not in self.llms:
            hint = did_you_mean(name, self.llms)
            self.problems.add(document, (*path, "llm"), f"no LLM is called '{name}'{hint}")
            return None
        self.used_llms.add(name)
        return self.llms[name]

    def check_taken(self, document: Document, trainer: Trainer) -> None:
        """Require that the trainer can learn from what each part holds, and takes what it says of itself."""
        parts = document.data.get("data")
        for name, raw in (parts if isinstance(parts, dict) else {}).items():
            if not isinstance(raw, dict) or raw.get("train_on") is False:
                continue
            if raw.get("weight", 1) != 1 and not trainer.takes_weights:
                self.problems.add(document, ("data", name, "weight"), "the trainer takes no part's weight")
            if raw.get("loss_temperature") is not None and not trainer.takes_temperatures:
                self.problems.add(
                    document,
                    ("data", name, "loss_temperature"),
                    "the trainer takes no part's loss_temperature; simcse and the loss multiple-negatives do",
                )
            kind = self.kind_of(raw)
            obstacle = "" if kind is None else trainer.obstacle(kind)
            if not obstacle and kind and trainer.if_unscored() and self._is_unscored(raw):
                missing = f"the triplets of '{name}' have no scores{self._unread_scores(raw)}"
                obstacle = trainer.if_unscored().format(missing=missing)
            if obstacle:
                self.problems.add(document, ("data", name), obstacle)

    def _is_unscored(self, part: Mapping[str, Any]) -> bool:
        """Tell whether a part's triplets have no teacher's scores for sure, whatever its records are."""
        kind = self.kind_of(part, prepared=False)
        source = self.sources.get(str(part.get("source")))
        can_be = kind == RecordKind.TRIPLET and (source is None or source.has_scores)
        is_scored = None if can_be else False
        steps = part.get("prepare")
        for raw in steps if isinstance(steps, list) else ():
            plugin = self.known("steps", raw.get("step") if isinstance(raw, dict) else None)
            if plugin is None or kind is None:
                return False
            after = self._kind_after([raw], kind)
            becomes = plugin.scores_triplets
            is_scored = becomes if becomes is not None or after != kind else is_scored
            kind = after
        return is_scored is False

    def _unread_scores(self, part: Mapping[str, Any]) -> str:
        """Say how the scores in a file are read, where the part is one."""
        is_file = isinstance(self.sources.get(str(part.get("source"))), FileSource)
        return " (of a file, `columns: {scores: NAME}` reads them)" if is_file else ""

    def check_bases_apart(self, document: Document, train: Mapping[str, Any]) -> None:
        """Require that no step chooses training data with the model that is then under test."""
        parts = document.data.get("data")
        for name, part in parts.items() if isinstance(parts, dict) else ():
            steps = part.get("prepare") if isinstance(part, dict) else None
            for index, raw in enumerate(steps if isinstance(steps, list) else ()):
                plugin = self.known("steps", raw.get("step") if isinstance(raw, dict) else None)
                if plugin is not None and train.get("base") in _bases_apart(plugin, raw):
                    message = f"{raw['step']}: its encoder is the one under test (train.base); take another"
                    self.problems.add(document, ("data", name, "prepare", index), message)

    def _check_seed_optimization(
        self,
        need: TrainedModel,
        trainer: type[Trainer] | None,
        given: Collection[str],
        document: Document,
        path: KeyPath,
    ) -> None:
        if need.seed_optimization is None:
            return
        inner = (*path, "seed_optimization")
        parse(SeedOptimizationSection, need.seed_optimization, document, inner, self.problems)
        if need.selection not in given:
            message = f"needs a source for the role '{need.selection}': it decides which training goes on"
            self.problems.add(document, inner, message)
        elif trainer is not None and not (trainer.is_seeded and trainer.can_pause):
            message = f"trainer '{need.trainer}' can't begin with several seeds and go on with one"
            self.problems.add(document, inner, message)

    def _check_sources(
        self, method: Method, given: Collection[str], document: Document, path: KeyPath
    ) -> None:
        try:
            method.check_sources(given)
        except UserError as error:
            self.problems.add_error(document, (*path, "sources"), error)

    def check_roles(
        self, method: type[Method], given: Collection[str], document: Document, path: KeyPath
    ) -> None:
        """Require every role that the method must have, and none that it does not know."""
        known = {**method.source_roles, **method.optional_source_roles}
        for role in given:
            if role not in known:
                hint = did_you_mean(role, known)
                self.problems.add(document, (*path, "sources", role), f"unknown role of the method{hint}")
        for role, kind in method.source_roles.items():
            if role not in given:
                message = f"missing role '{role}': the method needs a source of kind {kind}"
                self.problems.add(document, (*path, "sources"), message)

    def kind_of(self, part: Any, *, prepared: bool = True) -> RecordKind | None:  # noqa: ANN401 - whatever the file holds
        """Return the kind of a part's records, after its steps or before; None if that is unknown."""
        if not isinstance(part, dict):
            return None
        source, method = (part.get(key) for key in ("source", "method"))
        made = self.sources.get(source) if isinstance(source, str) else self.known("methods", method)
        steps = part.get("prepare") if prepared else ()
        return None if made is None else self._kind_after(steps, made.record_kind)

    def _kind_after(self, steps: object, kind: RecordKind) -> RecordKind:
        """Return the kind of records after a part's steps, as far as these can be read."""
        for raw in steps if isinstance(steps, list) else ():
            name = raw.get("step") if isinstance(raw, dict) else None
            plugin = self.known("steps", name)
            if plugin is not None:
                kind = readable(plugin, raw, self.problems.folder).kind_after(kind)
        return kind

    def check_dev(self, document: Document, path: KeyPath, name: str) -> None:
        """Note the problem if a part of the data that selects is a source without records in split dev.

        What a method makes is known once it is made.
        """
        parts = document.data.get("data")
        part = parts.get(name) if isinstance(parts, dict) else None
        steps, source = (part.get("prepare"), part.get("source")) if isinstance(part, dict) else (None, None)
        is_divided = any(
            isinstance(step, dict) and step.get("step") == "split"
            for step in (steps if isinstance(steps, list) else ())
        )
        known = self.sources.get(source) if isinstance(source, str) else None
        split = getattr(known, "final_split", None)
        if not is_divided and split not in (None, "dev"):
            message = (
                f"no record of '{name}' is in split dev: all are in {split}; a last step such as"
                f" {{step: split, dev: 0.1}} in data.{name}.prepare sets some apart"
            )
            self.problems.add(document, path, message)

    def learn_from(
        self, document: Document, path: KeyPath, name: str, kind: RecordKind | None = None
    ) -> None:
        """Note that something learns from a source, and the problem if that is none, or a test set."""
        self.use(document, path, name, kind)
        if getattr(self.sources.get(name), "final_split", None) == "test":
            self.problems.add(document, path, f"'{name}' is a test set; test sets are never trained on")

    def use(self, document: Document, path: KeyPath, name: str, kind: RecordKind | None = None) -> None:
        """Note that a source is used, and the problem if there is none of that name and kind (None: any)."""
        if name not in self.sources:
            hint = did_you_mean(name, self.sources)
            self.problems.add(document, path, f"no source is called '{name}'{hint}")
            return
        self.used_sources.add(name)
        source = self.sources[name]
        if kind is not None and source is not None and source.record_kind != kind:
            message = f"'{name}' holds records of kind {source.record_kind}, here {kind} is needed"
            self.problems.add(document, path, message)


def _needs(method: Any, *, is_valid: bool) -> Mapping[str, Need]:  # noqa: ANN401
    """Return what a method needs; of one with faulty settings, what it can tell in spite of them."""
    if not isinstance(method, Method):
        return {}
    try:
        return method.needs()
    except Exception:
        if is_valid:
            raise
        return {}


def _bases_apart(plugin: type[Step], raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    step: Step = readable(plugin, raw)
    try:
        return step.bases_apart()
    except (AttributeError, TypeError):  # its settings are at fault, which is noted elsewhere
        return ()


def _asks(plugin: Method | Step) -> bool:
    """Tell whether a method or step asks an LLM, itself or through data that it needs."""
    if plugin.needs_llm():
        return True
    needs = (need for need in plugin.needs().values() if isinstance(need, GeneratedData))
    for need in needs:
        try:
            inner = component("methods", need.method).model_validate_json(json.dumps(dict(need.config)))
        except (UserError, ValidationError):
            continue
        if _asks(inner):
            return True
    return False


def _roles(need: Need) -> tuple[str, ...]:
    """Return the roles of ours that must have a source for the need to be met."""
    if isinstance(need, TrainedModel):
        return need.data
    try:
        optional = component("methods", need.method).optional_source_roles
    except UserError:
        optional = {}
    return tuple(ours for role, ours in need.sources.items() if role not in optional)


def _path_of(need: str, document: Document, path: KeyPath) -> KeyPath:
    """Return where the settings of a need are: under its name, dotted if nested, else beside the others."""
    own, inner = (*path, *need.split(".")), document.data
    for key in own:
        if not isinstance(inner, Mapping) or key not in inner:
            return path
        inner = inner[key]
    return own


def _key_of(text: str, section: object, path: KeyPath) -> KeyPath:
    """Return the path of a text in a section, the section's own if it is not there."""
    found: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(section, Mapping):
        found = iter(section.items())
    elif isinstance(section, list):
        found = iter(enumerate(section))
    for key, value in found:
        if value == text:
            return (*path, key)
        inner = _key_of(text, value, (*path, key))
        if inner != (*path, key):
            return inner
    return path


def _models(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Pretrained | NamedLanguageModel]]:  # noqa: ANN401
    """Yield every model that a plug-in's settings name, with its path."""
    if isinstance(value, Pretrained | NamedLanguageModel):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _models(getattr(value, name), (*path, name))


def _checks(model: Pretrained | NamedLanguageModel) -> Iterator[tuple[Callable[[], None], str]]:
    """Yield what can be looked at without loading a model, and the key that is at fault if it fails."""
    yield model.check_folder, "model"
    if isinstance(model, Pretrained):
        yield partial(check_layers, model), "num_layers"
        yield partial(check_files, model), "model"
        yield partial(_check_code, model), "trust_remote_code"


def _check_code(model: Pretrained) -> None:
    """Raise UserError if the model's own code is to run, and the user did not allow code."""
    if model.trust_remote_code and not may_run_code():
        raise UserError(
            f"{model.model}: not allowed to run its code; if you trust it, give --allow-code, or list a"
            f" folder in {ALLOWED}"
        )
