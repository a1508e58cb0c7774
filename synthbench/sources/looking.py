"""Findings on all of a study's data, a line each: parts, leaks, languages, lengths."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.grouping import grouped
from synthbench.data.contamination import Check, TestIndex, search
from synthbench.data.reading import Content, is_blank
from synthbench.data.truncation import count_truncated
from synthbench.models.cards import languages_of
from synthbench.models.pretrained import Pretrained
from synthbench.models.reading_limits import tokenizer_and_limit
from synthbench.sources.description import Roots
from synthbench.sources.guessing import SHARES, Guess
from synthbench.sources.models import SOURCE_TYPES
from synthbench.sources.parts import CONNECTS_PARTS

TESTED = "test"


def look(sources: Mapping[str, Guess], base: str | None) -> Iterator[str]:
    """Yield a line for each finding: on each source and gold's parts, then on leaks, languages and lengths.

    Gold is divided by `SHARES`, as in a short file without dev and test. Without a base model, there are no
    findings on lengths. Raises UserError if a source can't be read, or if the base model does not know a
    source's language.
    """
    contents: dict[str, Content] = {}
    for name, guess in sources.items():
        yield from (f"{name}: {finding}" for finding in guess.findings)
        if name != "gold":
            contents[name] = _read(guess.settings)
            continue
        parts = {part: _read(guess.settings, part) for part in SHARES}
        numbers = ", ".join(f"{len(content.records):,} {part}" for part, content in parts.items())
        cut = parts[TESTED].dropped.get(CONNECTS_PARTS, 0)
        left_out = f"; {cut:,} pairs connect parts and are left out, so fewer differences show" if cut else ""
        yield f"gold: divided by its sentences: {numbers}{left_out}"
        contents |= {f"gold's {part} part": content for part, content in parts.items()}
    yield from _leaks(contents)
    for language, names in _languages(sources).items():
        yield f"language: {language} ({', '.join(names)})"
    if base is not None:
        for name, guess in sources.items():
            check_language(guess, name, base, languages_of(base))
        yield from _lengths(sources, base)


def _languages(sources: Mapping[str, Guess]) -> Mapping[str, list[str]]:
    """Return the names of the sources by language, for languages recognised with certainty."""
    return grouped((guess.language, name) for name, guess in sources.items() if guess.language is not None)


def check_language(guess: Guess, name: str, reader: str, known: Collection[str]) -> None:
    """Raise UserError if texts are surely in a language that a base or recipe does not know.

    `reader` is the name of the base or recipe, `known` are its languages; empty: any.
    """
    if known and guess.language is not None and guess.language not in known:
        raise UserError(
            f"{name}: the texts' language is {guess.language}, but {reader} knows {', '.join(known)} only;"
            " choose one that knows it"
        )


def _read(settings: Mapping[str, Any], part: str | None = None) -> Content:
    kind = next(source for key, source in SOURCE_TYPES.items() if key in settings)
    given = dict(settings) | ({"part": {"take": part, "shares": SHARES}} if part else {})
    return kind.model_validate(given, strict=False).read(Roots())


def _leaks(contents: Mapping[str, Content]) -> Iterator[str]:
    """Yield a line on each data set that holds sentences of test pairs, ignoring case and punctuation."""
    tested = next((name for name in contents if TESTED in name), None)
    if tested is None:
        return
    rows = [record.texts() for record in contents[tested].records]
    index = TestIndex({tested: rows}, checks=(Check.NORMALISED,))
    for name, content in contents.items():
        if name != tested:
            found = search([[record.texts() for record in content.records]], index)
            number = found.overlaps(index)[0].checks[Check.NORMALISED].items
            if number:
                yield f"leak: {number:,} of {len(rows):,} pairs in {tested} have a sentence in {name}"


def _lengths(sources: Mapping[str, Guess], base: str) -> Iterator[str]:
    """Yield how many texts of each source the base truncates, or why its tokenizer can't be loaded."""
    try:
        reader = tokenizer_and_limit(Pretrained(model=base))
    except UserError as error:
        what = "lengths" if languages_of(base) else "lengths and language"
        yield f"{what}: not compared with those of the base: {error}"
        return
    for name, guess in sources.items() if reader is not None else ():
        assert reader is not None
        found = count_truncated(((text,) for text in guess.texts if not is_blank(text)), *reader)
        if found.truncated:
            share = f"{found.truncated:,} of {found.texts:,} texts ({found.share:.0%})"
            yield f"{name}: {share} are longer than {reader[1]} tokens: {base} cuts them"
