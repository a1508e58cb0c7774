"""What differs between two registrations, in words."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from synthbench.base.listing import listed, shortened
from synthbench.registration.record import Registration

Pair = tuple[str, str]
"""A row and its baseline."""
COMPARE = ("baseline", "compare_to", "family")
"""The claims that say which rows are compared."""
MOST_REASONS = 4
MOST_CHARACTERS = 60


def changes(old: Registration, new: Registration) -> tuple[str, ...]:
    """Return the differences of `new` from `old`, each in words; names of experiments do not count."""
    return (*_seeds(old, new), *_rows(old, new), *_tests(old, new), *_claims(old, new))


def _seeds(old: Registration, new: Registration) -> Iterator[str]:
    before, after = sorted(old.seeds), sorted(new.seeds)
    if before != after:
        yield f"seeds {_joined(before)} → {_joined(after)}"


def _rows(old: Registration, new: Registration) -> Iterator[str]:
    before, after = old.rows_by_label, new.rows_by_label
    renamed = _renamed(old, new)
    yield from (f"row {former} renamed {label}" for former, label in renamed.items())
    if added := [label for label in after if label not in before and label not in renamed.values()]:
        yield f"new: {_joined(added)}"
    if gone := [label for label in before if label not in after and label not in renamed]:
        yield f"left out: {_joined(gone)}"
    yield from _recipes(old, new)


def _renamed(old: Registration, new: Registration) -> Mapping[str, str]:
    """Return the rows that were only renamed, as old name -> new name."""
    gone = [label for label in old.rows_by_label if label not in new.rows_by_label]
    found: dict[str, str] = {}
    for label in new.rows_by_label:
        same = (each for each in gone if each not in found and _is_same(old, each, new, label))
        if label not in old.rows_by_label and (former := next(same, None)) is not None:
            found[former] = label
    return found


def _is_same(old: Registration, former: str, new: Registration, label: str) -> bool:
    """Return whether two rows have equal models for common seeds or, without common seeds, equal recipes."""
    theirs, ours = old.models(former), new.models(label)
    if common := theirs.keys() & ours.keys():
        return all(theirs[seed] == ours[seed] for seed in common)
    return old.rows_by_label[former].model_copy(update={"label": label}) == new.rows_by_label[label]


def _recipes(old: Registration, new: Registration) -> Iterator[str]:
    """Yield a line for each change of recipes; the line names all rows with this change."""
    before, after = old.rows_by_label, new.rows_by_label
    reasons: dict[str, list[str]] = {}
    for label in before.keys() & after.keys():
        theirs, ours = old.models(label), new.models(label)
        common = theirs.keys() & ours.keys()
        named = [
            *_changed(_pairs(before[label].settings, after[label].settings)),
            *(f"{name} {was} → {now}" for name, was, now in _pairs(before[label].code, after[label].code)),
            *(f"other content of {name}" for name, *_ in _pairs(before[label].reads, after[label].reads)),
        ]
        if any(theirs[seed] != ours[seed] for seed in common) or (not common and named):
            reasons.setdefault(listed(named, MOST_REASONS) or "another recipe", []).append(label)
    for reason, labels in sorted(reasons.items()):
        yield f"{_joined(sorted(labels))}: {reason}"


def _tests(old: Registration, new: Registration) -> Iterator[str]:
    before = {(test.name, test.evaluator): test for test in old.tests}
    after = {(test.name, test.evaluator): test for test in new.tests}
    if added := [name for name, how in after if (name, how) not in before]:
        yield f"test sets added: {_joined(added)}"
    if gone := [name for name, how in before if (name, how) not in after]:
        yield f"test sets left out: {_joined(gone)}"
    for key in (key for key in after if key in before):
        was, now = before[key].num_items, after[key].num_items
        if before[key].items != after[key].items:
            yield f"{key[0]}: " + (
                f"{was:,} → {now:,} items" if was != now else f"another set of {now:,} items"
            )
        elif before[key].scoring != after[key].scoring:
            yield f"{key[0]}: scored otherwise"


def _claims(old: Registration, new: Registration) -> Iterator[str]:
    if old.varied != new.varied:
        yield f"varied with the seed: {_joined(old.varied)} → {_joined(new.varied)}"
    claims = list(_pairs(old.claims, new.claims))
    if any(name in COMPARE for name, *_ in claims):
        # Which comparisons came and went says more than the options that name them.
        claims = [each for each in claims if each[0] not in COMPARE]
        renamed = _renamed(old, new)
        before = [(renamed.get(row, row), renamed.get(other, other)) for row, other in old.compared]
        found = [
            *_comparisons("new comparisons", before, new.compared),
            *_comparisons("comparisons left out", new.compared, before),
        ]
        yield from found or ["the same comparisons, named otherwise"]
    yield from _changed(claims)


def _comparisons(what: str, before: Sequence[Pair], after: Sequence[Pair]) -> Iterator[str]:
    """Yield a line, headed `what`, of the comparisons that only `after` has; nothing if there are none."""
    if added := [f"{row} − {baseline}" for row, baseline in after if (row, baseline) not in before]:
        yield f"{what}: {listed(added, MOST_REASONS)}"


def _changed(pairs: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    return (f"{name} {_shown(was)} → {_shown(now)}" for name, was, now in pairs)


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, value before, value after) for each name whose values differ; a missing value is None."""
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _joined(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _shown(value: Any) -> str:  # noqa: ANN401 - any setting
    if value is None:
        return "none"
    is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = ", ".join(value) if is_list else text
    return shortened(text, MOST_CHARACTERS)
