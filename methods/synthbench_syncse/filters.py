"""Why a sentence that an LLM wrote is not used."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.api import looks_like_a_refusal
from synthbench_syncse.language import is_english

DUPLICATE = "duplicate"
EMPTY = "empty"
IDENTICAL = "identical"
REFUSAL = "refusal"
WRONG_LANGUAGE = "wrong language"
_CONTENT = re.compile(r"[^\W_]")
_ENDS = " .!?…\"'“”‘’"


class Filters(BaseModel):
    """Which sentences are dropped, beside empty ones and those that are the given sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_words: int | None = Field(
        32, ge=0, description="most words (separated by white space) of a sentence; 0: any number"
    )
    refusals: bool = Field(True, description='drop what looks like a refusal ("I cannot paraphrase ...")')
    language: Literal["en"] | None = Field(None, description="drop what is in another language; null: any")

    def reason(self, sentence: str, not_like: Collection[str] = ()) -> str:
        """Return why a sentence is not used, "" if it is; `not_like` are those that it must not repeat."""
        if not _CONTENT.search(sentence):
            return EMPTY
        if self.refusals and looks_like_a_refusal(sentence):
            return REFUSAL
        if key(sentence) in map(key, not_like):
            return IDENTICAL
        if self.max_words and len(sentence.split()) > self.max_words:
            return f"more than {self.max_words} words"
        if self.language == "en" and not is_english(sentence):
            return WRONG_LANGUAGE
        return ""

    def sifted(self, sentences: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each sentence with the reason why it is not used, "" for the first of its like."""
        seen: set[str] = set()
        for sentence in sentences:
            reason = self.reason(sentence)
            if not reason and key(sentence) in seen:
                reason = DUPLICATE
            seen.add(key(sentence))
            yield sentence, reason


class FiltersOfAnyLength(Filters):
    """The same without a limit of words unless one is given: the paper has it for SynCSE-scratch alone."""

    max_words: int | None = Field(
        None, ge=1, description="most words (separated by white space) of a sentence; null: any number"
    )


def key(sentence: str) -> str:
    """Return what sentences share that differ in case, white space or punctuation at the ends only."""
    return " ".join(sentence.casefold().split()).strip(_ENDS)
