"""Notes on a result's registration: whether its comparisons were declared before the first score."""

from collections.abc import Iterable, Iterator

from synthbench.base.listing import counted
from synthbench.registration.record import Earlier, History, Registered

DECLARED = "Comparisons declared before the first score in this store."
ROWS_DECLARED = "Rows declared before the first score in this store, without comparisons."
NOT_REGISTERED = "Not registered: what was declared before the first score is unknown."
MOST_NAMED = 6
MOST_CHARACTERS = 300
"""Longer names are cut: a registration may come from someone else."""


def registration_line(registered: Registered | None) -> Iterator[str]:
    """Say whether comparisons were declared before the first score, or what changed after that score."""
    if registered is None:
        yield NOT_REGISTERED
        return
    history = registered.history
    if not history.is_seen:
        yield DECLARED if registered.num_comparisons else ROWS_DECLARED
    elif any(each.is_pilot for each in history.earlier):
        what = "; ".join(_cut(history.changed)) or "nothing but names"
        yield f"Changed after scores had been seen: {what}."
    else:
        yield "Declared after scores on these test items had been seen."


def registration_notes(registered: Registered | None) -> Iterator[str]:
    """Yield `registration_line`, then notes on earlier registrations and scores on the same test items."""
    yield from registration_line(registered)
    if registered is not None:
        yield from _past(registered.history)


def registration_reference(registered: Registered | None) -> str:
    """Return `registration_line` with the registration's hash and time, for an exported card."""
    (line,) = registration_line(registered)
    if registered is None:
        return line
    return f"{line.removesuffix('.')} (registration {registered.hash[:12]}, {registered.time[:16]} UTC)."


def _past(history: History) -> Iterator[str]:
    pilots = [each for each in history.earlier if each.is_pilot]
    if history.is_seen and pilots:
        yield f"Pilots: {'; '.join(_cut(map(_declared, pilots)))}."
    others = [_declared(each) for each in history.earlier if not each.is_pilot]
    if history.num_unregistered:
        rows = ", ".join(_cut(history.unregistered))
        number = counted(history.num_unregistered, "score")
        seeds = counted(history.num_unregistered_seeds, "seed")
        others.append(f"{number} without a registration ({seeds}: {rows})")
    if others:
        yield f"Others on these items: {'; '.join(_cut(others))}."
    if history.is_seen:
        yield from _items(history)
    if history.num_dev_scores:
        number = counted(history.num_dev_scores, "earlier score")
        yield f"{number} on the dev data, which are not held against the comparisons."
    if history.num_unknown:
        yield f"Test items unknown: {counted(history.num_unknown, 'score')} in the store."
    if history.num_unreadable:
        yield f"{counted(history.num_unreadable, 'registration')} in the store could not be read."


def _items(history: History) -> Iterator[str]:
    seen = (f"{each.test} {each.num_seen:,} of {each.num_items:,}" for each in history.seen if each.num_seen)
    fresh = "the seeds are fresh, which supports claims over seeds only" if history.has_fresh_seeds else ""
    yield f"Items seen: {', '.join(_cut(seen))}; {fresh or 'neither seeds nor items are fresh'}."


def _declared(earlier: Earlier) -> str:
    """Describe an earlier registration: experiment, numbers of seeds and comparisons, missing scores."""
    counts = [counted(earlier.num_seeds, "seed"), counted(earlier.num_comparisons, "comparison")]
    if not earlier.was_scored:
        counts.append("no scores")
    if earlier.missing:
        missing = ", ".join(_cut(earlier.missing, earlier.num_missing))
        counts.append(f"without a score in the store: {missing}")
    return f"{earlier.title} ({', '.join(counts)})"


def _cut(texts: Iterable[str], number: int = 0) -> list[str]:
    """Return the first texts, shortened, then "N more"; `number` is the full count if `texts` lacks some."""
    listed = [text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…" for text in texts]
    more = max(number, len(listed)) - MOST_NAMED
    return [*listed[:MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])]
