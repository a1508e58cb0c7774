"""Keys of pydantic models in plain words."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from synthbench.cli.settings import Setting, settings_of, summary


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    """One thing.

    And more of it.
    """

    name: Literal["one"] = "one"
    size: int = Field(ge=1, le=1000, description="how large")


class Other(BaseModel):
    """Another thing."""

    name: Literal["two"] = "two"
    rate: Annotated[float, Field(gt=0, lt=1)] = 2e-5


def only(annotation: Any, default: Any = ...) -> Setting:
    model: type[BaseModel] = type(
        "Model",
        (BaseModel,),
        {"__annotations__": {"key": annotation}, **({} if default is ... else {"key": default})},
    )
    (setting,) = settings_of(model)
    return setting


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (str, "text"),
        (int, "whole number"),
        (bool, "true or false"),
        (float | None, "number"),
        (int | str, "whole number or text"),
        (Literal["a", "b", "c"], "a, b or c"),
        (Colour, "red or blue"),
        (tuple[float, float], "[number, number]"),
        (list[str], "list of texts"),
        (tuple[Literal["a", "b"], ...], "list of a or b"),
        (tuple[Inner, ...], "list of sections"),
        (dict[str, int], "mapping"),
        (Any, "any value"),
        (Annotated[int, Field(ge=1, le=1000)], "whole number, 1 to 1,000"),
        (Annotated[int, Field(ge=0, lt=10)], "whole number, 0 to 9"),
        (Annotated[float, Field(gt=0, lt=1)], "number, above 0, below 1"),
        (Annotated[float, Field(ge=0, lt=1)] | None, "number, at least 0, below 1"),
        (Annotated[tuple[int, ...], Field(min_length=2)], "list of whole numbers, at least 2 items"),
        (Annotated[str, Field(min_length=1)], "text"),
    ],
)
def test_values_are_described_in_words(annotation: Any, words: str) -> None:
    assert only(annotation).values == words


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (str, ..., "required"),
        (str, "", '""'),
        (str, "auto", "auto"),
        (int | None, None, "null"),
        (bool, True, "true"),
        (float, 2e-5, "2e-5"),
        (Colour, Colour.RED, "red"),
        (tuple[str, ...], (), "[]"),
    ],
)
def test_defaults_are_shown_as_in_yaml(annotation: Any, default: Any, shown: str) -> None:
    assert only(annotation, default).default == shown


def test_the_keys_of_a_section_are_dotted() -> None:
    class Outer(BaseModel):
        inner: Inner | None = Field(None, description="what is inside")

    assert list(settings_of(Outer)) == [
        Setting("inner", "keys below", "null", "what is inside"),
        Setting("inner.name", "one", "one", ""),
        Setting("inner.size", "whole number, 1 to 1,000", "required", "how large"),
    ]


def test_keys_of_alternative_sections_name_their_section() -> None:
    class Outer(BaseModel):
        inner: Inner | Other = Field(discriminator="name")

    assert list(settings_of(Outer)) == [
        Setting("inner", "keys below", "required", ""),
        Setting("inner.name", "one or two", "required", "one: One thing; two: Another thing"),
        Setting("inner.size", "whole number, 1 to 1,000", "required", "one: how large"),
        Setting("inner.rate", "number, above 0, below 1", "2e-5", "two"),
    ]


def test_the_summary_is_the_first_paragraph() -> None:
    assert summary(Inner) == "One thing."
