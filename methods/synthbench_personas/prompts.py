"""Prompts, personas, types and difficulties of queries: shipped in our own words, or a user's.

The paper prints its prompts without the descriptions of types and difficulties.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from synthbench.api import (
    Prompt,
    PromptChat,
    PromptFile,
    Prompts,
    PromptText,
    ShippedPrompts,
    drawn_chat,
    replaceable_prompts,
)

CONFIGURATION, QUERY = "configuration", "query"
OF_CONFIGURATIONS = (CONFIGURATION, "types", "difficulties", "personas")
"""Keys of the prompt file that step 1 reads; step 2 reads `query`, `types` and `difficulties`."""
OPTION_END = "; "
Options = Annotated[dict[PromptText, PromptText], Field(min_length=1)]


class ConfigurationPrompt(Prompt):
    """Asks who would search for {passage} and how: one each of {personas}, {types} and {difficulties}."""

    slots: ClassVar[tuple[str, ...]] = ("passage", "personas")
    shared_slots: ClassVar[tuple[str, ...]] = ("types", "difficulties")


class PersonaQueryPrompt(Prompt):
    """Asks for a query of {persona} for {passage}, of {type} and {difficulty}; pools fill all other slots."""

    slots: ClassVar[tuple[str, ...]] = ("passage", "persona", "type", "difficulty")


class PersonaPrompts(PromptFile):
    """The prompts of `persona-queries` and `persona-configurations`."""

    configuration: Prompts[ConfigurationPrompt] | None = replaceable_prompts(
        "ask for the persona, type and difficulty of a query for {passage}"
    )
    query: Prompts[PersonaQueryPrompt] | None = replaceable_prompts("ask for the query")
    types: Options | None = replaceable_prompts("type of query -> what {type} is replaced by")
    difficulties: Options | None = replaceable_prompts("difficulty -> what {difficulty} is replaced by")
    personas: Annotated[tuple[PromptText, ...], Field(min_length=1)] | None = replaceable_prompts(
        "personas who search; used if no source of personas is set"
    )

    def configuration_chat(self, passage: str, personas: tuple[str, ...], *of: object) -> PromptChat:
        """Return a request for a configuration; `of`, such as seed and key, determines all draws."""
        assert self.configuration is not None
        values = {
            "passage": passage,
            "personas": OPTION_END.join(f"{number}. {text}" for number, text in enumerate(personas, 1)),
            "types": _listed(self.types),
            "difficulties": _listed(self.difficulties),
        }
        return drawn_chat(self.configuration, values, *of)

    def query_chat(self, passage: str, configuration: Mapping[str, str], *of: object) -> PromptChat:
        """Return a request for a query; `configuration`: persona, and names of type and difficulty."""
        assert self.query is not None and self.types is not None and self.difficulties is not None
        values: dict[str, Any] = {
            "passage": passage,
            "persona": configuration["persona"],
            "type": self.types[configuration["type"]],
            "difficulty": self.difficulties[configuration["difficulty"]],
        }
        return drawn_chat(self.query, values, *of)


def _listed(options: Mapping[str, str] | None) -> str:
    return OPTION_END.join(f"{name} ({meaning})" for name, meaning in (options or {}).items())


SHIPPED = ShippedPrompts(
    "synthbench_personas",
    PersonaPrompts,
    {
        CONFIGURATION: "0fdbfbd90adf0b374417a78554347a5dd03ea5ab04a3fda010d19d4f590849ba",
        QUERY: "0e764cda20cdd41a8fd61ea0d5a8fe566e01789f578a8b0fc4d4834bf342ad4f",
        "types": "6e55ef5385af994760c37dc896458b8a01ff4f6c6d485528dd4af3146492e660",
        "difficulties": "1262bef018faf385d85442a725dc0b8294883adfdb78358b68511ce430c250ad",
        "personas": "3548722fa8f499a77bfb39a990152fe27918331596fa0072f0ef709039eb36d9",
    },
)
