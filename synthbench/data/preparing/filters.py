"""Steps that drop records for what a sentence is like."""

import re
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from synthbench.data.preparing.step import Step
from synthbench.data.records import Record


class Length(Step):
    """Drop records with a sentence of fewer or more words (separated by white space) than allowed."""

    version = 1

    step: Literal["length"] = "length"
    min_words: int | None = Field(None, ge=1, description="fewest words of a sentence; null: no limit")
    max_words: int | None = Field(None, ge=1, description="most words of a sentence; null: no limit")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.min_words is None and self.max_words is None:
            raise ValueError("give min_words, max_words or both")
        if self.min_words and self.max_words and self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records all of whose sentences are of allowed length."""
        return [record for record in records if all(map(self._is_allowed, record.texts()))]

    def _is_allowed(self, sentence: str) -> bool:
        num_words = len(sentence.split())
        return (self.min_words or 0) <= num_words and (self.max_words is None or num_words <= self.max_words)


_CANNOT = r"(?:cannot|can't|can not|could not|couldn't|won't|(?:am|'m|was) (?:unable|not able) to)"
_TASK = "(?:rewrite|contradict|write|generate|provide|produce|create|complete|fulfil+|carry out)"
_REFUSALS = re.compile(
    "|".join(
        (
            r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            r"\bi(?:'m| am) (?:just |only )?an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            rf"\b{_CANNOT} (?:\w+ )?(?:paraphrase|rephrase|reword)\b",
            rf"\bi ?{_CANNOT} (?:assist|help)(?: you)? with (?:this|that|the|your)\b",
            rf"\bi ?{_CANNOT} {_TASK}\b"
            r".*\b(?:sentences?|text|input|content|paraphrase|contradiction|premise|hypothes[ei]s|request|list)\b",
            rf"\bi ?{_CANNOT} (?:provide|give|share|generate) (?:\w+ )?(?:information|guidance)\b"
            r".*\b(?:that|this|explicit|illegal|harmful|promotes?)\b",
        )
    )
)


def looks_like_a_refusal(text: str) -> bool:
    """Tell whether a chat model seems to decline its task: "I cannot paraphrase ...", "As an AI ..."."""
    return _REFUSALS.search(" ".join(text.lower().replace("\u2019", "'").split())) is not None


class DropRefusals(Step):
    """Drop records with a sentence in which a chat model declines its task ("I cannot paraphrase ...")."""

    version = 2

    step: Literal["drop-refusals"] = "drop-refusals"

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records of which no sentence looks like a refusal."""
        return [record for record in records if not any(map(looks_like_a_refusal, record.texts()))]
