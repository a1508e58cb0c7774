"""The keys of an experiment file's short form: those that a long file lacks, or has in another form."""

from typing import Annotated

from pydantic import AfterValidator, Field

from synthbench.base.user_files import GivenName
from synthbench.config.schema import Section, Settings
from synthbench.models.pretrained import Pretrained
from synthbench.models.sizes import Size


class StudyBudget(Section):
    """Limits on an experiment's LLM cost, and the price of computing."""

    usd: float | None = Field(None, ge=0, description="maximum US dollars for the LLM; null: no limit")
    tokens: int | None = Field(
        None, ge=0, description="maximum tokens of the LLM, prompts and answers together; null: no limit"
    )
    machine_hour_usd: float | None = Field(
        None, ge=0, description="US dollars per hour of computing; adds a figure of scores against total cost"
    )


class SizedBase(Pretrained):
    """The base of all rows of a short file."""

    size: Size | None = Field(
        None,
        description="the base's size, which decides the learning rates. Default: as in the model's metadata",
    )


Rows = str | tuple[str, ...] | dict[str, Settings | None]


def _names_rows(variants: Rows) -> Rows:
    """Return `variants`; raises ValueError if it names no rows."""
    if not variants or (isinstance(variants, str) and variants != "all"):
        raise ValueError("must be `all`, a list of recipes, or a mapping of rows to their patches")
    return variants


class ShortSection(Section):
    """The keys that only a short file has, or that have another form in a long file."""

    base: Annotated[GivenName, Field(min_length=1)] | SizedBase = Field(
        description="the base of all rows: a model's name, or the settings of a base"
    )
    budget: StudyBudget = Field(StudyBudget(), description="limits on LLM cost, and the price of computing")
    sources: dict[str, str | Settings] = Field(
        default_factory=dict,
        description="sentences, gold, dev, test or passages -> a file, whose columns and kind are detected,"
        " or a source as in a long file. If dev or test is missing, gold pairs are split into parts that"
        " share no sentence",
    )
    variants: Annotated[Rows, AfterValidator(_names_rows)] = Field(
        description="one of: a list of recipes; a mapping row -> patch, in which `recipe:` names the recipe;"
        " `all` recipes"
    )
