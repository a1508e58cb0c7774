"""Filters for sentences of an LLM; every drop has a reason."""

from collections.abc import Collection, Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field, field_validator

from synthbench.api import (
    Words,
    check_words,
    has_content,
    looks_like_a_refusal,
    same_text,
    split_words,
    words_setting,
)

DUPLICATE = "duplicate"
EMPTY = "empty"
IDENTICAL = "identical"
REFUSAL = "refusal"


class Filters(BaseModel):
    """Filters for sentences; empty ones, duplicates and copies of the given sentence are always dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_words: int | None = Field(
        32, ge=0, description="maximum number of words in a sentence, split as `words` says; 0: no limit"
    )
    words: Words | None = words_setting()
    refusals: bool = Field(True, description='drop what looks like a refusal ("I cannot paraphrase ...")')
    language: None = Field(None, description="removed: use the step `keep-language`")

    @field_validator("language", mode="before")
    @classmethod
    def _is_gone(cls, given: object) -> None:
        if given is not None:
            raise ValueError(f"is gone; write prepare: [{{step: keep-language, language: {given}}}]")

    def check_words(self, texts: Iterable[str]) -> None:
        """Raise UserError if `max_words` would count each text as one word, for lack of spaces."""
        if self.max_words and self.words is None:
            check_words(texts, "filters.max_words", "`filters: {words: icu}` or `{words: pairs}`")

    def reason(self, sentence: str, not_like: Collection[str] = ()) -> str:
        """Return why a sentence is dropped, "" to keep it; a repetition of one of `not_like` is dropped."""
        if not has_content(sentence):
            return EMPTY
        if self.refusals and looks_like_a_refusal(sentence):
            return REFUSAL
        if same_text(sentence) in map(same_text, not_like):
            return IDENTICAL
        if self.max_words and len(split_words(sentence, self.words)) > self.max_words:
            return f"more than {self.max_words} words"
        return ""

    def filtered(self, sentences: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each sentence and the reason for dropping it, "" to keep it; later duplicates are dropped."""
        seen: set[str] = set()
        for sentence in sentences:
            reason = self.reason(sentence)
            if not reason and same_text(sentence) in seen:
                reason = DUPLICATE
            seen.add(same_text(sentence))
            yield sentence, reason


class FiltersOfAnyLength(Filters):
    """Filters without a default limit of words: the paper limits words only for SynCSE-scratch."""

    max_words: int | None = Field(
        None, ge=1, description="maximum number of words in a sentence, split as `words` says; null: no limit"
    )
