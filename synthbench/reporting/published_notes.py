"""What a reader must know of the published figures beside ours."""

from collections.abc import Iterator

from synthbench.reporting.table import DIFFERENCE_MARK, FLAGS, Difference, PublishedCell, Row, Table

Found = tuple[Row, str, PublishedCell]


def published_notes(table: Table) -> Iterator[str]:
    """Yield where the figures are from, in what they differ, what is doubtful about them."""
    found = [
        (row, column.title, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=False)
        if cell is not None
    ]
    shown = [each for each in found if not each[2].refusal]
    if shown:
        yield f"Published: {'; '.join(dict.fromkeys(cell.source for _, _, cell in shown))}."
    for difference in dict.fromkeys(difference for _, _, cell in shown for difference in cell.differences):
        yield f"{DIFFERENCE_MARK} Not measured alike: {difference.text}{_names(difference, shown)}."
    for flag in dict.fromkeys(cell.flag for _, _, cell in shown if cell.flag):
        mark, meaning = FLAGS[flag]
        yield f"{mark} {meaning}"
    refused: dict[str, dict[str, None]] = {}
    for _, title, cell in found:
        if cell.refusal:
            refused.setdefault(cell.refusal, {})[title] = None
    for reason, titles in refused.items():
        yield f"Published figures of another thing are not shown: {', '.join(titles)}: {reason}."


def _names(difference: Difference, shown: list[Found]) -> str:
    """Return ": A, B" with the rows or columns that differ, nothing if all do."""
    if difference.of == "table":
        return ""
    index = 0 if difference.of == "row" else 1
    everywhere, here = (
        dict.fromkeys(each[0].variant if index == 0 else each[1] for each in some)
        for some in (shown, [each for each in shown if difference in each[2].differences])
    )
    return "" if len(here) == len(everywhere) else f": {', '.join(here)}"
