"""What a reader must know of the published figures beside ours."""

from collections.abc import Iterator

from synthbench.reporting.model.table import DIFFERENCE_MARK, FLAGS, PublishedCell, Row, Table

Found = tuple[Row, str, PublishedCell]


def published_notes(table: Table, *, are_wanted: bool) -> Iterator[str]:
    """Yield where the figures are from, in what they differ, what is doubtful about them."""
    found = [
        (row, column.title, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=False)
        if cell is not None
    ]
    if are_wanted and not found:
        yield "None of the published figures is of a row and a column of this table."
    shown = [each for each in found if not each[2].refusal]
    if shown:
        yield f"Published: {'; '.join(dict.fromkeys(cell.source for _, _, cell in shown))}."
    for text in _differences(shown):
        yield f"{DIFFERENCE_MARK} Not measured alike: {text}."
    for flag in dict.fromkeys(cell.flag for _, _, cell in shown if cell.flag):
        mark, meaning = FLAGS[flag]
        yield f"{mark} {meaning}"
    refused: dict[str, dict[str, None]] = {}
    for _, title, cell in found:
        if cell.refusal:
            refused.setdefault(cell.refusal, {})[title] = None
    for reason, titles in refused.items():
        yield f"Published figures of another thing are not shown: {', '.join(titles)}: {reason}."


def _differences(shown: list[Found]) -> Iterator[str]:
    """Yield what the whole table has, what some rows have, and in one text what columns have."""
    columns: dict[str, None] = {}
    for difference in dict.fromkeys(difference for _, _, cell in shown for difference in cell.differences):
        having = [each for each in shown if difference in each[2].differences]
        if difference.of == "column":
            columns |= dict.fromkeys(f"{title}: {difference.text}" for _, title, _ in having)
            continue
        everywhere, here = (dict.fromkeys(row.variant for row, _, _ in some) for some in (shown, having))
        yield difference.text + ("" if len(here) == len(everywhere) else f": {', '.join(here)}")
    if columns:
        yield "; ".join(columns)
