"""What differs between two registrations, in words."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from synthbench.registration.record import Registration

COMPARE = ("baseline", "compare_to", "family")
"""The claims that say which rows are compared."""
MOST_REASONS = 4
MOST_CHARACTERS = 60


def changes(old: Registration, new: Registration) -> tuple[str, ...]:
    """Return what `new` declares otherwise than `old`; names of experiments do not count."""
    return (*_seeds(old, new), *_rows(old, new), *_tests(old, new), *_claims(old, new))


def _seeds(old: Registration, new: Registration) -> Iterator[str]:
    before, after = sorted(old.seeds), sorted(new.seeds)
    if before != after:
        yield f"seeds {_listed(before)} → {_listed(after)}"


def _rows(old: Registration, new: Registration) -> Iterator[str]:
    before, after = old.rows_by_label, new.rows_by_label
    gone = [label for label in before if label not in after]
    added = [label for label in after if label not in before]
    for label in list(added):
        same = (name for name in gone if old.models(name) == new.models(label))
        if (former := next(same, None)) is not None:
            yield f"row {former} renamed {label}"
            gone.remove(former)
            added.remove(label)
    if added:
        yield f"new: {_listed(added)}"
    if gone:
        yield f"left out: {_listed(gone)}"
    yield from _recipes(old, new)


def _recipes(old: Registration, new: Registration) -> Iterator[str]:
    """Yield the rows whose recipes changed, those with the same reason together."""
    before, after = old.rows_by_label, new.rows_by_label
    reasons: dict[str, list[str]] = {}
    for label in before.keys() & after.keys():
        theirs, ours = old.models(label), new.models(label)
        common = theirs.keys() & ours.keys()
        named = [
            *_differences(before[label].settings, after[label].settings),
            *(f"{name} {was} → {now}" for name, was, now in _pairs(before[label].code, after[label].code)),
            *(f"other content of {name}" for name, *_ in _pairs(before[label].reads, after[label].reads)),
        ]
        if any(theirs[seed] != ours[seed] for seed in common) or (not common and named):
            reasons.setdefault(_several(named) or "another recipe", []).append(label)
    for reason, labels in sorted(reasons.items()):
        yield f"{_listed(sorted(labels))}: {reason}"


def _tests(old: Registration, new: Registration) -> Iterator[str]:
    before = {(test.name, test.evaluator): test for test in old.tests}
    after = {(test.name, test.evaluator): test for test in new.tests}
    if added := [name for name, how in after if (name, how) not in before]:
        yield f"test sets added: {_listed(added)}"
    if gone := [name for name, how in before if (name, how) not in after]:
        yield f"test sets left out: {_listed(gone)}"
    for key in before.keys() & after.keys():
        if before[key].items != after[key].items:
            yield f"{key[0]}: {before[key].num_items:,} → {after[key].num_items:,} items, other ones"
        elif before[key].scoring != after[key].scoring:
            yield f"{key[0]}: scored otherwise"


def _claims(old: Registration, new: Registration) -> Iterator[str]:
    if old.varied != new.varied:
        yield f"varied with the seed: {_listed(old.varied)} → {_listed(new.varied)}"
    claims = list(_pairs(old.claims, new.claims))
    if any(name in COMPARE for name, *_ in claims) and set(old.compared) != set(new.compared):
        # Which comparisons came and went says more than the options that name them.
        claims = [each for each in claims if each[0] not in COMPARE]
        yield from _comparisons("new", old, new)
        yield from _comparisons("left out", new, old)
    for name, was, now in claims:
        yield f"{name} {_shown(was)} → {_shown(now)}"


def _comparisons(what: str, before: Registration, after: Registration) -> Iterator[str]:
    """Yield the primary comparisons that only `after` has."""
    added = [
        f"{row} − {baseline}" for row, baseline in after.compared if (row, baseline) not in before.compared
    ]
    if added:
        yield f"comparisons {what}: {_several(added)}"


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for path, was, now in _pairs(before, after):
        yield f"{path} {_shown(was)} → {_shown(now)}"


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield each name whose values differ, with both."""
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _several(reasons: list[str]) -> str:
    more = f" and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
    return ", ".join(reasons[:MOST_REASONS]) + more


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _shown(value: Any) -> str:  # noqa: ANN401 - any setting
    if value is None:
        return "none"
    is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = ", ".join(value) if is_list else text
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
