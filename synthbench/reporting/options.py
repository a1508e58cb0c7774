"""What an experiment file may say about its table."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Names = Annotated[tuple[str, ...], Field(strict=False)]


class TableOptions(BaseModel):
    """The `table` section of an experiment file; every field may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    columns: Names | None = Field(None, min_length=1, description="test sets, in order; null: all of them")
    average: Names | None = Field(
        None, min_length=1, description="test sets of an average column; null: none"
    )
    caption: str = Field("", description="empty: the experiment's description, or its name")
    ceiling: Names = Field((), description="variants set apart below a rule, never compared with the others")
    decimals: int = Field(2, ge=0, le=6, description="digits behind the point; scores are printed × 100")
