"""Settings of the sandbox's data sets, and the records that they give."""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from synthbench.base.errors import did_you_mean
from synthbench.base.frozen import Constant, added_field
from synthbench.data.records import Record, RecordKind
from synthbench.worlds.contract import WorldSet
from synthbench.worlds.sandbox.premises import DEFAULT, Premises

if TYPE_CHECKING:
    from synthbench.worlds.sandbox.sampling import Scope

RegisterName = Literal["captions", "headlines"]
KINDS: Mapping[str, RecordKind] = {
    "pairs": RecordKind.SCORED_PAIR,
    "sentences": RecordKind.SENTENCE,
    "triplets": RecordKind.TRIPLET,
    "rankings": RecordKind.RANKING,
    "duplicates": RecordKind.SCORED_PAIR,
    "two-classes": RecordKind.SENTENCE,
    "six-classes": RecordKind.SENTENCE,
    "passages": RecordKind.SENTENCE,
    "retrieval": RecordKind.RETRIEVAL,
    "answers": RecordKind.SCORED_PAIR,
    "questions": RecordKind.SENTENCE,
}
if TYPE_CHECKING:
    SetName = str
else:
    SetName = Literal[tuple(KINDS)]
NUM_CANDIDATES = 20
# No labelled text of the held-out domain is trained on: its test sets show how an encoder does beyond its
# training data. (The shipped checkpoints have read unlabelled text of all domains.) For the domain known by
# name, methods generate data from its name alone; its own text is for tests only.
HELD_OUT, KNOWN_BY_NAME = "medicine", "science"


class SetOptions(WorldSet):
    """Text of a small world, generated on the fly; no sentence is in two splits.

    The first n records of a set are the same for every size. All sentences of a record have one register,
    which `subset` names (in duplicates, `subset` is the topic). But questions are always worded as captions.

    pairs: Of ten, two are paraphrases, three hard negatives (one or two decisive slots changed, or a
    negation), three related (same domain) and two unrelated (other domain; related if there is only one
    domain); `label` is the relation.
    sentences: `label` is the domain.
    triplets: A sentence, a paraphrase and a hard negative.
    rankings: Of ten candidates, one is a paraphrase (grade 1), three are hard negatives, three related and
    three unrelated (grades below 0.9). Grades are exact similarities.
    duplicates: Half are paraphrases (score 1, label "duplicate"), a quarter hard negatives and a quarter
    related (score 0, label "different"). Both sentences have the same topic, which is the `subset`.
    two-classes: `label` is "good news" or "bad news", which depends on the action and its negation.
    six-classes: `label` is one of six domains; no object is in two splits.
    passages: One or two sentences; `label` is the domain. They are training text, whatever the split, and
    the same as the passages of a retrieval set with the same options.
    retrieval: `size` such passages and, for every eight, a question for who, what, where or when. Grade 2:
    the passage answers the question. Grade 1: it tells of the same action in other circumstances.
    answers: A question and a passage. One in eight answers it (score 1), some others in part (0.5).
    questions: Questions for who, what, where or when; `label` is the domain.
    """

    sandbox: SetName = Field(
        description="the set: scored pairs; sentences; triplets; queries with graded candidates; pairs by "
        "topic with score 1 or 0; sentences of two or six classes; passages; passages with questions; pairs "
        "of question and passage; questions"
    )
    split: Literal["train", "dev", "test"] = Field(description="data split; no sentence is in two splits")
    size: int = Field(ge=1, le=1_000_000, description="number of records; for retrieval, of passages")
    seed: int = Field(0, ge=0, lt=2**32, description="random seed of the records")
    domains: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        None,
        description="domains to draw from, or a group: in-domain, held-out or known-by-name; null: all",
    )
    registers: Annotated[tuple[RegisterName, ...], Field(min_length=1)] | None = Field(
        None, description="registers to draw from; null: both"
    )
    # Left out of the identity without a value, as before there were rankings.
    candidates: int | None = added_field(
        None,
        ge=2,
        le=200,
        description=f"rankings: candidates per query; null: {NUM_CANDIDATES}",
    )
    world: Premises = Field(DEFAULT, description="properties of the world that differ from the defaults")

    @field_validator("domains", mode="before")
    @classmethod
    def _of_a_group(cls, given: Any) -> Any:  # noqa: ANN401 - whatever was given
        if given is None or isinstance(given, list | tuple):
            # Only JSON may have a list for a tuple, and after a validator pydantic no longer sees JSON.
            return given if given is None else tuple(given)
        groups = domain_groups()
        if not isinstance(given, str) or given not in groups:
            raise ValueError(f"a list, or one of {', '.join(groups)}; {given!r} is neither")
        return groups[given]

    @field_validator("domains")
    @classmethod
    def _are_known(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        from synthbench.worlds.sandbox.vocabulary import domain_names

        for name in names or ():
            if name not in domain_names():
                raise ValueError(f"the sandbox has no domain '{name}'{did_you_mean(name, domain_names())}")
        return names

    @model_validator(mode="after")
    def _suits_the_set(self) -> Self:
        from synthbench.worlds.sandbox.sets import GOOD_ACTIONS, SIX_CLASSES

        if self.candidates is not None and self.sandbox != "rankings":
            raise ValueError(f"only rankings have candidates, {self.sandbox} have none")
        if self.domains is None:
            return self
        if self.sandbox == "six-classes":
            raise ValueError(f"six-classes takes no domains: its classes are {', '.join(SIX_CLASSES)}")
        if self.sandbox == "two-classes" and not set(self.domains) & GOOD_ACTIONS.keys():
            raise ValueError(f"two-classes has none of these domains, but {', '.join(GOOD_ACTIONS)}")
        return self

    def constants(self) -> Mapping[str, Constant]:
        """Return the constants in use: the number of candidates, if rankings leave `candidates` null."""
        is_null = self.sandbox == "rankings" and self.candidates is None
        return {**super().constants(), **({"candidates": Constant(NUM_CANDIDATES, 20)} if is_null else {})}

    @property
    def own_kind(self) -> RecordKind:
        """The kind of the set's records."""
        return KINDS[self.sandbox]

    @property
    def is_training_text(self) -> bool:
        """Whether the set is training text, whatever its split: passages are."""
        return self.sandbox == "passages"

    def listed_records(self) -> list[Record]:
        """Return the set's records: `size` of them, and for retrieval also the questions."""
        if self.sandbox == "retrieval":
            from synthbench.worlds.sandbox.questions import retrieval

            return list(retrieval(self._scope(), self.size))
        from synthbench.worlds.sandbox.sets import records

        endless = records(self.sandbox, self._scope(), self.candidates or NUM_CANDIDATES)
        return list(islice(endless, self.size))

    def _scope(self) -> "Scope":
        from synthbench.worlds.sandbox.realisation import REGISTERS
        from synthbench.worlds.sandbox.sampling import Scope
        from synthbench.worlds.sandbox.vocabulary import domain_names

        registers, domains = self.registers or REGISTERS, self.domains or domain_names()
        # In the vocabulary's order, whatever the order in the file.
        return Scope(
            split=self.split,
            seed=self.seed,
            registers=tuple(name for name in REGISTERS if name in registers),
            domains=tuple(name for name in domain_names() if name in domains),
            premises=self.world,
        )


def domain_groups() -> Mapping[str, tuple[str, ...]]:
    """Return the domains of each named group."""
    from synthbench.worlds.sandbox.vocabulary import domain_names

    return {
        "in-domain": tuple(name for name in domain_names() if name not in (HELD_OUT, KNOWN_BY_NAME)),
        "held-out": (HELD_OUT,),
        "known-by-name": (KNOWN_BY_NAME,),
    }
