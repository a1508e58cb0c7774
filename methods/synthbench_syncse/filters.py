"""Filters for sentences of an LLM; every drop has a reason."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.api import linear_pattern, looks_like_a_refusal

DUPLICATE = "duplicate"
EMPTY = "empty"
IDENTICAL = "identical"
REFUSAL = "refusal"
WRONG_LANGUAGE = "wrong language"
_CONTENT = linear_pattern(r"[^\W_]")
_ENDS = " .!?…\"'“”‘’"


class Filters(BaseModel):
    """Filters for sentences, in addition to empty ones and copies of the given sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_words: int | None = Field(32, ge=0, description="maximum words (split by white space); 0: no limit")
    refusals: bool = Field(True, description='drop refusals ("I cannot paraphrase ...")')
    language: Literal["en"] | None = Field(None, description="drop other languages; null: accept any")

    def reason(self, sentence: str, not_like: Collection[str] = ()) -> str:
        """Return why a sentence is dropped, "" to keep it; it must not repeat any of `not_like`."""
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

    def filtered(self, sentences: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each sentence with the reason for dropping it (later duplicates included), "" to keep it."""
        seen: set[str] = set()
        for sentence in sentences:
            reason = self.reason(sentence)
            if not reason and key(sentence) in seen:
                reason = DUPLICATE
            seen.add(key(sentence))
            yield sentence, reason


class FiltersOfAnyLength(Filters):
    """Filters without a default limit of words, which the paper has only for SynCSE-scratch."""

    max_words: int | None = Field(
        None, ge=1, description="maximum words (separated by white space) of a sentence; null: no limit"
    )


def key(sentence: str) -> str:
    """Return the sentence for comparison: without case, extra white space and punctuation at its ends."""
    return " ".join(sentence.casefold().split()).strip(_ENDS)


_WORD = linear_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SMALL_WORDS = {
    "English": "the a an and or but of to in on at for with from by is are was were be been has have had do"
    " does did not no it its he she they we you i his her their our your my this that these those who what"
    " which there as if will would can could when where how than then so into over after before about",
    "German": "der die das ein eine einen dem den und oder nicht ist sind mit von zu im auf für sich wie er"
    " sie es wir",
    "French": "le la les un une des et ou ne pas est sont avec de du dans sur pour qui que il elle nous vous"
    " ce au",
    "Spanish": "el la los las un una y o no es son con de del en por para que se su como lo al más",
    "Italian": "il lo la gli le un una e o non è sono con di del della in per che si su come nel",
    "Portuguese": "o a os as um uma e ou não é são com de do da em no na por para que se como",
    "Dutch": "de het een en of niet is zijn met van te in op voor dat die er ik hij wij naar",
}
_WORDS_OF = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}
_LEAST_WORDS = 3
_LEAST_LATIN = 0.8


def is_english(sentence: str) -> bool:
    """Return whether a sentence may be English: Latin letters, and no other language has more function words.

    Knows the function words of German, French, Spanish, Italian, Portuguese and Dutch. Short sentences and
    those without function words count as English if their letters are Latin.
    """
    letters = [character for character in sentence if character.isalpha()]
    num_latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    if letters and num_latin < _LEAST_LATIN * len(letters):
        return False
    words = [word.lower() for word in _WORD.findall(sentence)]
    if len(words) < _LEAST_WORDS:
        return True
    counts = {language: sum(word in known for word in words) for language, known in _WORDS_OF.items()}
    return counts["English"] == max(counts.values())
