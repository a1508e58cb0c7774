"""Render tables and sections as LaTeX, no larger than a page, with numbers aligned by siunitx."""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from synthbench.base.patterns import linear_pattern
from synthbench.config.table_options import LatexOptions
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import data_notes
from synthbench.reporting.model.sections import Block, Grid, Line, ReportSection
from synthbench.reporting.model.table import MISSING, Cell, Group, Row, Table

_MEANINGS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"\char34{}",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    # After \\, LaTeX would take a bracket as an argument and a star as a variant of the command.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
}
_MATH = {
    "−": "-", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx", "∞": r"\infty",
    "→": r"\rightarrow", "←": r"\leftarrow",
}  # fmt: skip
_LIGATURES = ("-", "'", ",")
_GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
_PUNCTUATION = "–—‘’“”…†‡‰€"
_UNKNOWN = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ"
"""Latin letters and signs that pdflatex's default font lacks."""
_MARKS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0323\u0327"
_ACCENTS = dict(zip(_MARKS, "`'^~=u.\"rHvdc", strict=True))
_BELOW = "\u0323\u0327"


def escape(text: str) -> str:
    """Return LaTeX that prints `text`; characters that LaTeX can't print become their U+ numbers."""
    escaped = "".join(_escape_character(character) for character in unicodedata.normalize("NFC", text))
    for sign in _LIGATURES:
        while sign * 2 in escaped:
            escaped = escaped.replace(sign * 2, f"{sign}{{}}{sign}")
    return escaped


def _escape_character(character: str) -> str:
    if character in _MEANINGS:
        return _MEANINGS[character]
    if character.isspace():
        return " "
    if character.isprintable() and (character.isascii() or _is_in_fonts(character)):
        return character
    if character in _MATH or character in _GREEK:
        return rf"\ensuremath{{{_MATH.get(character) or _greek(character)}}}"
    return _accented(character) or rf"\texttt{{U+{ord(character):04X}}}"


def _is_in_fonts(character: str) -> bool:
    """Return whether LaTeX's default fonts have a character."""
    return character in _PUNCTUATION or ("\u00a1" <= character <= "\u017e" and character not in _UNKNOWN)


def _greek(letter: str) -> str:
    _, size, _, name = unicodedata.name(letter).lower().replace("lamda", "lambda").split()
    return rf"\{name.title() if size == 'capital' else name}"


def _accented(character: str) -> str:
    parts = unicodedata.normalize("NFD", character)
    if len(parts) != 2 or not (parts[0].isascii() and parts[0].isalpha()) or parts[1] not in _ACCENTS:
        return ""
    dotless = parts[0] in "ij" and parts[1] not in _BELOW
    return rf"\{_ACCENTS[parts[1]]}{{{chr(92) if dotless else ''}{parts[0]}}}"


PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper, landscape, margin=15mm]{geometry}
\usepackage{booktabs, graphicx, siunitx}
\begin{document}
"""
ORIGIN = (
    r"% Needs \usepackage{booktabs, graphicx, siunitx}. Written by synthbench; the next run writes it anew."
)
NUMBER = linear_pattern(r"^-?\d+(\.\d+)?")
_NOT_IN_LABELS = linear_pattern(r"[^A-Za-z0-9:._-]+")
FONTS = r"\sisetup{detect-weight=true, detect-shape=true, detect-family=true, mode=text}"
"""Make siunitx use the surrounding font: bold, or italics for published numbers."""
MOST_LINES = 40
"""Maximum of lines per `table` environment, which LaTeX never breaks; longer tables are split."""
RULES = (r"\midrule", r"\cmidrule")
TALLEST = 0.8
"""The share of the page's height that a table may take; the caption needs the rest."""


def latex_table(table: Table, analysis: Analysis) -> str:
    """Return the table of scores as `table` environments for \\input."""
    layout = _layout(analysis)
    columns = "".join(
        rf"S[table-format={_number_format(table, index)}]@{{\,}}l" for index in range(len(table.columns))
    )
    titles = [rf"\multicolumn{{2}}{{c}}{{{escape(column.heading)}}}" for column in table.columns]
    names = table.header[: len(table.axes) + 1]
    top = _top("l" * len(names) + columns, [*map(escape, names), *titles])
    body = [line for group in table.groups for line in (r"\midrule", *_group_lines(table, group))][1:]
    parts = [[FONTS, *_fitted([*top, *part, *BOTTOM])] for part in _split(body)]
    shows = (f"{name}: {text}" for name, text in table.shows)
    notes = table.short_notes if layout.options.notes == "short" else (*shows, *table.notes)
    return "\n".join([ORIGIN, *layout.environments(table.caption, parts, notes)]) + "\n"


def latex_section(section: ReportSection, analysis: Analysis) -> str:
    """Return `table` environments for each block; a block without grids becomes a comment."""
    lines, layout = [ORIGIN], _layout(analysis, section.name)
    for number, block in enumerate(section.blocks, start=1):
        if block.grids:
            of_block = layout.named(number) if section.is_numbered else layout
            notes = (*block.notes, *section.notes, *section.data_notes)
            heading = block.heading(block.grids[0])
            lines += of_block.environments(heading, _block_parts(block), notes)
        else:
            lines.append(f"% {escape(block.title)}")
    return "\n".join(lines) + "\n"


def _block_parts(block: Block) -> list[list[str]]:
    """Return the first grid, split if it is long, with the other grids below its last part."""
    first, *others = block.grids
    *parts, last = _grid_parts(first)
    for grid in others:
        last.append(rf"\par\medskip {escape(grid.title)}\par\smallskip")
        last += [line for part in _grid_parts(grid) for line in part]
    return [*parts, last]


def _grid_parts(grid: Grid) -> list[list[str]]:
    def line(cells: Line) -> str:
        return _line(map(escape, cells))

    foot = [r"\midrule", *map(line, grid.foot)] if grid.foot else []
    top = _top("l" + "r" * (len(grid.header) - 1), map(escape, grid.header))
    return [_fitted([*top, *part, *BOTTOM]) for part in _split([*map(line, grid.body), *foot])]


@dataclass(frozen=True)
class _TableLayout:
    """The layout of a file's tables; with `notes: short`, `data_notes` are left out."""

    options: LatexOptions
    label: str
    data_notes: frozenset[str] = frozenset()

    def named(self, name: object) -> "_TableLayout":
        """Return the layout for one of several tables in a file."""
        return _TableLayout(self.options, f"{self.label}-{name}", self.data_notes)

    def environments(self, caption: str, parts: Sequence[Sequence[str]], notes: Iterable[str]) -> list[str]:
        """Return a `table` environment per part, with notes below the last; none is higher than the page."""
        lines: list[str] = []
        for number, part in enumerate(parts):
            goes_on = " (continued)" if number else ""
            is_last = number == len(parts) - 1
            label = "" if number else rf"\label{{{self.label}}}"
            below = self._listed(notes) if is_last else ()
            lines += self._environment(f"{caption}{goes_on}", label, [*part, *below])
        return lines

    def _environment(self, caption: str, label: str, content: Sequence[str]) -> Iterator[str]:
        name = "table*" if self.options.wide else "table"
        yield rf"\begin{{{name}}}"
        yield from (r"\centering", r"\small", r"\setlength{\tabcolsep}{4pt}")
        # LaTeX's standard classes leave no space between a caption and the table below it.
        yield r"\setlength{\belowcaptionskip}{6pt}"
        yield rf"\caption{{{escape(caption)}}}{label}"
        yield from (r"\sbox{2}{\begin{minipage}{\linewidth}\centering\small", *content, r"\end{minipage}}%")
        yield rf"\ifdim\dimexpr\ht2+\dp2\relax>{TALLEST}\textheight"
        yield rf"\resizebox*{{!}}{{{TALLEST}\textheight}}{{\usebox{{2}}}}\else\usebox{{2}}\fi"
        yield rf"\end{{{name}}}"

    def _listed(self, notes: Iterable[str]) -> list[str]:
        """Return the LaTeX lines of the notes that the layout includes, a line each."""
        left_out = self.data_notes if self.options.notes == "short" else ()
        wanted = () if self.options.notes == "none" else [note for note in notes if note not in left_out]
        listed = r" \\".join(f"\n{escape(note)}" for note in wanted)
        if not listed:
            return []
        start = rf"\begin{{minipage}}{{\linewidth}}\footnotesize{listed}"
        return [r"\par\medskip", start, r"\end{minipage}"]


def _layout(analysis: Analysis, file: str = "") -> _TableLayout:
    """Return the layout of the report's file with that name; "" is the table of scores."""
    options = analysis.options.latex
    label = options.label or "tab:" + _NOT_IN_LABELS.sub("-", analysis.result.experiment)
    return _TableLayout(options, f"{label}-{file}" if file else label, frozenset(data_notes(analysis.result)))


BOTTOM = (r"\bottomrule", r"\end{tabular}")


def _top(columns: str, header: Iterable[str]) -> list[str]:
    return [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _line(header), r"\midrule"]


def _split(lines: Sequence[str]) -> list[Sequence[str]]:
    """Split a table's lines into one or more parts of about equal length."""
    num_parts = max(1, -(-len(lines) // MOST_LINES))
    length = max(1, -(-len(lines) // num_parts))
    parts = [lines[start : start + length] for start in range(0, len(lines), length)] or [lines]
    return [part[1:] if part and part[0].startswith(RULES) else part for part in parts]


def _fitted(tabular: Sequence[str]) -> list[str]:
    """Return the lines of a `tabular`, scaled down if it is wider than the text."""
    *lines, end = tabular
    return [
        r"\sbox{0}{%",
        *lines,
        f"{end}}}%",
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox{0}}\else\usebox{0}\fi",
    ]


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
    """Return a cell's texts for two columns: the mean, and what follows."""
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
