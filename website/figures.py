"""Fill figures into pages from the tables of committed reports, and find figures that name no source.

A comment after a figure, invisible when rendered, names report and cell. The values are filled in; decimals
and signs stay as written, and a difference without a sign must be positive:

    42.8 ± 0.2<!-- augsbert_redrawn: gold-only [base=glove], STSb-500 -->  mean and standard deviation
    2.2 (1.1 to 3.2, p 0.002)<!-- bm25 - gold-only, STSb-500 -->  difference, 95 % interval, adjusted p
    1.2<!-- bm25 - gold-only [size=500], STSb: seeds low -->      one field; "seeds": over seeds alone
    0.9 to 1.7<!-- range: {bm25;kde} - gold-only, STSb -->        least and greatest of several
    1.72<!-- least STSb -->                                       minimum detectable difference
    1,762<!-- densities.csv: panel=STSb-500, data=kde: n_records -->

`<!-- figures of REPORT -->` names the report of all figures below. `<!-- rows: A | B; columns: X | Y -->`
before a table stands for "A, X" and so on in its last columns. A column may be "[size=500], X" or
"REPORT: X"; "-" leaves out a row or column.

Other figures say what they are: `<!-- setting -->`, `<!-- paper: CITATION -->`,
`<!-- measured: COMMAND, DATE -->`, each after a number or, in a line of its own, before a paragraph, list or
table.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("setting", "paper: ", "measured: ")
"""What a figure may be that no report holds."""
_NUMBER = r"[+−-]?\d[\d,]*(?:\.\d+)?"
_P = r"(?:[<=] )?\d*\.\d+"
_FIGURE = (
    rf"(?:(?P<value>(?:< )?{_NUMBER})(?:\s+±\s+(?P<sd>{_NUMBER}))?(?:\s?%)?"
    rf"(?:(?:\s+points?)?(?:\s+on\s+average)?\s+\((?:(?P<low>{_NUMBER})\s+to\s+(?P<high>{_NUMBER}))?"
    rf"(?:(?:,\s+)?p\s+(?P<p>{_P}))?\))?(?:,\s+p\s+(?P<p_after>{_P}))?"
    rf"|(?P<least>{_NUMBER})\s+to\s+(?P<most>{_NUMBER})|p\s+(?P<p_alone>{_P}))"
)
_MARKED = re.compile(
    rf"(?<![\w.,±+−-])(?<!\d to ){_FIGURE}(?P<bold>\*{{0,2}})<!-- (?P<spec>(?!figures of)[^>]+?) -->"
)
_CELL = re.compile(rf"(?P<before>\**){_FIGURE}(?P<after>\**(?: \*)?)")
_REPORT = re.compile(r"<!-- figures of (\S+) -->")
_ROWS = re.compile(
    r"<!-- rows: (?P<rows>[^;>]+); columns: (?P<columns>[^>]+?) -->\n\n?(?P<table>(?:\|.*\n)+)"
)
_COVERED = re.compile(rf"^ *<!-- (?:{'|'.join(KINDS)})[^>]*-->\n\n?(?:.+\n)+", re.MULTILINE)
_NO_PROSE = re.compile(
    r"<!-- (?:keys|names|reports) of .*?<!-- end -->|```.*?```|`[^`]*`|\]\([^)]*\)|^ {4,}\S[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_LIKE_A_RESULT = re.compile(
    rf"(?<![\w.])(?<![A-Za-z]-)[+−-]?\d[\d,]*\.\d+(?![\w.]*[A-Za-z])"
    rf"|{_NUMBER}(?= points?\b)|± {_NUMBER}|{_NUMBER} ?%"
)
_ORDINARY = re.compile(r"95 %(?= (?:confidence )?interval)|\b5 %|80 % power|100 %")


class FigureError(Exception):
    """A marker that names no cell, or a figure that does not fit what it names."""


@dataclass(frozen=True)
class Reports:
    """The tables of the reports in a folder."""

    folder: Path
    _read: dict[Path, list[dict[str, str]]] = field(default_factory=dict)

    def lines(self, report: str, file: str) -> list[dict[str, str]]:
        """Return the lines of a report's CSV file."""
        path = self.folder / report / file
        if path not in self._read:
            if not path.is_file():
                raise FigureError(f"no file {path.relative_to(self.folder.parent)}")
            with path.open(encoding="utf-8", newline="") as stream:
                self._read[path] = list(csv.DictReader(stream))
        return self._read[path]

    def line(self, report: str, file: str, **wanted: str) -> dict[str, str]:
        """Return the only line with these values."""
        found = [
            line
            for line in self.lines(report, file)
            if all(_same(line.get(key), value) for key, value in wanted.items())
        ]
        if len(found) != 1:
            raise FigureError(f"{report}/{file} has {len(found) or 'no'} lines with {wanted}")
        return found[0]

    def value(self, report: str, file: str, name: str, **wanted: str) -> float:
        """Return the only value of a column in the lines with these values."""
        lines = (
            line
            for line in self.lines(report, file)
            if all(_same(line.get(key), value) for key, value in wanted.items())
        )
        found = {line.get(name, "") for line in lines} - {""}
        if len(found) != 1:
            raise FigureError(f"{report}/{file} has {len(found) or 'no'} values of {name} with {wanted}")
        return float(*found)

    def least(self, report: str, column: str, *, over_items: bool) -> float:
        """Return a column's minimum detectable difference, which comparisons.md states."""
        for line in (self.folder / report / "comparisons.md").read_text(encoding="utf-8").splitlines():
            if "inimum detectable difference with" in line or "cannot be relied on to be seen" in line:
                seeds, _, items = line.partition("; ")
                name = re.escape(column)
                found = re.search(rf"([\d.]+) \({name}\)", items if over_items else seeds)
                if found:
                    return float(found[1])
        raise FigureError(f"{report}/comparisons.md has no minimum detectable difference for {column}")


Values = Mapping[str, float]


def filled(text: str, reports: Reports) -> str:
    """Return a page with all marked figures as the reports have them; raises FigureError."""
    return "".join(_pieces(text, reports))


def _pieces(text: str, reports: Reports) -> Iterator[str]:
    parts = _REPORT.split(text)
    yield _filled_part(parts[0], "", reports)
    for report, part in zip(parts[1::2], parts[2::2], strict=True):
        yield f"<!-- figures of {report} -->{_filled_part(part, report, reports)}"


def _filled_part(text: str, report: str, reports: Reports) -> str:
    def of_marker(found: re.Match[str]) -> str:
        if found["spec"].startswith(KINDS):
            return found[0]
        return _with_values(found, found["spec"], report, reports)

    def of_table(found: re.Match[str]) -> str:
        table = "".join(_filled_table(found, report, reports))
        return f"{found[0].removesuffix(found['table'])}{table}"

    return _MARKED.sub(of_marker, _ROWS.sub(of_table, text))


def _filled_table(found: re.Match[str], report: str, reports: Reports) -> Iterator[str]:
    """Yield the lines of a table whose marker names the rows and the last columns."""
    rows, columns = ([each.strip() for each in found[part].split("|")] for part in ("rows", "columns"))
    head, rule, *body = found["table"].splitlines(keepends=True)
    if len(body) != len(rows):
        raise FigureError(f"{len(rows)} rows are named for a table of {len(body)}: {found['rows']}")
    yield from (head, rule)
    for row, line in zip(rows, body, strict=True):
        cells = line.rstrip("\n").strip("|").split("|")
        for index, column in enumerate(columns, start=len(cells) - len(columns)):
            written = cells[index].strip()
            cell = _CELL.fullmatch(written)
            if "-" in (row, column) or cell is None:
                continue
            fresh = _with_values(cell, _joined(row, column, reports), report, reports)
            cells[index] = cells[index].replace(written, fresh)
        yield f"|{'|'.join(cells)}|\n"


def _joined(row: str, column: str, reports: Reports) -> str:
    """Return the marker of a cell: "ROW, X" for the column "X", "ROW [a=1], X" for "[a=1], X"."""
    head, _, rest = column.partition(": ")
    if rest and (reports.folder / head).is_dir():
        return f"{head}: {_joined(row, rest, reports)}"
    return f"{row} {column}" if column.startswith("[") else f"{row}, {column}"


def _with_values(found: re.Match[str], spec: str, report: str, reports: Reports) -> str:
    """Return the matched text with the values that its marker names."""
    try:
        values = _values(spec, report, reports)
        fresh = dict(_formatted(found, values))
    except FigureError as error:
        raise FigureError(f"{found[0]}: {error}") from None
    text, start = found[0], found.start()
    for name in sorted(fresh, key=lambda name: -found.start(name)):
        text = text[: found.start(name) - start] + fresh[name] + text[found.end(name) - start :]
    return text


_NO_FIGURES = ("spec", "before", "after", "bold")
_FIELDS = {"least": "low", "most": "high", "p_after": "p", "p_alone": "p"}


def _formatted(found: re.Match[str], values: Values) -> Iterator[tuple[str, str]]:
    """Yield each number of a figure, by the name of its group, as it should read."""
    groups = {name: text for name, text in found.groupdict().items() if text and name not in _NO_FIGURES}
    is_signed = any(text.startswith(("+", "−", "-")) for name, text in groups.items() if name == "value")
    is_signed |= any(text.startswith("+") for text in groups.values())
    for name, text in groups.items():
        what = _FIELDS.get(name, name)
        if what not in values:
            raise FigureError(f"its source has no {what}")
        value = values[what]
        if what == "p" or "only_p" in values:
            yield name, _p_text(value, text)
            continue
        if name == "value" and not is_signed and round(value, _decimals(text)) < 0:
            raise FigureError(f"is {value:.3f}, but has no sign: turn the sentence or the marker round")
        yield name, _text(value, text, is_signed=is_signed and name != "sd")


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _text(value: float, like: str, *, is_signed: bool) -> str:
    digits = f"{abs(value):,.{_decimals(like)}f}"
    if not digits.strip("0.,"):
        return digits
    return f"{'−' if value < 0 else '+' if is_signed else ''}{digits}"


def _p_text(value: float, like: str) -> str:
    decimals = _decimals(like)
    if value < 10.0**-decimals:
        return f"< {10.0**-decimals:.{decimals}f}"
    return f"{'= ' if like.startswith('=') else ''}{value:.{decimals}f}"


def _values(spec: str, report: str, reports: Reports) -> Values:
    """Return what a marker names: "value", and where known "sd", "low", "high" and "p"."""
    head, colon, rest = " ".join(spec.split()).partition(": ")
    if colon and (reports.folder / head).is_dir():
        return _values(rest, head, reports)
    if not report:
        raise FigureError(f"'{spec}' names no report of {reports.folder.name}/")
    if head == "range":
        each = [_values(one, report, reports)["value"] for one in _alternatives(rest)]
        return {"low": min(each), "high": max(each)}
    if spec.startswith("least "):
        column = spec.removeprefix("least ").removesuffix(": seeds")
        return {"value": reports.least(report, column, over_items=not spec.endswith(": seeds"))}
    if head.endswith(".csv"):
        keys, _, name = rest.rpartition(": ")
        wanted = dict(pair.strip().split("=", 1) for pair in keys.split(", "))
        return {"value": reports.value(report, head, name, **wanted)}
    cell, _, fields = spec.partition(": ")
    return _of_cell(cell, fields.split(), report, reports)


def _alternatives(spec: str) -> Iterator[str]:
    """Yield a marker once for each combination of its alternatives: "{a;b}, X" is "a, X" and "b, X".

    A vertical bar would end the cell of a table.
    """
    before, brace, rest = spec.partition("{")
    if not brace:
        yield spec
        return
    inside, _, after = rest.partition("}")
    for one in inside.split(";"):
        yield from _alternatives(f"{before}{one}{after}")


def _of_cell(cell: str, fields: list[str], report: str, reports: Reports) -> Values:
    named, comma, column = cell.rpartition(", ")
    if not comma:
        raise FigureError(f"'{cell}' is not ROW, COLUMN or ROW - OTHER, COLUMN")
    rows, _, axis = named.partition(" [")
    row, _, other = rows.partition(" - ")
    at = {"axis": axis.rstrip("]"), "column": column}
    if not other:
        line = reports.line(report, "table.csv", row=row, **at)
        found = {"value": line["mean"], "sd": line["sd"], "n": line["n_items"]}
        values = {name: float(text) for name, text in found.items() if text}
        if line.get("published"):
            values["behind"] = float(line["published"]) - values["value"]
    else:
        values = _of_comparison(row, other, at, report, reports, is_over_seeds="seeds" in fields)
    for name in fields:
        if name != "seeds":
            if name not in values:
                raise FigureError(f"{report} has no {name} for '{cell}'")
            values = {"value": values[name]} | ({"p": values[name], "only_p": 1.0} if name == "p" else {})
    return values


def _of_comparison(
    row: str, other: str, at: Mapping[str, str], report: str, reports: Reports, *, is_over_seeds: bool
) -> dict[str, float]:
    """Return a comparison by its family, else over seeds and items, else over seeds.

    Turned round if the report has it so. Without such a comparison, the difference of the means.
    """
    for sign, ours, theirs in ((1, row, other), (-1, other, row)):
        try:
            line = reports.line(report, "comparisons.csv", row=ours, against=theirs, **at)
        except FigureError:
            continue
        names = {"g": "effect_size"}
        if line["family_p"] and not is_over_seeds:
            # Only what a family tests has a p value; exploratory intervals have none.
            noise, names["p"] = "family", "family_p"
        else:
            noise = "seeds" if is_over_seeds or not line["items_low"] else "items"
        names |= {"low": f"{noise}_low", "high": f"{noise}_high"}
        found = {"value": sign * float(line["difference"])}
        found |= {name: float(line[key]) for name, key in names.items() if line[key]}
        if sign < 0 and "low" in found:
            found["low"], found["high"] = -found["high"], -found["low"]
        return found
    means = [
        float(reports.line(report, "table.csv", row=name, **_shown_once(name, at, report, reports))["mean"])
        for name in (row, other)
    ]
    return {"value": means[0] - means[1]}


def _shown_once(row: str, at: Mapping[str, str], report: str, reports: Reports) -> Mapping[str, str]:
    """Return the coordinates of a row, which a table may show once for all points of a grid."""
    is_once = any(line["row"] == row and not line["axis"] for line in reports.lines(report, "table.csv"))
    return {**at, "axis": ""} if is_once else at


def _same(actual: str | None, wanted: str) -> bool:
    return actual is not None and actual.replace("; ", ", ") == wanted


def unsourced(text: str) -> list[str]:
    """Return the figures of a page that look like results and name no source."""

    def without_cells(found: re.Match[str]) -> str:
        rows, columns = ([each.strip() for each in found[part].split("|")] for part in ("rows", "columns"))
        head, rule, *body = found["table"].splitlines()
        for number, (row, line) in enumerate(zip(rows, body, strict=True)):
            cells = line.strip("|").split("|")
            for index, column in enumerate(columns, start=len(cells) - len(columns)):
                cells[index] = cells[index] if "-" in (row, column) else ""
            body[number] = "|".join(cells)
        return "\n".join((head, rule, *body))

    for pattern in (_NO_PROSE, _COVERED):
        text = pattern.sub(" ", text)
    text = _MARKED.sub(" ", _ROWS.sub(without_cells, text))
    return [found[0] for found in _LIKE_A_RESULT.finditer(_ORDINARY.sub(" ", text))]


@cache
def committed() -> Reports:
    """Return the reports of this repository."""
    return Reports(ROOT / "reports")
