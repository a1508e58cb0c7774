"""What can be set of the sandbox's data sets, and the records that follow from it."""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from synthbench.base.errors import did_you_mean
from synthbench.base.frozen import Constant
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
}
if TYPE_CHECKING:
    SetName = str
else:
    SetName = Literal[tuple(KINDS)]
NUM_CANDIDATES = 20
# No labelled text of the held-out domain is trained on: its test sets tell how an encoder does beyond what it
# was taught. (The shipped checkpoints have read unlabelled text of all domains.) Of the domain that is known
# by its name, data are written from the name alone: text of it is for tests only.
HELD_OUT, KNOWN_BY_NAME = "medicine", "science"


class SetOptions(WorldSet):
    """Text of a small world, made on the spot; no sentence is in two splits.

    The first n records of a set are the same for every size. All sentences of a record are of one register,
    which is its `subset`, but for duplicates.

    pairs: Of ten, two are paraphrases, three hard negatives (one or two decisive slots changed, or a
    negation), three related (same domain) and two unrelated (other domain; related ones where only one domain
    is drawn from); `label` is the relation.
    sentences: `label` is the domain.
    triplets: A sentence, a paraphrase and a hard negative.
    rankings: Of ten candidates one is a paraphrase, with grade 1; three each, below 0.9, are hard negatives,
    related and unrelated. Grades are exact similarities.
    duplicates: Half are paraphrases, with score 1 and the label "duplicate"; of the others ("different", 0)
    half are hard negatives. Both sentences are of one topic, which is the `subset`.
    two-classes: `label` is "good news" or "bad news"; what is done decides, and whether it is denied.
    six-classes: `label` is one of six domains; of the things that a split tells of no other split does.
    passages: One or two sentences; `label` is the domain. They are text to train on, of whatever split: those
    of a retrieval set of the same options are its own.
    retrieval: `size` of these passages and, for each eight, a question for who, what, where or when. Grade 2:
    the passage tells all that the question says. Grade 1: the same deed in other circumstances.
    answers: A question and a passage. One in eight answers it (score 1), some others do in part (0.5).
    """

    sandbox: SetName = Field(
        description="scored pairs; sentences; triplets; queries with graded candidates; pairs of score 1 or "
        "0 by topic; sentences of two or of six classes; passages; passages with questions; pairs of a"
        " question and a passage"
    )
    split: Literal["train", "dev", "test"] = Field(description="no sentence is in two splits")
    size: int = Field(ge=1, le=1_000_000, description="number of records; of retrieval, of passages")
    seed: int = Field(0, ge=0, lt=2**32, description="decides which records are made")
    domains: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        None,
        description="draw from these only; in-domain, held-out or known-by-name stands for a list; null: all",
    )
    registers: Annotated[tuple[RegisterName, ...], Field(min_length=1)] | None = Field(
        None, description="draw from these only; null: both"
    )
    # Left out of what identifies a source that has none, as it was before there were rankings.
    candidates: int | None = Field(
        None,
        ge=2,
        le=200,
        exclude_if=lambda value: value is None,
        description=f"of rankings: for each query; null: {NUM_CANDIDATES}",
    )
    world: Premises = Field(DEFAULT, description="what the world is like, where it differs from the default")

    @field_validator("domains", mode="before")
    @classmethod
    def _of_a_group(cls, given: Any) -> Any:  # noqa: ANN401 - whatever was given
        if given is None or isinstance(given, list | tuple):
            # What a validator has touched is no longer JSON, in which alone a list is taken for a tuple.
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
        """Return the number of candidates that null stands for."""
        is_null = self.sandbox == "rankings" and self.candidates is None
        return {**super().constants(), **({"candidates": Constant(NUM_CANDIDATES, 20)} if is_null else {})}

    @property
    def own_kind(self) -> RecordKind:
        """The kind of the set's records."""
        return KINDS[self.sandbox]

    @property
    def is_training_text(self) -> bool:
        """Passages of whatever split are text to train on."""
        return self.sandbox == "passages"

    def listed_records(self) -> list[Record]:
        """Return the set's records: `size` of them, and of retrieval the questions as well."""
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
        # In the order of the vocabulary, however they were listed.
        return Scope(
            split=self.split,
            seed=self.seed,
            registers=tuple(name for name in REGISTERS if name in registers),
            domains=tuple(name for name in domain_names() if name in domains),
            premises=self.world,
        )


def domain_groups() -> Mapping[str, tuple[str, ...]]:
    """Return the domains that each name of a group stands for, so that experiments mean the same ones."""
    from synthbench.worlds.sandbox.vocabulary import domain_names

    return {
        "in-domain": tuple(name for name in domain_names() if name not in (HELD_OUT, KNOWN_BY_NAME)),
        "held-out": (HELD_OUT,),
        "known-by-name": (KNOWN_BY_NAME,),
    }
