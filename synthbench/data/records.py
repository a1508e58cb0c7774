"""The record kinds that methods write and trainers and evaluators read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa


class RecordKind(StrEnum):
    """The kind of a record; all records of a data set have the same kind."""

    SCORED_PAIR = "scored_pair"
    PAIR = "pair"
    TRIPLET = "triplet"
    RANKING = "ranking"
    RETRIEVAL = "retrieval"
    SENTENCE = "sentence"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Fields of all records: a stable id and provenance.

    An empty `id` is replaced by a hash of all other fields on storing. `subset` names a part of a test
    set (STS12's "MSRpar"), `label` a class that is not a score, `source_id` the original record,
    `generator` the model that wrote or labelled the record, `instruction` the prompt or sampler.
    """

    kind: ClassVar[RecordKind]
    text_fields: ClassVar[tuple[str, ...]]
    optional_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that most records of a kind leave empty; an empty one gets no column and does not enter ids."""
    optional_texts: ClassVar[tuple[str, ...]] = ()
    """The optional fields that hold sentences."""

    id: str = ""
    split: str = "train"
    subset: str = ""
    label: str = ""
    source_id: str = ""
    method: str = ""
    generator: str = ""
    instruction: str = ""
    seed: int | None = None

    @classmethod
    def own_fields(cls) -> tuple[str, ...]:
        """Return this kind's required columns, in order, without the columns shared by all kinds."""
        others = {*(field.name for field in fields(Record)), *cls.optional_fields}
        return tuple(field.name for field in fields(cls) if field.name not in others)

    def values(self) -> dict[str, Any]:
        """Return the values by column, without empty optional columns."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value or name not in self.optional_fields}

    def texts(self) -> tuple[str, ...]:
        """Return the sentences of the record, in the order of its columns."""
        return tuple(getattr(self, name) for name in self.text_fields)

    def text_names(self) -> tuple[str, ...]:
        """Return a name for each of `texts`: the column's, numbered if the column holds several texts."""
        return self.text_fields

    def content_id(self) -> str:
        """Return an id derived from all fields but the id."""
        values = [str(value) for name, value in self.values().items() if name != "id"]
        content = "\x1f".join([self.kind, *values])
        return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:20]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPair(Record):
    """Two sentences and their similarity in [0, 1]."""

    kind = RecordKind.SCORED_PAIR
    text_fields = ("sentence1", "sentence2")

    sentence1: str
    sentence2: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Record):
    """An anchor and its positive, such as a paraphrase.

    `likelihood`, in (0, 1], is the geometric mean of the probabilities of the anchor's tokens as an LLM wrote
    them: exp of their mean log-probability; 0: unknown. No trainer reads it.
    """

    kind = RecordKind.PAIR
    text_fields = ("anchor", "positive")
    optional_fields = ("likelihood",)

    anchor: str
    positive: str
    likelihood: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Triplet(Record):
    """An anchor, its positive, and a hard negative; `further_negatives` is optional.

    `scores` are a teacher's, in any range: for the anchor with the positive, the negative, and each further
    negative, in this order. They are empty without a teacher. `former_positive` is the positive before a step
    relabelled the record, perhaps with the same positive; no trainer reads it.
    """

    kind = RecordKind.TRIPLET
    text_fields = ("anchor", "positive", "negative")
    optional_fields = ("further_negatives", "scores", "former_positive")
    optional_texts = ("further_negatives",)

    anchor: str
    positive: str
    negative: str
    further_negatives: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    former_positive: str = ""

    def __post_init__(self) -> None:
        # Stored rows come back with lists and integers: equal records must compare equal.
        object.__setattr__(self, "further_negatives", tuple(self.further_negatives))
        object.__setattr__(self, "scores", tuple(map(float, self.scores)))

    @property
    def negatives(self) -> tuple[str, ...]:
        """The negative and all further negatives."""
        return (self.negative, *self.further_negatives)

    def texts(self) -> tuple[str, ...]:
        """Return the anchor, the positive and all negatives."""
        return (self.anchor, self.positive, *self.negatives)

    def text_names(self) -> tuple[str, ...]:
        """Return anchor, positive, negative, then negative2 and so on for further negatives."""
        further = range(2, len(self.further_negatives) + 2)
        return (*self.text_fields, *(f"negative{number}" for number in further))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Record):
    """A query and its candidates, each with a relevance grade in [0, 1].

    `grades` are in the order of `candidates`; binary relevance is 1 or 0. A record is one query, and so one
    item of a test set. A query may lack a relevant candidate, as in some real sets; the evaluator decides how
    to score it. `further_queries` count as much as the query (for example, all titles that a news reader
    has read): the most similar query decides a candidate's score.
    """

    kind = RecordKind.RANKING
    text_fields = ("query", "candidates")
    optional_fields = ("further_queries",)
    optional_texts = optional_fields

    query: str
    candidates: tuple[str, ...]
    grades: tuple[float, ...]
    further_queries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Stored rows come back with lists and integers: equal records must compare equal.
        object.__setattr__(self, "candidates", tuple(self.candidates))
        object.__setattr__(self, "grades", tuple(map(float, self.grades)))
        object.__setattr__(self, "further_queries", tuple(self.further_queries))

    @property
    def queries(self) -> tuple[str, ...]:
        """The query and all further queries."""
        return (self.query, *self.further_queries)

    def texts(self) -> tuple[str, ...]:
        """Return the query, further queries, and candidates."""
        return (*self.queries, *self.candidates)

    def text_names(self) -> tuple[str, ...]:
        """Return query, further_query1 and so on, candidate1 and so on."""
        further = (f"further_query{number}" for number in range(1, len(self.further_queries) + 1))
        return ("query", *further, *self.candidate_names())

    def candidate_names(self) -> tuple[str, ...]:
        """Return candidate1 and so on."""
        return tuple(f"candidate{number}" for number in range(1, len(self.candidates) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalText(Record):
    """A corpus passage, or a query with the ids of its judged passages (`judged`) and their `grades`.

    The judges' grades are at least 0. A grade above 0 makes a passage relevant; passages that were not
    judged are not relevant. Passages have no judgements. A data set is a whole corpus with its queries; no
    model can find a judged passage that is missing from the corpus.
    """

    kind = RecordKind.RETRIEVAL
    text_fields = ("text",)

    text: str
    judged: tuple[str, ...] = ()
    grades: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        # Stored rows come back with lists and integers: equal records must compare equal.
        object.__setattr__(self, "judged", tuple(self.judged))
        object.__setattr__(self, "grades", tuple(map(float, self.grades)))

    @property
    def is_query(self) -> bool:
        """Whether the text is a query."""
        return bool(self.judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence(Record):
    """One sentence; for classification, `label` is its class."""

    kind = RecordKind.SENTENCE
    text_fields = ("sentence",)

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Record):
    """A failed work item: the reason, the number of attempts, and the unusable output."""

    kind = RecordKind.FAILURE
    text_fields = ()

    reason: str
    attempts: int = 1
    raw_text: str = ""


RECORD_TYPES: dict[RecordKind, type[Record]] = {
    record_type.kind: record_type
    for record_type in (ScoredPair, Pair, Triplet, Ranking, RetrievalText, Sentence, Failure)
}


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can store the text; lone surrogates can't be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_row(kind: RecordKind, row: Mapping[str, Any]) -> Record:
    """Return the record of a row that has this kind's columns."""
    return RECORD_TYPES[kind](**row)


def schema(kind: RecordKind, *, with_optional: bool = False) -> "pa.Schema":
    """Return a record kind's Arrow schema: its own columns, shared columns, then optional ones."""
    import pyarrow as pa

    types = {
        "score": pa.float64(),
        "likelihood": pa.float64(),
        "seed": pa.int64(),
        "attempts": pa.int64(),
        "candidates": pa.list_(pa.string()),
        "grades": pa.list_(pa.float64()),
        "further_queries": pa.list_(pa.string()),
        "judged": pa.list_(pa.string()),
        "further_negatives": pa.list_(pa.string()),
        "scores": pa.list_(pa.float64()),
    }
    names = (*RECORD_TYPES[kind].own_fields(), *(field.name for field in fields(Record)))
    names += RECORD_TYPES[kind].optional_fields if with_optional else ()
    return pa.schema([(name, types.get(name, pa.string())) for name in names])


SHARED_COLUMNS = ("split", "subset", "label", "source_id", "method", "generator", "instruction")
"""Columns that records of every kind have."""
