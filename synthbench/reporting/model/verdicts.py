"""Sentences on what was tested and what is significant, the same in all formats."""

from collections.abc import Iterator, Sequence

from synthbench.base.listing import listed
from synthbench.config.comparing import is_named
from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparisons import Comparison
from synthbench.reporting.model.decisions import TestedFamily, best_rows, primary_columns
from synthbench.reporting.model.table import Column

STAR = "*"
NO_BASELINE = "No baseline (`baseline`, `table.compare_to`), so nothing is primary"
NOTHING_TO_COMPARE = "No row has a score beside that of its baseline, so nothing is primary"
NO_AVERAGE = "No row has a score on {} beside that of its baseline, so nothing is primary"
NO_PRIMARY = "`table.primary` and `table.family` leave no comparison, so nothing is primary"


def rule(analysis: Analysis) -> Iterator[str]:
    """Describe the primary comparisons, the noise that their tests cover, the test, and its adjustment."""
    tested = _tested(analysis)
    if tested:
        compared = [each for _, each in tested]
        yield (
            f"Primary: {_compared(tested)}, over {noise(compared)}; {tests(compared)};"
            f" {adjustment(analysis.decisions.primary)}."
        )
    else:
        yield _why_nothing_is_primary(analysis)
    yield from _missing(analysis)
    if analysis.decisions.pairs.number:
        yield from best_row_sentences(analysis)
        how = adjustment(analysis.decisions.pairs)
        yield f"Best row: 5 % level, all pairs of rows (comparisons.csv), {how}."


def untested(analysis: Analysis) -> Iterator[str]:
    """Name the primary comparisons that could not be tested, and why, if others were tested."""
    reasons: dict[str, dict[str, None]] = {}
    for _, each in analysis.decisions.of("primary"):
        if not each.finding and (why := why_unknown(each)):
            reasons.setdefault(why, {})[each.name] = None
    if _tested(analysis):
        for reason, names in reasons.items():
            yield f"Primary, but not tested: {listed(names)}: {reason}."


def bold(analysis: Analysis) -> Iterator[str]:
    """Say what bold means; yields nothing if no comparison is tested."""
    decisions, tested = analysis.decisions, _tested(analysis)
    has_several = len({each.baseline.variant for _, each in tested}) > 1
    above = [(source, each) for source, each in decisions.of("primary") if each.direction > 0]
    if any(decisions.is_bold(each.row, source) for source, each in above):
        which = "one of its baselines (comparisons.* has which)" if has_several else "a baseline"
        also = ", and no baseline's mean is higher" if has_several else ""
        yield f"Bold: significantly above {which} in a primary comparison (5 %){also}."
    elif above:
        yield (
            "Nothing is bold: rows that are significantly above a baseline (comparisons.* has which) have a"
            " lower mean than another."
        )
    elif tested:
        yield "Nothing is bold: no primary comparison is significant in a row's favour (5 %)."


def verdict(analysis: Analysis) -> Iterator[str]:
    """Say how many primary comparisons are significant and which is largest: the page's first sentences."""
    tested = _tested(analysis)
    if not tested:
        yield _why_nothing_is_primary(analysis)
        yield from best_row_sentences(analysis)
        return
    found = [(column, each) for column, each in tested if each.direction]
    together = ", adjusted together," if len(tested) > 1 else ""
    level = f"at 5 %{together} over {noise([each for _, each in tested])}"
    is_whole = len(tested) == len(list(analysis.decisions.of("primary")))
    if len(tested) == 1:
        alone = "primary" if is_whole else "only tested primary"
        start = f"The {alone} comparison is{'' if found else ' not'}"
    else:
        are = "are" if len(found) > 1 else "is"
        which = "primary" if is_whole else "tested primary"
        start = f"{len(found) or 'None'} of {len(tested)} {which} comparisons {are}"
    yield f"{start} significant {level}{'' if found else ', which does not prove equality'}."
    if found:
        column, largest = max(found, key=lambda each: abs(each[1].value))
        size = interval_text(largest, analysis.options.decimals)
        yield f"{'The largest' if len(found) > 1 else 'It is'}: {largest.about} on {column.title}, {size}."
    yield from best_row_sentences(analysis)


def _tested(analysis: Analysis) -> list[tuple[Column, Comparison]]:
    primary = ((source.column, each) for source, each in analysis.decisions.of("primary"))
    return [(column, each) for column, each in primary if each.finding]


def _why_nothing_is_primary(analysis: Analysis) -> str:
    """Say why no primary comparison is tested; if best rows are not tested, also that nothing is claimed."""
    claims_best = analysis.decisions.pairs.number > 0
    untested = [each for _, each in analysis.decisions.of("primary")]
    if not untested:
        return f"{_why_no_primary(analysis)}{'' if claims_best else ' and nothing is claimed'}."
    reasons = ("rows can't be compared" if each.refusal else why_unknown(each) for each in untested)
    why = "; ".join(dict.fromkeys(reasons))
    return f"{'No primary comparison is tested' if claims_best else 'Nothing is claimed'}: {why}."


def _why_no_primary(analysis: Analysis) -> str:
    """Say why there is no primary comparison, tested or not."""
    options = analysis.options
    if not analysis.compared:
        return NO_BASELINE
    if not analysis.comparisons:
        return NOTHING_TO_COMPARE
    if options.primary is not None or options.family is not None:
        return NO_PRIMARY
    averages = listed(each.column.title for each in primary_columns(analysis.columns, options))
    return NO_AVERAGE.format(averages)


def interval_text(comparison: Comparison, decimals: int) -> str:
    """Return a tested difference with its simultaneous 95 % interval: "+3.10 (+1.02 to +5.18)"."""
    assert comparison.finding is not None
    value, reach = 100 * comparison.finding.value, 100 * comparison.finding.half_width
    low, high = (signed(end, decimals) for end in (value - reach, value + reach))
    return f"{signed(value, decimals)} ({low} to {high})"


def signed(value: float, decimals: int) -> str:
    """Return a rounded number with its sign; a number that rounds to 0 has no sign."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "−")


def noise(compared: Sequence[Comparison]) -> str:
    """Name the sources of noise that the tests of these comparisons cover: "seeds and test items"."""
    kinds = {(each.over_seeds is not None, each.over_items is not None) for each in compared if each.evidence}
    if not any(items for _, items in kinds):
        return "seeds, on these test items"
    if not any(seeds for seeds, _ in kinds):
        return "test items"
    return (
        "seeds and test items" if all(items for _, items in kinds) else "seeds and, where known, test items"
    )


def tests(compared: Sequence[Comparison]) -> str:
    """Name the significance test over seeds: "Welch's t-test"."""
    kinds = {each.is_paired for each in compared if each.over_seeds}
    if not kinds:
        return "t-test"
    if kinds == {False}:
        return "Welch's t-test"
    if kinds == {True}:
        return "t-test paired by seed, since seeds redraw data that both rows use"
    return "t-test paired by seed where seeds redraw data that both rows use, otherwise Welch's"


def adjustment(family: TestedFamily) -> str:
    """Say how a family's tests are adjusted for multiple testing."""
    if family.number == 1:
        return "not adjusted"
    how = "single-step max-t" if family.is_max_t else "Bonferroni, since their correlations are unknown"
    many = "both" if family.number == 2 else f"all {family.number}"
    return f"adjusted for {many} together ({how})"


def best_row_sentences(analysis: Analysis) -> Iterator[str]:
    """Say for each column and point of the grid which row is best, if any; empty without `table.best`."""
    rows = [key for key in analysis.rows if key.variant not in analysis.options.ceiling]
    for source, axes, row in best_rows(analysis.decisions) if analysis.decisions.pairs.number else ():
        # Rows shown once for all points are compared with each other only.
        apart = listed(dict.fromkeys(key.variant for key in rows if bool(key.axes) != bool(axes)))
        where = RowKey(f"on {source.column.title}", axes).title
        name = f"{row.variant} is" if row else "no row is"
        compared = f" (not compared with {apart})" if apart else ""
        yield f"Best row {where}: {name} significantly above every other{compared}."


def why_unknown(comparison: Comparison) -> str:
    """Return why a comparison's noise is partly or wholly unknown; "" if known or not compared."""
    seeded = [sample for sample in comparison.samples if sample.is_seeded]
    if comparison.refusal or (comparison.over_seeds and comparison.over_items):
        return ""
    if comparison.over_seeds:
        return "the noise of the test items is unknown"
    if not seeded:
        also = "" if comparison.over_items else ", and the noise of the test items is unknown"
        return f"no seed changes these rows{also}"
    if any(sample.num_seeds < 2 for sample in seeded):
        return "an interval needs two seeds or more, and a row has one"
    equal = "differences" if comparison.is_paired else "scores"
    return f"equal {equal} for all seeds do not show the noise"


def _missing(analysis: Analysis) -> Iterator[str]:
    """Name the comparisons in `table.family` that this result lacks, for example if rows were not run."""
    primary = [each for _, each in analysis.decisions.of("primary")]
    missing = [
        f"{name or 'any row'} − {baseline}"
        for baseline, names in (analysis.options.family or {}).items()
        for name in names or ("",)
        if not any(is_named(each.pair, {baseline: (name,) if name else ()}) for each in primary)
    ]
    if missing:
        yield f"In `table.family`, but not compared here: {listed(missing)}."


def _compared(tested: Sequence[tuple[Column, Comparison]]) -> str:
    """Describe comparisons by number, baselines and columns: "3 comparisons with gold-only on Average"."""
    baselines = list(dict.fromkeys(each.baseline.variant for _, each in tested))
    columns = list(dict.fromkeys(column.title for column, _ in tested))
    what = f"{len(tested)} comparisons" if len(tested) > 1 else "one comparison"
    return f"{what} with {listed(baselines)} on {listed(columns)}"
