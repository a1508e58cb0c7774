"""Records of the data that a report shows: the store may be gone when it is written again."""

from pydantic import BaseModel, ConfigDict, Field


class _Excerpt(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordExcerpt(_Excerpt):
    """One record; long texts are cut."""

    texts: tuple[tuple[str, str], ...] = Field(description="(name, text), in the order of the columns")
    score: float | None = None
    origin: tuple[tuple[str, str], ...] = Field(
        (), description="(column, value) that say where it comes from, as far as anything is known"
    )


class DataExcerpt(_Excerpt):
    """One data set, which parts of several rows may have."""

    stage: str
    records: tuple[RecordExcerpt, ...] = ()
    failures: tuple[tuple[str, int], ...] = Field((), description="(reason, number), the most frequent first")
    revisions: tuple[tuple[str, str], ...] = Field((), description="(model or data set, commit or hash)")


class SharedRecords(_Excerpt):
    """What some data sets, which do not differ here, have for one sentence; `num_records` in all."""

    stages: tuple[str, ...]
    records: tuple[RecordExcerpt, ...]
    num_records: int


class SharedSentence(_Excerpt):
    """A sentence that records of several data sets were made of."""

    sentence: str
    found: tuple[SharedRecords, ...]
