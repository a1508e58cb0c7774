"""Prompts as data: instructions with named slots, exemplars and pools, shipped or a user's.

Methods that ask an LLM declare a `PromptFile`, ship its content as `prompts.yaml`, and have a setting
`prompts`: a file beside the experiment, or its content written there. What it names replaces the shipped
prompt; the rest stays. Identities hold the content, never the file's path.
"""

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.frozen import Constant, WithConstants
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import STARTS_FROM, RootedName, path_of, read_settings
from synthbench.base.yaml_loading import load_yaml
from synthbench.data.dataset import SyntheticDataset
from synthbench.llm.asking import drawn
from synthbench.plugins.contracts import Component, Method
from synthbench.plugins.settings_files import parsed_settings

ANSWER = "answer"
EXEMPLARS = "exemplars"
"""The role of a source of exemplars."""
_SLOT = linear_pattern(r"\{\{(?P<literal>\w+)\}\}|\{(?P<slot>\w+)\}")
"""A slot, or the word in doubled braces, which stands for itself in single ones."""
_ENGLISH = "en"
_LANGUAGE = linear_pattern(r"^[a-z]{2}\Z")
_IN_LANGUAGE = linear_pattern(r"^prompts\.(?P<language>[a-z]{2})\.yaml\Z")
PromptText = Annotated[str, Field(pattern=r"\S"), AfterValidator(str.strip)]
Message = dict[str, str]
Exemplar = Mapping[str, object]
"""What an exemplar puts into slots, and its `answer`."""


@dataclass(frozen=True, slots=True)
class PromptChat:
    """The messages of one request, and what was drawn for it: the prompt's name, and texts by slot."""

    messages: tuple[Message, ...]
    name: str
    values: Mapping[str, str]

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
    """A prompt; a text alone is its instruction. Subclasses declare the slots that their method fills.

    With an `input`, the instruction is the system message and the input the user's turn; without one, the
    instruction is the user's turn.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    """Slots that must occur, which differ between records: every exemplar fills them, too."""
    shared_slots: ClassVar[tuple[str, ...]] = ()
    """Slots that must occur, which exemplars do not fill."""
    optional_slots: ClassVar[tuple[str, ...]] = ()
    takes_exemplars: ClassVar[bool] = True

    name: PromptText | None = Field(
        None, exclude_if=lambda name: name is None, description="name in the records' provenance"
    )
    instruction: PromptText = Field(description="the instruction, with slots such as {sentence}")
    input: PromptText | None = Field(
        None,
        exclude_if=lambda turn: turn is None,
        description="the user's turn, such as `Input: {sentence}`; the instruction is then a system message",
    )
    exemplars: tuple[dict[str, PromptText], ...] = Field(
        (),
        exclude_if=lambda exemplars: exemplars == (),
        description="what each exemplar puts into the slots, and its `answer`",
    )
    exemplars_per_request: int | None = Field(
        None,
        ge=1,
        exclude_if=lambda number: number is None,
        description="exemplars drawn for each request. Default: all, in the file's order",
    )
    pools: dict[str, Annotated[tuple[PromptText, ...], Field(min_length=1)]] = Field(
        {},
        exclude_if=lambda pools: pools == {},
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
                wrong = f"exemplar {number} needs the keys {_listed(sorted(expected))}"
                raise ValueError(f"{wrong}, has {_listed(sorted(exemplar))}")
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
        """Return a request with its slots filled, on one line each; all draws depend only on `of`.

        `exemplars` are shown in place of the prompt's own.
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
    """Return the data with tuples in place of lists, as strict pydantic requires outside JSON."""
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
    """Return a request by one of the prompts; all draws depend only on `of`."""
    (prompt,) = drawn(prompts, 1, *of, "prompt")
    return prompt.chat(values, *of, exemplars=exemplars)


class PromptFile(PromptSection):
    """The prompts of a method by name; in an experiment file the name of a YAML file, or its content."""

    _read_from: Path | None = PrivateAttr(None)

    @model_validator(mode="wrap")
    @classmethod
    def _of_file(
        cls,
        given: Any,  # noqa: ANN401 - whatever the file holds
        of_content: ModelWrapValidatorHandler[Self],
        info: ValidationInfo,
    ) -> Self:
        """Read the file; its first fault becomes the setting's."""
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
        """The user's file; None for prompts in the experiment file."""
        return self._read_from

    @property
    def named(self) -> tuple[str, ...]:
        """The names that have prompts, as in files."""
        return tuple(key for key, field in _keys(type(self)).items() if getattr(self, field) is not None)

    def only(self, names: Collection[str]) -> dict[str, Any] | None:
        """Return the content under some names, None if it has none of them: a dependency's setting."""
        content = self.model_dump(mode="json")
        return {name: content[name] for name in self.named if name in names} or None


def replaceable_prompts(description: str, alias: str | None = None) -> Any:  # noqa: ANN401 - of any type
    """Return a field of a PromptFile that a user's file may leave out: then the shipped prompts serve."""
    return Field(None, alias=alias, exclude_if=lambda prompts: prompts is None, description=description)


_F = TypeVar("_F", bound=PromptFile)


@dataclass(frozen=True)
class ShippedPrompts(Generic[_F]):
    """The prompts in a package's `prompts.yaml`, which a user's replace name by name.

    Identities leave out shipped prompts while their content has its first hash, in `frozen` by name.
    """

    package: str
    schema: type[_F]
    frozen: Mapping[str, str]

    def read(self) -> _F:
        """Return the shipped prompts."""
        return cast("_F", _shipped(self.package, self.schema))

    def read_in(self, language: str) -> _F:
        """Return the shipped prompts in another of `languages`."""
        return cast("_F", _shipped(self.package, self.schema, f"prompts.{language}.yaml"))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The other languages with shipped prompts: the files `prompts.LANGUAGE.yaml`."""
        found = (_IN_LANGUAGE.match(each.name) for each in resources.files(self.package).iterdir())
        return tuple(sorted(each["language"] for each in found if each))

    def under(self, own: _F | None) -> _F:
        """Return all prompts: the user's, and the shipped ones under other names."""
        if own is None:
            return self.read()
        return self.read().model_copy(update={field: value for field, value in own if value is not None})

    def constants(self, own: _F | None, names: Collection[str]) -> Mapping[str, Constant]:
        """Return the hashes of the shipped prompts that are used under these names."""
        shipped = self.shipped_among(own, names)
        content = self.read().model_dump(mode="json")
        return {f"prompts: {name}": Constant(_digest(content[name]), self.frozen[name]) for name in shipped}

    def origin(self, own: _F | None, names: Collection[str]) -> str:
        """Return where the prompts under these names come from, for notes."""
        shipped = self.shipped_among(own, names)
        if own is not None and not shipped:
            same = (each for each in self.languages if own.only(names) == self.read_in(each).only(names))
            language = next(same, None)
            return "the experiment's own" if language is None else f"in our own words, language {language}"
        others = [name for name in names if name not in shipped]
        but = f"; but the experiment's own for {_listed(others)}" if others else ""
        return f"reconstructed prompts, in our own words{but}"

    def shipped_among(self, own: _F | None, names: Collection[str]) -> list[str]:
        """Return the names whose prompts are the shipped ones."""
        return [name for name in names if own is None or name not in own.named]


class WithPrompts(Component, WithConstants, Generic[_F]):
    """Settings of a method that asks by prompts."""

    shipped: ClassVar[ShippedPrompts[Any]]
    asks_for: ClassVar[str]
    """What the prompts are for, as table notes say it."""

    prompts: _F | None = Field(
        None,
        exclude_if=lambda prompts: prompts is None,
        description="YAML file of prompts, its content, or a language with shipped prompts, such as de."
        " Default: the reconstructed prompts",
    )

    @field_validator("prompts", mode="before")
    @classmethod
    def _in_language(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the shipped prompts in place of their language's name; for English the default, None."""
        if not isinstance(given, str) or not _LANGUAGE.match(given):
            return given
        if given == _ENGLISH:
            return None
        if given not in cls.shipped.languages:
            known = _listed((_ENGLISH, *cls.shipped.languages))
            raise ValueError(
                f"no prompts in the language '{given}' are shipped, only in {known}; a file of this name is"
                f" ./{given}"
            )
        return cls.shipped.read_in(given).model_dump(mode="json", exclude_none=True)

    @abstractmethod
    def prompt_names(self) -> Sequence[str]:
        """Return the names of the prompts that are used."""

    @property
    def all_prompts(self) -> _F:
        """The user's prompts, and the shipped ones under other names."""
        return cast("_F", self.shipped.under(self.prompts))

    def table_notes(self) -> tuple[str, ...]:
        """Return a note on the origin of the prompts."""
        return (f"Prompts for {self.asks_for}: {self.shipped.origin(self.prompts, self.prompt_names())}.",)

    def constants(self) -> Mapping[str, Constant]:
        """Return the shipped prompts that are used."""
        return self.shipped.constants(self.prompts, self.prompt_names())


class WithExemplars(Method):
    """A method whose prompts can show exemplars that are drawn from a source, its role `exemplars`."""

    num_exemplars: int | None = Field(
        None,
        ge=1,
        exclude_if=lambda number: number is None,
        description="exemplars in every request, drawn once from the source `exemplars`, in place of the "
        "prompts' own",
    )

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if only one of `num_exemplars` and the source is given."""
        if EXEMPLARS in given and self.num_exemplars is None:
            raise UserError(f"{EXEMPLARS}: `num_exemplars` must say how many each request shows, such as 4")
        if EXEMPLARS not in given and self.num_exemplars is not None:
            raise UserError(f"`num_exemplars` needs a source for the role '{EXEMPLARS}'")

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if the source has fewer exemplars."""
        found = sources.get(EXEMPLARS)
        if found is not None and len(found) < (self.num_exemplars or 0):
            raise UserError(
                f"num_exemplars: {self.num_exemplars} of a source '{EXEMPLARS}' with {len(found)} records"
            )

    def source_exemplars(
        self, sources: Mapping[str, SyntheticDataset], seed: int, columns: Mapping[str, str]
    ) -> list[Exemplar] | None:
        """Return the drawn exemplars, None without the source; `columns` maps slots and `answer` to columns.

        The draw does not depend on the records' order.
        """
        if EXEMPLARS not in sources:
            return None
        order = sorted(sources[EXEMPLARS], key=lambda record: _digest([seed, EXEMPLARS, record.id]))
        return [
            {slot: getattr(record, column) for slot, column in columns.items()}
            for record in order[: self.num_exemplars]
        ]


@cache
def _shipped(package: str, schema: type[PromptFile], file: str = "prompts.yaml") -> PromptFile:
    text = (resources.files(package) / file).read_text(encoding="utf-8")
    return parsed_settings(text, f"{package}/{file}", schema)


def _keys(schema: type[BaseModel]) -> dict[str, str]:
    """Return the fields by their names in files."""
    return {field.alias or name: name for name, field in schema.model_fields.items()}


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _filled(text: str, values: Mapping[str, object]) -> str:
    """Return a text with its slots filled; what is filled in is not searched for slots."""

    def put(found: re.Match[str]) -> str:
        return f"{{{found['literal']}}}" if found["literal"] else " ".join(str(values[found["slot"]]).split())

    return _SLOT.sub(put, text)


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _listed(names: Collection[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
