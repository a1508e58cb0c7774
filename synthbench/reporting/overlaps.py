"""What of the test sets stands in the data that a row was trained on."""

from pydantic import BaseModel, ConfigDict, Field

NORMALISED = "normalised"


class Overlap(BaseModel):
    """One test set, as it was scored, and the training data of one run.

    The checks are those of `synthbench.data.contamination`: exact, normalised, 13-gram, near-duplicate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    items: str = Field(description="what is counted: pairs, queries or sentences")
    num_items: int
    sharing: dict[str, int] = Field(description="check -> items of which a sentence was found")
    whole: dict[str, int] = Field(description="check -> items of which every sentence was found")
    as_pairs: int = Field(description="items with a pair that is a pair of the training data, normalised")
    by_part: dict[str, int] = Field(description="part of the data -> items of which a sentence, normalised")
