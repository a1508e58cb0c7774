"""The forest plot in LaTeX, drawn by its own picture commands, which need no package."""

from collections.abc import Iterator

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.forest import Forest, ForestLine
from synthbench.reporting.model.world_warning import world_warning
from synthbench.reporting.render.latex import floats_of
from synthbench.reporting.render.latex_floats import (
    FONT_SIZE,
    LINE_HEIGHT,
    MACRO,
    MOST_LINES,
    ORIGIN,
    Typeset,
)
from synthbench.reporting.render.latex_text import escape, estimated_width

TRACK = 90.0
"""The width of the plot itself, in points."""


def latex_forest(forest: Forest, analysis: Analysis) -> str:
    """Return the plot as a float for \\input: names, intervals, and numbers."""
    shown = forest.cut(MOST_LINES)
    lines = [r"\begin{tabular}{lcl}", *_lines(shown), r"\end{tabular}"]
    names = max(estimated_width(each.name, FONT_SIZE) for each in shown.lines)
    texts = max(estimated_width(each.text, FONT_SIZE) for each in shown.lines)
    content = Typeset(lines, names + TRACK + texts, LINE_HEIGHT * (len(lines) - 2))
    floats = floats_of(analysis, "forest").figures
    notes = [(note,) for note in (*world_warning(analysis.result), shown.more) if note]
    return "\n".join([ORIGIN, MACRO, *floats.lines(f"{shown.title}.", [content], notes)]) + "\n"


def _lines(forest: Forest) -> Iterator[str]:
    for title, lines in forest.groups:
        if title:
            yield rf"\multicolumn{{3}}{{l}}{{\bfseries {escape(title)}}} \\"
        for each in lines:
            font = r"\bfseries " if each.direction else ""
            yield rf"{escape(each.name)} & {_track(forest, each)} & {font}{escape(each.text)} \\"
    yield rf" & {_axis(forest)} & \\"


def _track(forest: Forest, line: ForestLine) -> str:
    zero, low, high, value = (_at(forest, each) for each in (0.0, line.low, line.high, line.value))
    circle = r"\circle*{4}" if line.direction else r"\circle{4}"
    drawn = [rf"\put({zero},-4){{\line(0,1){{12}}}}"]
    if line.is_tested:
        drawn.append(rf"\linethickness{{1pt}}\put({low},2.5){{\line(1,0){{{high - low:.1f}}}}}")
    return _picture(*drawn, rf"\put({value},2.5){{{circle}}}")


def _axis(forest: Forest) -> str:
    """Return the scale: its ends, and 0 unless it is close to one of them."""
    ends = dict(zip((0.0, TRACK), forest.ends, strict=True))
    zero = _at(forest, 0.0)
    places = {**ends, **({zero: "0"} if min(zero, TRACK - zero) > TRACK / 4 else {})}
    labels = (rf"\put({at},0){{\makebox(0,6){{\scriptsize {escape(text)}}}}}" for at, text in places.items())
    return _picture(rf"\put(0,7){{\line(1,0){{{TRACK:g}}}}}", *labels)


def _picture(*drawn: str) -> str:
    return rf"\setlength{{\unitlength}}{{1pt}}\begin{{picture}}({TRACK:g},8){''.join(drawn)}\end{{picture}}"


def _at(forest: Forest, value: float) -> float:
    return round(TRACK * forest.share(value), 1)
