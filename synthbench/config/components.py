"""Plug-ins from an experiment file's sections, with their dependencies and sources."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from synthbench.base.errors import UserError
from synthbench.config.documents import KeyPath, texts_in
from synthbench.config.llm import NamedLLM
from synthbench.config.problems import Cursor, readable
from synthbench.config.schema import Section, SeedOptimizationSection
from synthbench.data.records import RecordKind
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.models.checks import check_dense, check_encoder, check_files, check_layers, check_pair_reader
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.contracts import GeneratedData, Method, Need, Step, TrainedModel
from synthbench.plugins.files import ALLOWED, may_run_code
from synthbench.plugins.loading import component
from synthbench.plugins.model_contracts import Trainer
from synthbench.sources.models import Source
from synthbench.worlds import NAME

S = TypeVar("S", bound=Section)


class Components:
    """Finds and configures plug-ins; notes every fault at its key, and which sources and LLMs are used.

    In `sources` and `llms`, None stands for an invalid section: only the name is known.
    """

    def __init__(
        self, sources: Mapping[str, Source | None], llms: Mapping[str, NamedLLM | None], folder: Path
    ) -> None:
        self.sources = sources
        self.llms = llms
        self.folder = folder
        self.used_sources: set[str] = set()
        self.used_llms: set[str] = set()
        self._section_keys: dict[KeyPath, Collection[str]] = {}
        """Section's path -> its keys that are not the plug-in's settings, for suggestions."""

    def split(self, schema: type[S], at: Cursor) -> tuple[S, dict[str, Any]]:
        """Return the section's own keys, as a `schema`, and its plug-in's settings.

        An unreadable key of the section gets its default.
        """
        own = {key: value for key, value in at.mapping.items() if key in schema.model_fields}
        self._section_keys[at.path] = schema.model_fields
        rest = {key: value for key, value in at.mapping.items() if key not in own}
        return at.readable(schema, own), rest

    def plugin(self, group: str, name: str | None, at: Cursor) -> Any:  # noqa: ANN401 - a plug-in's class
        """Return the plug-in's class; None if `name` is None, or after noting that it is unknown."""
        with at[group[:-1]].noting():
            return None if name is None else component(group, name, self.folder)
        return None

    def known(self, group: str, name: object) -> Any:  # noqa: ANN401 - a plug-in's class, or None
        """Return the plug-in's class, None for an unknown name; notes no fault."""
        try:
            return component(group, name, self.folder) if isinstance(name, str) else None
        except UserError:
            return None

    def configured(
        self,
        plugin: Any,  # noqa: ANN401 - a plug-in's class, or None
        settings: Mapping[str, Any],
        at: Cursor,
    ) -> tuple[Any, Any]:
        """Return the plug-in, None if a setting is invalid, and the plug-in with only its readable settings.

        Also checks the models that the settings name, as far as possible offline.
        """
        if plugin is None:
            return None, None
        parsed = at.parse(plugin, settings, self._section_keys.get(at.path, ()))
        known = readable(plugin, settings, self.folder) if parsed is None else parsed
        for inner, model in _models(known, at):
            for check, key in _checks(model, known, inner.path[-1]):
                if not inner[key].passes(check):
                    break
        return parsed, known

    def method(
        self,
        plugin: Any,  # noqa: ANN401 - a Method's class, or None
        settings: Mapping[str, Any],
        given: Collection[str],
        at: Cursor,
    ) -> Method | None:
        """Return the configured method, None if a setting is invalid; note faults, also of dependencies.

        `given` are the roles that have a source.
        """
        parsed, known = self.configured(plugin, settings, at)
        if isinstance(parsed, Method):
            at["sources"].passes(partial(parsed.check_sources, given))
        for name, need in _needs(known, is_valid=parsed is not None).items():
            for role in _roles(need) if parsed is not None else ():
                if role not in given and role not in plugin.source_roles:
                    message = (
                        f"missing role '{role}': with these settings the method's {name} is made from it"
                    )
                    at["sources"].add(message)
            if isinstance(need, TrainedModel):
                self._check_training(need, given, _of_need(name, at))
            else:
                inner = _of_need(name, at)
                roles = [role for role, ours in need.sources.items() if ours in given]
                self.method(self.plugin("methods", need.method, inner), dict(need.config), roles, inner)
        return parsed if isinstance(parsed, Method) else None

    def step(self, plugin: Any, settings: Mapping[str, Any], at: Cursor) -> Step | None:  # noqa: ANN401
        """Return the configured step, None if a setting is invalid or `plugin` is None; note faults."""
        parsed, _ = self.configured(plugin, settings, at)
        if not isinstance(parsed, Step):
            return None
        learnt = {source for need in parsed.needs().values() for source in need.data}
        for source in parsed.others():
            named = (path for path, text in texts_in(dict(settings), at.path) if text == source)
            key = replace(at, path=next(named, at.path))
            self.use(key, source, learns=source in learnt)
        for name, need in parsed.needs().items():
            self._check_training(need, parsed.others(), _of_need(name, at))
        return parsed

    def _check_training(self, need: TrainedModel, given: Collection[str], at: Cursor) -> None:
        """Note faults in the settings of a model that is trained for a method or step.

        `given`: the available roles or sources.
        """
        trainer = self.plugin("trainers", need.trainer, at)
        made, _ = self.configured(trainer, dict(need.config), at)
        if isinstance(base := getattr(made, "base", None), Pretrained):
            at["base"]["encoder"].passes(partial(check_dense, base))
        if need.seed_optimization is None:
            return
        inner = at["seed_optimization"]
        inner.parse(SeedOptimizationSection, need.seed_optimization)
        if need.selection not in given:
            inner.add(f"needs a source for the role '{need.selection}': it decides which training goes on")
        elif trainer is not None and not (trainer.is_seeded and trainer.can_pause):
            inner.add(f"trainer '{need.trainer}' can't begin with several seeds and go on with one")

    def llm(
        self, plugin: type[Method | Step], made: Method | Step | None, given: str | None, at: Cursor
    ) -> NamedLLM | None:
        """Return the LLM that a method or step uses; None if it uses none, or after noting a fault.

        `made` is the configured plug-in, None if its settings are invalid; `given` is the section's key
        `llm`.
        """
        word = "method" if issubclass(plugin, Method) else "step"
        if not (plugin.uses_llm if made is None else _asks(made)):
            if given is not None and made is not None:
                at["llm"].add(f"the {word} asks no LLM with these settings; leave it out")
            return None
        if not self.llms:
            at[word].add(f"the {word} uses an LLM; name one at the file's top level, such as `llm: {NAME}`")
            return None
        if given is None and len(self.llms) > 1:
            names = ", ".join(self.llms)
            at[word].add(f"the {word} uses an LLM; say which with `llm: NAME`, one of {names}")
            return None
        name = next(iter(self.llms)) if given is None else given
        if not at["llm"].is_known("LLM", name, self.llms):
            return None
        self.used_llms.add(name)
        return self.llms[name]

    def use(self, at: Cursor, name: str, kind: RecordKind | None = None, *, learns: bool = False) -> None:
        """Mark a source as used; note a fault if it is unknown or its records are not of `kind` (None: any).

        `learns`: a model is trained on the source, so a test set is a fault.
        """
        source = self.sources.get(name)
        if at.is_known("source", name, self.sources):
            self.used_sources.add(name)
        if kind is not None and source is not None and source.record_kind != kind:
            at.add(f"'{name}' holds records of kind {source.record_kind}, here {kind} is needed")
        if learns and getattr(source, "final_split", None) == "test":
            at.add(f"'{name}' is a test set; test sets are never trained on")


def _needs(method: Any, *, is_valid: bool) -> Mapping[str, Need]:  # noqa: ANN401
    """Return a method's dependencies, by name; {} if `needs` fails on invalid settings."""
    if not isinstance(method, Method):
        return {}
    try:
        return method.needs()
    except Exception:
        if is_valid:
            raise
        return {}


def _asks(plugin: Method | Step) -> bool:
    """Return whether a method or step uses an LLM, directly or through a generated dependency."""
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
    """Return the roles that must have a source for this dependency."""
    if isinstance(need, TrainedModel):
        return need.data
    try:
        optional = component("methods", need.method).optional_source_roles
    except UserError:
        optional = {}
    return tuple(ours for role, ours in need.sources.items() if role not in optional)


def _of_need(name: str, at: Cursor) -> Cursor:
    """Return a cursor at a dependency's settings, the dotted key `name`; if it is absent, return `at`."""
    inner = at
    for key in name.split("."):
        if key not in inner.mapping:
            return at
        inner = inner[key]
    return inner


def _models(value: Any, at: Cursor) -> Iterator[tuple[Cursor, Pretrained | NamedLanguageModel]]:  # noqa: ANN401
    """Yield every model in a plug-in's settings, with its key."""
    if isinstance(value, Pretrained | NamedLanguageModel):
        yield at, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _models(getattr(value, name), at[name])


def _checks(
    model: Pretrained | NamedLanguageModel, plugin: object, role: str | int
) -> Iterator[tuple[Callable[[], None], str]]:
    """Yield cheap checks of a plug-in's model, each with the key to blame; no check loads the model."""
    yield model.check_folder, "model"
    if isinstance(model, Pretrained):
        needs_head = plugin.pair_readers().get(str(role)) if isinstance(plugin, Trainer) else None
        if not (isinstance(plugin, Trainer) and role == "base"):
            yield partial(check_dense, model), "encoder"
        elif needs_head is None:
            yield partial(check_encoder, model), "model"
        yield partial(check_layers, model), "num_layers"
        yield partial(check_files, model), "model"
        yield partial(_check_code, model), "trust_remote_code"
        if needs_head is not None:
            yield partial(check_pair_reader, model, needs_head=needs_head), "model"


def _check_code(model: Pretrained) -> None:
    """Raise UserError if the model needs its own code and the user did not allow code."""
    if model.trust_remote_code and not may_run_code():
        raise UserError(
            f"{model.model}: not allowed to run its code; if you trust it, give --allow-code, or list a"
            f" folder in {ALLOWED}"
        )
