"""Prompts as data: instructions with named slots, exemplars and pools, in a file or an experiment file."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.frozen import added_field
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import STARTS_FROM, RootedName, path_of, read_settings
from synthbench.base.yaml_loading import load_yaml
from synthbench.llm.asking import drawn
from synthbench.plugins.settings_files import parsed_settings

ANSWER = "answer"
EXEMPLARS = "exemplars"
"""The role of a source of exemplars."""
_SLOT = linear_pattern(r"\{\{(?P<literal>\w+)\}\}|\{(?P<slot>\w+)\}")
"""A slot `{name}`; or `{{word}}`, which gives the text `{word}`."""
PromptText = Annotated[str, Field(pattern=r"\S"), AfterValidator(str.strip)]
Message = dict[str, str]
Exemplar = Mapping[str, object]
"""An example in a prompt: slot -> its text, and the `answer`."""


@dataclass(frozen=True, slots=True)
class PromptChat:
    """The messages of one request, with the prompt's name, the text in each slot, and the sample's number."""

    messages: tuple[Message, ...]
    name: str
    values: Mapping[str, str]
    sample: int = 0

    @property
    def text(self) -> str:
        """The messages as one text, for a model without turns."""
        said = [
            f"Output: {each['content']}" if each["role"] == "assistant" else each["content"]
            for each in self.messages
        ]
        return " ".join((*said, "Output:"))


class PromptSection(BaseModel):
    """A section of a file of prompts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)


class Prompt(PromptSection):
    """A prompt of a method. A prompt given as a plain text consists of its instruction.

    With `input`, the instruction is the system message and the input is the user's turn; without `input`, the
    instruction is the user's turn. Subclasses declare the slots that their method fills.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    """Required slots whose texts differ between records: every exemplar has its own texts for them."""
    shared_slots: ClassVar[tuple[str, ...]] = ()
    """Required slots whose texts exemplars share with the record."""
    optional_slots: ClassVar[tuple[str, ...]] = ()
    takes_exemplars: ClassVar[bool] = True

    name: PromptText | None = added_field(None, description="the prompt's name in the records' provenance")
    instruction: PromptText = Field(description="the instruction, with slots such as {sentence}")
    input: PromptText | None = added_field(
        None,
        description="the user's turn, such as `Input: {sentence}`; the instruction is then a system message",
    )
    exemplars: tuple[dict[str, PromptText], ...] = added_field(
        (),
        description="for each exemplar: slot -> text, and the `answer`",
    )
    exemplars_per_request: int | None = added_field(
        None,
        ge=1,
        description="number of exemplars drawn for each request. Default: all, in the file's order",
    )
    pools: dict[str, Annotated[tuple[PromptText, ...], Field(min_length=1)]] = added_field(
        {},
        description="slot -> texts, of which each request draws one",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return {"instruction": given} if isinstance(given, str) else _with_tuples(given)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        filled = (*self.slots, *self.shared_slots, *self.optional_slots)
        named = self.slots_in_text
        missing = [name for name in (*self.slots, *self.shared_slots, *self.pools) if name not in named]
        if missing:
            raise ValueError(f"lacks the slot {{{missing[0]}}}")
        unknown = next((name for name in named if name not in (*filled, *self.pools)), None)
        if unknown is not None:
            raise ValueError(f"unknown slot {{{unknown}}}{did_you_mean(unknown, (*filled, *self.pools))}")
        taken = next((name for name in self.pools if name in filled), None)
        if taken is not None:
            raise ValueError(f"pools: the method fills {{{taken}}}; leave it out")
        if self.exemplars and not self.takes_exemplars:
            raise ValueError("exemplars: this prompt takes none; leave them out")
        expected = {*self.slots, ANSWER}
        for number, exemplar in enumerate(self.exemplars, 1):
            if exemplar.keys() != expected:
                wrong = f"exemplar {number} needs the keys {listed(sorted(expected))}"
                raise ValueError(f"{wrong}, has {listed(sorted(exemplar))}")
        if self.exemplars_per_request is not None and self.exemplars_per_request > len(self.exemplars):
            raise ValueError(
                f"exemplars_per_request: {self.exemplars_per_request} of {len(self.exemplars)} exemplars"
            )
        return self

    @property
    def slots_in_text(self) -> list[str]:
        """The slots in instruction and input."""
        turns = f"{self.instruction} {self.input or ''}"
        return [found["slot"] for found in _SLOT.finditer(turns) if found["slot"]]

    def chat(
        self, values: Mapping[str, object], *of: object, exemplars: Sequence[Exemplar] | None = None
    ) -> PromptChat:
        """Return a request with each slot filled by its text in `values`; line breaks in texts become spaces.

        `of` alone seeds all draws. `exemplars` replace the prompt's own; None keeps these.
        """
        if exemplars is None:
            exemplars = self.exemplars
            if self.exemplars_per_request is not None:
                exemplars = drawn(exemplars, self.exemplars_per_request, *of, EXEMPLARS)
        filled = {name: drawn(pool, 1, *of, name)[0] for name, pool in self.pools.items()}
        filled |= {name: str(value) for name, value in values.items()}
        turn = self.instruction if self.input is None else self.input
        messages = [] if self.input is None else [_message("system", _filled(self.instruction, filled))]
        for exemplar in exemplars:
            messages.append(_message("user", _filled(turn, {**filled, **exemplar})))
            messages.append(_message("assistant", str(exemplar[ANSWER])))
        messages.append(_message("user", _filled(turn, filled)))
        return PromptChat(tuple(messages), self.name or "", filled)


_P = TypeVar("_P", bound=Prompt)


def _with_tuples(given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the data with lists turned into tuples, which strict pydantic requires outside JSON."""
    if isinstance(given, list | tuple):
        return tuple(map(_with_tuples, given))
    if isinstance(given, dict):
        return {key: _with_tuples(value) for key, value in given.items()}
    return given


def _as_tuple(given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    return tuple(given) if isinstance(given, list | tuple) else (given,)


Prompts = Annotated[tuple[_P, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""One prompt, or a list from which each request draws."""


def drawn_chat(
    prompts: Sequence[Prompt],
    values: Mapping[str, object],
    *of: object,
    exemplars: Sequence[Exemplar] | None = None,
) -> PromptChat:
    """Draw one of the prompts and return a request made from it (`Prompt.chat`); `of` seeds all draws."""
    (prompt,) = drawn(prompts, 1, *of, "prompt")
    return prompt.chat(values, *of, exemplars=exemplars)


class PromptFile(PromptSection):
    """A method's named prompts; an experiment file gives the name of a YAML file, or its content."""

    _read_from: Path | None = PrivateAttr(None)

    @model_validator(mode="wrap")
    @classmethod
    def _of_file(
        cls,
        given: Any,  # noqa: ANN401 - whatever the file holds
        of_content: ModelWrapValidatorHandler[Self],
        info: ValidationInfo,
    ) -> Self:
        """Read the prompts from a file's name or content; the file's first fault becomes a ValueError."""
        if not isinstance(given, str):
            return of_content(_with_tuples(given))
        folder = getattr(given, "starts_from", None) or (info.context or {}).get(STARTS_FROM)
        try:
            return cls.of_file(given if folder is None else RootedName(given, folder))
        except UserError as error:
            num_more = len(error.messages) - 1
            more = f" (and {num_more} more)" if num_more else ""
            raise ValueError(f"{error.messages[0]}{more}") from None

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.named:
            raise ValueError(f"has no prompts; known: {', '.join(_keys(type(self)))}")
        return self

    @classmethod
    def of_file(cls, name: str) -> Self:
        """Return the prompts in a user's file; raises UserError with file, line and key of each fault."""
        path = path_of(name)
        text = read_settings(path)
        found = load_yaml(text, str(path))
        if not isinstance(found, dict):
            # Never the content: a wrong path may name any file of the user's.
            what = "empty" if found is None else "a list" if isinstance(found, list) else "a single value"
            raise UserError(f"{path}:1: must be a mapping of names to prompts, is {what}")
        prompts = parsed_settings(text, path, cls)
        prompts._read_from = path
        return prompts

    @property
    def read_from(self) -> Path | None:
        """Path of the file that held the prompts; None if they came from the experiment file."""
        return self._read_from

    @property
    def named(self) -> tuple[str, ...]:
        """The keys of all prompts that are set, as written in a file."""
        return tuple(key for key, field in _keys(type(self)).items() if getattr(self, field) is not None)

    def only(self, names: Collection[str]) -> dict[str, Any] | None:
        """Return the prompts with these names as a dependency's setting `prompts`; None if there are none."""
        content = self.model_dump(mode="json")
        return {name: content[name] for name in self.named if name in names} or None


def replaceable_prompts(description: str, alias: str | None = None) -> Any:  # noqa: ANN401 - of any type
    """Return a field of a PromptFile; if a user leaves it out, the shipped prompt is used."""
    return added_field(None, alias=alias, description=description)


def _keys(schema: type[BaseModel]) -> dict[str, str]:
    """Return key in a file -> field's name."""
    return {field.alias or name: name for name, field in schema.model_fields.items()}


def _filled(text: str, values: Mapping[str, object]) -> str:
    """Return a text with its slots filled; slots inside the filled-in values stay as they are."""

    def put(found: re.Match[str]) -> str:
        return f"{{{found['literal']}}}" if found["literal"] else " ".join(str(values[found["slot"]]).split())

    return _SLOT.sub(put, text)


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def listed(names: Collection[str]) -> str:
    """Return names in backticks, joined by "and", for a message."""
    return " and ".join(f"`{name}`" for name in names)
