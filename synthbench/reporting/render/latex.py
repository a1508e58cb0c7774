"""Render tables and sections as LaTeX, with numbers aligned by siunitx."""

import math
from collections.abc import Iterable, Iterator, Sequence

from synthbench.base.patterns import linear_pattern
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.sections import Block, Grid, Line, ReportSection, each_once
from synthbench.reporting.model.table import MISSING, SHOWS, Cell, Group, Row, Table
from synthbench.reporting.render.latex_floats import (
    FONT_SIZE,
    LINE_HEIGHT,
    MACRO,
    NOTE_SIZE,
    ORIGIN,
    Floats,
    Typeset,
    chunks,
    fits,
    split,
)
from synthbench.reporting.render.latex_text import escape, estimated_width
from synthbench.reporting.report import Report

NUMBER = linear_pattern(r"^-?\d+(\.\d+)?")
_NOT_IN_LABELS = linear_pattern(r"[^A-Za-z0-9:._-]+")
RULES = (r"\midrule", r"\cmidrule")
BOTTOM = (r"\bottomrule", r"\end{tabular}")
BELOW = "Below the tables"
"""The title of the notes that do not fit below their table."""
PADDING = 8.0
"""Points between two columns."""


def latex_table(table: Table, analysis: Analysis) -> str:
    """Return the table of scores for \\input, as floats that are as wide as one column or as the page."""
    floats = floats_of(analysis)
    lines = [ORIGIN, _pointer(floats), MACRO]
    return "\n".join([*lines, *floats.lines(table.caption, _table_parts(table), table.first_notes)]) + "\n"


def latex_section(section: ReportSection, analysis: Analysis) -> str:
    """Return the floats of each block with grids; the first block's floats carry the section's notes.

    A block without grids becomes a comment.
    """
    floats = floats_of(analysis, section.name)
    lines, notes = [ORIGIN, _pointer(floats_of(analysis)), MACRO], section.first_notes
    for number, block in enumerate(section.blocks, start=1):
        if block.grids:
            of_block = floats.named(number) if section.is_numbered else floats
            below = [(note,) for note in (*block.first_notes, *notes)]
            *earlier, last = _block_floats(block)
            for part, (caption, typeset) in enumerate([*earlier, last]):
                of_part = of_block.named(part + 1) if part else of_block
                lines += of_part.lines(caption, typeset, below if part == len(earlier) else ())
            notes = ()
        else:
            lines.append(f"% {escape(block.title)}")
    return "\n".join(lines) + "\n"


def latex_notes(report: Report) -> str:
    """Return a subsection with row descriptions and notes that stand below no table; "" if there are none."""
    shows = [f"{name}: {text}" for name, text in report.table.shows]
    parts = each_once({BELOW: list(_without_room(report)), SHOWS: shows, **report.further_notes})
    if not parts:
        return ""
    title = rf"\subsection{{Notes on {escape(report.result.experiment)}}}"
    lines = [ORIGIN, rf"{title}\label{{{_notes_label(floats_of(report.analysis))}}}"]
    for part, notes in parts.items():
        lines += [rf"\paragraph{{{escape(part)}}}", r"\begin{itemize}"]
        # LaTeX would take a bracket after \item as its argument; `escape` leaves none.
        lines += [*(rf"\item {escape(note)}" for note in notes), r"\end{itemize}"]
    return "\n".join(lines) + "\n"


def _without_room(report: Report) -> Iterator[str]:
    """Yield the notes that were meant to stand below their table, but found no room there."""
    if report.table.columns:
        text = latex_table(report.table, report.analysis)
        sentences = (sentence for note in report.table.first_notes for sentence in note)
        yield from (sentence for sentence in sentences if escape(sentence) not in text)
    for section in report.sections:
        if section.blocks:
            text = latex_section(section, report.analysis)
            notes = (*(note for block in section.blocks for note in block.first_notes), *section.first_notes)
            yield from (note for note in notes if escape(note) not in text)


def floats_of(analysis: Analysis, file: str = "") -> Floats:
    """Return the `Floats` for a file of the report; `file` is "" for the table of scores."""
    options = analysis.options.latex
    label = options.label or "tab:" + _NOT_IN_LABELS.sub("-", analysis.result.experiment)
    return Floats(options, f"{label}-{file}" if file else label)


def _notes_label(floats: Floats) -> str:
    return f"sec:{floats.label.removeprefix('tab:')}-notes"


def _pointer(floats: Floats) -> str:
    return rf"% Further notes: \input notes.tex, and cite \ref{{{_notes_label(floats)}}}."


def _table_parts(table: Table) -> list[Typeset]:
    """Return the table, split where it is too wide or too long for a float."""
    names = _name_widths(table)
    widths = [_column_width(table, index) for index in range(len(table.columns))]
    return [
        part
        for chosen in chunks(sum(names), widths)
        for part in _parts_of(table.with_columns(chosen), sum(names) + sum(widths[i] for i in chosen))
    ]


def _parts_of(table: Table, width: float) -> Iterator[Typeset]:
    columns = "".join(
        rf"S[table-format={_number_format(table, index)}]@{{\,}}l" for index in range(len(table.columns))
    )
    titles = [rf"\multicolumn{{2}}{{c}}{{{escape(column.heading)}}}" for column in table.columns]
    names = table.header[: len(table.axes) + 1]
    top = _top("l" * len(names) + columns, [*map(escape, names), *titles])
    body = [line for group in table.groups for line in (r"\midrule", *_group_lines(table, group))][1:]
    yield from (_content([*top, *part, *BOTTOM], width) for part in split(body, width, RULES))


def _name_widths(table: Table) -> list[float]:
    lines = (table.header[: len(table.axes) + 1], *map(table.row_names, table.rows))
    return [_widest(texts) for texts in zip(*lines, strict=True)]


def _column_width(table: Table, index: int) -> float:
    cells = (f"{table.mean_text(cell)} ± {table.spread_text(cell)}" for cell in table.cells(index))
    published = (row.published_line[index + 1] for row in table.rows if row.published_line)
    widths = (estimated_width(text, NOTE_SIZE) for text in (*cells, *published))
    return max(_widest((table.columns[index].heading,)), *(width + PADDING for width in widths), 0.0)


def _widest(texts: Iterable[str]) -> float:
    return max(estimated_width(text, FONT_SIZE) for text in texts) + PADDING


def _content(lines: Sequence[str], width: float) -> Typeset:
    """Return a tabular with its height; the four lines for environment and rules count as 1.5 lines."""
    return Typeset(lines, width, LINE_HEIGHT * (len(lines) - 2.5))


def _block_floats(block: Block) -> Iterator[tuple[str, list[Typeset]]]:
    """Yield caption and parts of each float; grids share a float as long as they fit below each other."""
    caption, parts = block.heading(block.grids[0]), _grid_parts(block.grids[0])
    stack = [parts.pop()]
    for grid in block.grids[1:]:
        between = rf"\\[\medskipamount] {escape(grid.title)} \\[\smallskipamount]"
        of_grid = _grid_parts(grid)
        below = [
            Typeset([between, *each.lines], each.width, each.height + 3 * LINE_HEIGHT) for each in of_grid
        ]
        if fits(_stacked([*stack, *below])):
            stack += below
        else:
            yield caption, [*parts, _stacked(stack)]
            caption = f"{block.title}: {grid.title}"
            parts, stack = of_grid[:-1], of_grid[-1:]
    yield caption, [*parts, _stacked(stack)]


def _stacked(grids: Sequence[Typeset]) -> Typeset:
    """Return grids below each other in a table of one column."""
    if len(grids) == 1:
        return grids[0]
    lines = [r"\begin{tabular}{@{}c@{}}", *(line for each in grids for line in each.lines), r"\end{tabular}"]
    return Typeset(lines, max(each.width for each in grids), sum(each.height for each in grids))


def _grid_parts(grid: Grid) -> list[Typeset]:
    lines = (grid.header, *grid.body, *grid.foot)
    names, *widths = (_widest(texts) for texts in zip(*lines, strict=True))
    return [part for chosen in chunks(names, widths) for part in _columns_of(grid, chosen, (names, widths))]


def _columns_of(grid: Grid, chosen: range, widths: tuple[float, Sequence[float]]) -> Iterator[Typeset]:
    def texts(cells: Line) -> list[str]:
        return [escape(cells[0]), *(escape(cells[index + 1]) for index in chosen)]

    width = widths[0] + sum(widths[1][index] for index in chosen)
    top = _top("l" + "r" * len(chosen), texts(grid.header))
    foot = [r"\midrule", *(_line(texts(line)) for line in grid.foot)] if grid.foot else []
    body = [*(_line(texts(line)) for line in grid.body), *foot]
    yield from (_content([*top, *part, *BOTTOM], width) for part in split(body, width, RULES))


def _top(columns: str, header: Iterable[str]) -> list[str]:
    return [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _line(header), r"\midrule"]


def _group_lines(table: Table, group: Group) -> list[str]:
    lines: list[str] = []
    for block in group.blocks:
        if lines:
            lines.append(rf"\cmidrule{{{len(table.axes) + 1}-{len(table.header) + len(table.columns)}}}")
        for row in block:
            lines.append(_row_line(table, row, repeats_axes=bool(lines)))
            if row.published_line:
                lines.append(_published_line(table, row))
    return lines


def _row_line(table: Table, row: Row, *, repeats_axes: bool) -> str:
    *axes, label = table.row_names(row)
    shown = [""] * len(axes) if repeats_axes else [escape(value) for value in axes]
    return _line([*shown, escape(label), *(text for cell in row.cells for text in _cell_texts(table, cell))])


def _published_line(table: Table, row: Row) -> str:
    label, *texts = row.published_line
    cells = [text for published in texts for text in _published_texts(published)]
    return _line([*[""] * len(table.axes), rf"\quad {{\footnotesize\itshape {escape(label)}}}", *cells])


def _published_texts(published: str) -> tuple[str, str]:
    """Return a published value's texts for two columns: the number, and what follows."""
    if not published:
        return "", ""
    found = NUMBER.match(published)
    number, rest = (found[0], published[found.end() :].strip()) if found else ("", published)
    font = r"\footnotesize\itshape "
    return font + number if number else "", font + escape(rest) if rest else ""


def _cell_texts(table: Table, cell: Cell | None) -> tuple[str, str]:
    """Return a cell's texts for two columns: the mean, and its ± and number of seeds."""
    if cell is None:
        return f"{{{escape(MISSING)}}}", ""
    mean = table.mean_text(cell) if math.isfinite(cell.mean) else f"{{{table.mean_text(cell)}}}"
    spread = rf"$\pm$ {table.spread_text(cell)}" if table.spread_text(cell) else ""
    behind = " ".join(filter(None, (spread, escape(table.seeds_text(cell)))))
    return (r"\bfseries " if cell.is_bold else "") + mean, rf"{{\scriptsize {behind}}}" if behind else ""


def _number_format(table: Table, index: int) -> str:
    """Return a column's number format for siunitx: digits before and after the decimal point."""
    ours = [table.mean_text(cell) for cell in table.cells(index) if math.isfinite(cell.mean)]
    published = [row.published_line[index + 1] for row in table.rows if row.published_line]
    numbers = [found[0] for text in (*ours, *published) if (found := NUMBER.match(text))] or ["0"]
    whole = max(len(number.partition(".")[0].lstrip("-")) for number in numbers)
    decimals = max(len(number.partition(".")[2]) for number in numbers)
    sign = "-" if any(number.startswith("-") for number in numbers) else ""
    return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
