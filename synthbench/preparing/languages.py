"""The step that keeps one language."""

from collections.abc import Iterable
from functools import lru_cache

from pydantic import Field, field_validator

from synthbench.data.languages import identifier
from synthbench.data.records import Record
from synthbench.plugins.contracts import Records, Step, StepContext

MOST_CACHED = 65_536
"""Number of sentences whose detected language is cached."""


class KeepLanguage(Step):
    """Drop records with a sentence that is certainly not in `language`.

    The library py3langid knows 97 languages. It is rarely certain about short sentences: these are kept.
    """

    version = 1

    language: str = Field(pattern=r"^[a-z]{2,3}$", description="ISO 639-1 code, such as en or de")
    sure: float = Field(
        0.7,
        gt=0.5,
        le=1.0,
        description="drop a record if a sentence is in another language with at least this probability",
    )

    @field_validator("language")
    @classmethod
    def _is_known(cls, code: str) -> str:
        known = identifier().labels
        if code not in known:
            raise ValueError(f"'{code}' is no language that py3langid knows: {', '.join(sorted(known))}")
        return code

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the kept records; dropped records are counted by the first other language found in each."""
        identify = lru_cache(MOST_CACHED)(identifier().classify)
        for record in records:
            found = next((code for text in record.texts() if (code := self._other(identify(text)))), "")
            if found:
                context.count_dropped(f"language {found}")
            else:
                yield record

    def _other(self, found: tuple[str, float]) -> str:
        code, probability = found
        return str(code) if code != self.language and probability >= self.sure else ""
