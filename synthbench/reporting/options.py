"""What an experiment file may say about its table."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Names = Annotated[tuple[str, ...], Field(strict=False)]
_CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True)


class PublishedOptions(BaseModel):
    """`table.published`: a paper's table whose figures stand beside ours."""

    model_config = _CONFIG

    file: str = Field(min_length=1, description="the published table, a CSV; relative to the experiment file")
    encoder: str | None = Field(
        None, description="only rows with this encoder, where the paper has a row for several; null: any"
    )
    rows: Mapping[str, str] = Field(min_length=1, description="variant -> the published row")
    columns: Mapping[str, str] = Field(
        default_factory=dict,
        description="test set or average -> the published column, if it has another name",
    )


class TableOptions(BaseModel):
    """The `table` section of an experiment file; every field may be left out."""

    model_config = _CONFIG

    columns: Names | None = Field(
        None, min_length=1, description="test sets and averages, in order; null: all test sets"
    )
    averages: Mapping[str, Annotated[Names, Field(min_length=1)]] = Field(
        default_factory=dict,
        description="name -> the test sets that this column averages; those not in `columns` come last",
    )
    published: PublishedOptions | None = Field(
        None, description="a paper's figures, printed beside ours; null: none"
    )
    notes: Names = Field((), description="what else must be known beside the table, a sentence each")
    caption: str = Field("", description="empty: the experiment's description, or its name")
    ceiling: Names = Field((), description="variants set apart below a rule, never compared with the others")
    decimals: int = Field(2, ge=0, le=6, description="digits behind the point; scores are printed × 100")
