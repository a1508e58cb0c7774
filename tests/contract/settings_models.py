"""All sections of settings that identities hold: of components, sources and LLMs, and those in them."""

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from synthbench.config.llm import EndpointLLM, ServedLLM, WorldLLM
from synthbench.models.pretrained import Prompts
from synthbench.plugins.loading import GROUPS, component, installed
from synthbench.sources.models import SOURCE_TYPES

LLMS: tuple[type[BaseModel], ...] = (WorldLLM, EndpointLLM, ServedLLM)
VALUES: tuple[Any, ...] = (
    None, False, True, 0, 1, 2, 3, 16, 64, 0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 2.5, "", "a", "high", "test",
    (), ("a",), ("captions",), ("temperature",), (1, 2), {}, {"a": 1}, {"a": 0.5}, {"a": "b"},
    {"model": "sandbox/encoder"},
    "0" * 40, {"query": "q", "passage": "p"}, {"rank": 3}, {"name": "cosent"}, {"name": "lambda"},
    {"encoder": {"base": {"model": "m"}}}, {"prompt": "{sentence}"}, {"gold": "a"},
    {"teacher": {"model": "m"}, "above": 0.5}, "a/b", {"take": "train"}, "serve {model} --port {port}",
    "{sentence}", "{sentence} {mask}", "{passage}", {"queries": "{passage}"}, {"positive": "{sentence}"},
    "{query}", {"negative": "{query}"}, "{query} {passage}", {"relevance": "{query} {passage}"},
    {"fill": "{sentence} {mask}"}, ({"a": "b"},), {"a": ("b",)},
    {"task": "t", "records": "r", "keys": {"anchor": "a", "positive": "b", "negative": "c"}},
    {"sts": {"task": "t", "records": "r", "keys": {"anchor": "a", "positive": "b", "negative": "c"}}},
    "{passage} {second}",
    "{passage} {personas} {types} {difficulties}", "{passage} {persona} {type} {difficulty}",
    {"queries": 1.0, "passages": 1.0},
    {"types": {"a": "b"}}, "{levels} {query}", ("a", "b"), {"levels": ("a", "b")},
    {"prompts": "{number} {genre} {topics}", "topics": ("a",) * 6,
     "genres": {"g": {"description": "d", "examples": ("a",) * 10}}},
)  # fmt: skip
"""Values to try on a field, which accepts those of its type."""


@cache
def settings_models() -> tuple[type[BaseModel], ...]:
    """Return the models, each once: components that ship, sources and LLMs first."""
    ours = [
        component(group, name)
        for group in GROUPS
        for name, point in installed(group).items()
        if point.dist is None or point.dist.name == "synthbench"
    ]
    found: dict[type[BaseModel], None] = {}
    for model in (*ours, *SOURCE_TYPES.values(), *LLMS, Prompts):
        found |= dict.fromkeys(_reached(model))
    return tuple(found)


def _reached(kind: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from _reached(field.annotation)
    else:
        for inner in get_args(kind):
            yield from _reached(inner)


def title(model: type[BaseModel], name: str) -> str:
    """Return a field's name with that of the class that gives it."""
    owner = next(each for each in reversed(model.__mro__) if name in getattr(each, "model_fields", {}))
    return f"{owner.__name__}.{name}"


def _arguments(annotation: object) -> list[Any]:
    """Return the arguments of an annotation, and theirs: the names of a literal among them."""
    return [one for each in get_args(annotation) for one in (each, *_arguments(each))]


def other_values(field: FieldInfo) -> list[Any]:
    """Return values that the field takes, None among them if it does."""
    kind = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    taken: list[Any] = []
    for value in (*VALUES, *_arguments(field.annotation)):
        try:
            valid = adapter.validate_python(value)
        except (ValidationError, TypeError):
            continue
        if not any(valid == each and type(valid) is type(each) for each in taken):
            taken.append(valid)
    return taken
