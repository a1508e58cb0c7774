"""The setting `prompts` of methods that send prompts, and exemplars drawn from a source.

A method declares a `PromptFile` and ships its prompts in `prompts.yaml`. A user sets `prompts` to a file, to
a file's content, or to a language. The user's prompts replace shipped prompts of the same name; all other
shipped prompts stay. Identities hold the prompts, never the file's path.
"""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import field_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.base.patterns import linear_pattern
from synthbench.data.dataset import SyntheticDataset
from synthbench.plugins.contracts import Component, Method
from synthbench.plugins.prompts import EXEMPLARS, Exemplar, PromptFile, listed
from synthbench.plugins.settings_files import parsed_settings

_ENGLISH = "en"
_LANGUAGE = linear_pattern(r"^[a-z]{2}\Z")
_IN_LANGUAGE = linear_pattern(r"^prompts\.(?P<language>[a-z]{2})\.yaml\Z")
_F = TypeVar("_F", bound=PromptFile)


@dataclass(frozen=True)
class ShippedPrompts(Generic[_F]):
    """The prompts in a package's `prompts.yaml`.

    `frozen`: prompt's name -> hash of the prompt's first version. Identities leave out a shipped prompt that
    still has this hash.
    """

    package: str
    schema: type[_F]
    frozen: Mapping[str, str]

    def read(self) -> _F:
        """Return the shipped prompts."""
        return cast("_F", _shipped(self.package, self.schema))

    def read_in(self, language: str) -> _F:
        """Return the shipped prompts in `language`, one of `languages`."""
        return cast("_F", _shipped(self.package, self.schema, f"prompts.{language}.yaml"))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages besides English with shipped prompts: files `prompts.LANGUAGE.yaml`."""
        found = (_IN_LANGUAGE.match(each.name) for each in resources.files(self.package).iterdir())
        return tuple(sorted(each["language"] for each in found if each))

    def under(self, own: _F | None) -> _F:
        """Return the user's prompts (`own`), with the shipped prompt for each name missing in `own`."""
        if own is None:
            return self.read()
        return self.read().model_copy(update={field: value for field, value in own if value is not None})

    def constants(self, own: _F | None, names: Collection[str]) -> Mapping[str, Constant]:
        """Return, for identities, the current and the first hash of each shipped prompt among `names`.

        Prompts that the user gives in `own` are left out.
        """
        shipped = self.shipped_among(own, names)
        content = self.read().model_dump(mode="json")
        return {f"prompts: {name}": Constant(_digest(content[name]), self.frozen[name]) for name in shipped}

    def origin(self, own: _F | None, names: Collection[str]) -> str:
        """Return a phrase for notes on where the prompts with these names come from."""
        shipped = self.shipped_among(own, names)
        if own is not None and not shipped:
            same = (each for each in self.languages if own.only(names) == self.read_in(each).only(names))
            language = next(same, None)
            return "the experiment's own" if language is None else f"in our own words, language {language}"
        others = [name for name in names if name not in shipped]
        but = f"; but the experiment's own for {listed(others)}" if others else ""
        return f"reconstructed prompts, in our own words{but}"

    def shipped_among(self, own: _F | None, names: Collection[str]) -> list[str]:
        """Return the `names` for which the user gives no prompt."""
        return [name for name in names if own is None or name not in own.named]


class WithPrompts(Component, WithConstants, Generic[_F]):
    """A plug-in that sends prompts to an LLM; adds the setting `prompts`."""

    shipped: ClassVar[ShippedPrompts[Any]]
    uses_llm: ClassVar[bool] = True
    asks_for: ClassVar[str]
    """The prompts' purpose in a table note: "Prompts for PURPOSE: ..."."""

    prompts: _F | None = added_field(
        None,
        description="YAML file of prompts, its content, or a language with shipped prompts, such as de."
        " Default: the reconstructed prompts",
    )

    @field_validator("prompts", mode="before")
    @classmethod
    def _in_language(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the shipped prompts for a language's code, None for "en"; return other values unchanged."""
        if not isinstance(given, str) or not _LANGUAGE.match(given):
            return given
        if given == _ENGLISH:
            return None
        if given not in cls.shipped.languages:
            known = listed((_ENGLISH, *cls.shipped.languages))
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
        """The user's prompts, and the shipped prompt for each name that the user left out."""
        return cast("_F", self.shipped.under(self.prompts))

    def own_prompts(self, names: Collection[str]) -> dict[str, Any]:
        """Return {"prompts": the user's prompts with these names}, for a dependency; {} if there are none."""
        own = self.prompts and self.prompts.only(names)
        return {"prompts": own} if own else {}

    def table_notes(self) -> tuple[str, ...]:
        """Return a note on the origin of the prompts."""
        return (f"Prompts for {self.asks_for}: {self.shipped.origin(self.prompts, self.prompt_names())}.",)

    def constants(self) -> Mapping[str, Constant]:
        """Return, for identities, the current and the first hash of each shipped prompt in use."""
        return self.shipped.constants(self.prompts, self.prompt_names())


class WithExemplars(Method):
    """A method whose prompts can show exemplars drawn from the source with the role `exemplars`."""

    num_exemplars: int | None = added_field(
        None,
        ge=1,
        description="number of exemplars in every request, drawn once from the source `exemplars`; they "
        "replace the prompts' own exemplars",
    )

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if only one of `num_exemplars` and the source `exemplars` is given."""
        if EXEMPLARS in given and self.num_exemplars is None:
            raise UserError(f"{EXEMPLARS}: `num_exemplars` must say how many each request shows, such as 4")
        if EXEMPLARS not in given and self.num_exemplars is not None:
            raise UserError(f"`num_exemplars` needs a source for the role '{EXEMPLARS}'")

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if the source `exemplars` has fewer than `num_exemplars` records."""
        found = sources.get(EXEMPLARS)
        if found is not None and len(found) < (self.num_exemplars or 0):
            raise UserError(
                f"num_exemplars: {self.num_exemplars} of a source '{EXEMPLARS}' with {len(found)} records"
            )

    def source_exemplars(
        self, sources: Mapping[str, SyntheticDataset], seed: int, columns: Mapping[str, str]
    ) -> list[Exemplar] | None:
        """Return exemplars drawn from the source `exemplars`; None without this source.

        `columns`: slot or `answer` -> the record's column with the text. The draw does not depend on the
        records' order.
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


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
