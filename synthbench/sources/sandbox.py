"""Sentences and scored pairs of the sandbox, whose similarities are known exactly."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from synthbench.data.records import RecordKind, ScoredPair, Sentence
from synthbench.errors import did_you_mean
from synthbench.sandbox import VERSION
from synthbench.sources.content import Content
from synthbench.sources.description import SourceBase
from synthbench.sources.places import Places
from synthbench.sources.tasks import Split

if TYPE_CHECKING:
    from synthbench.sandbox.streams import Scope

RegisterName = Literal["captions", "headlines"]


class SandboxSource(SourceBase):
    """Sentences of a small world, made on the spot; no sentence stands in two splits.

    Of ten pairs two are paraphrases, three hard negatives (one or two decisive slots changed, or a negation),
    three related (same domain) and two unrelated (other domain; related ones where only one domain is drawn
    from). Both sentences of a pair are of one register, the record's `subset`; its `label` is the relation,
    a sentence's the domain. The first n records are the same for every size.
    """

    sandbox: Literal["pairs", "sentences"] = Field(description="scored pairs, or sentences without scores")
    split: Split = Field(description="no sentence stands in two splits")
    size: int = Field(ge=1, le=1_000_000, description="number of records")
    seed: int = Field(0, ge=0, lt=2**32, description="decides which records are made")
    domains: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        None, description="draw from these only; null: all"
    )
    registers: Annotated[tuple[RegisterName, ...], Field(min_length=1)] | None = Field(
        None, description="draw from these only; null: both"
    )

    @field_validator("domains")
    @classmethod
    def _are_known(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        from synthbench.sandbox.vocabulary import domain_names

        for name in names or ():
            if name not in domain_names():
                raise ValueError(f"the sandbox has no domain '{name}'{did_you_mean(name, domain_names())}")
        return names

    @model_validator(mode="after")
    def _holds_the_sample(self) -> Self:
        if self.sample is not None and self.sample.size > self.size:
            raise ValueError(f"a sample of {self.sample.size} from {self.size} records")
        return self

    @property
    def record_kind(self) -> RecordKind:
        """Scored pairs or sentences."""
        return RecordKind.SCORED_PAIR if self.sandbox == "pairs" else RecordKind.SENTENCE

    def fingerprint(self, places: Places) -> dict[str, str]:
        """Return the version of the sandbox: nothing is read."""
        return {"sandbox": str(VERSION)}

    def _read(self, places: Places) -> Content:
        records = self._pairs() if self.sandbox == "pairs" else self._sentences()
        return Content(list(records))

    def _pairs(self) -> Iterator[ScoredPair]:
        from synthbench.sandbox.streams import pairs

        for pair in islice(pairs(self._scope()), self.size):
            yield ScoredPair(
                id=_id(pair.sentence1, pair.sentence2),
                split=self.split,
                subset=pair.register,
                label=pair.relation.value,
                seed=self.seed,
                sentence1=pair.sentence1,
                sentence2=pair.sentence2,
                score=pair.score,
            )

    def _sentences(self) -> Iterator[Sentence]:
        from synthbench.sandbox.streams import sentences

        for text, register, event in islice(sentences(self._scope()), self.size):
            yield Sentence(
                id=_id(text),
                split=self.split,
                subset=register,
                label=event.domain,
                seed=self.seed,
                sentence=text,
            )

    def _scope(self) -> "Scope":
        """Return what to draw from, in the order of the vocabulary, however it was listed."""
        from synthbench.sandbox.forms import REGISTERS
        from synthbench.sandbox.streams import Scope
        from synthbench.sandbox.vocabulary import domain_names

        registers, domains = self.registers or REGISTERS, self.domains or domain_names()
        return Scope(
            split=self.split,
            seed=self.seed,
            registers=tuple(name for name in REGISTERS if name in registers),
            domains=tuple(name for name in domain_names() if name in domains),
        )

    def _title(self) -> str:
        return f"sandbox {self.sandbox} {self.split}"


def _id(*texts: str) -> str:
    """Return the id of a record: its sentences have it in every source that they stand in."""
    digest = hashlib.sha256("\x1f".join(texts).encode()).hexdigest()
    return f"sandbox/{digest[:16]}"
