"""The language of texts, by the library py3langid, which knows 97 languages."""

from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

MOST_TEXTS = 200
SURE = 0.95


@cache
def identifier() -> Any:  # noqa: ANN401 - the library's, untyped
    """Return py3langid's classifier; it gives the probability of a language."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def language_of(texts: Iterable[str]) -> str | None:
    """Return the ISO 639-1 code of the first `MOST_TEXTS` texts' language; None below probability `SURE`."""
    sample = " ".join(islice(texts, MOST_TEXTS))
    code, probability = identifier().classify(sample) if sample else ("", 0.0)
    return str(code) if probability >= SURE else None
