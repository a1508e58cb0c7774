"""The page of a recommendation, as HTML and Markdown, with a figure of dev scores against data."""

from collections.abc import Iterator
from pathlib import Path

from synthbench.base.escaping import markdown_text
from synthbench.base.templates import templates_in
from synthbench.recommending.outcome import Measured, Recommendation
from synthbench.reporting.figures.curves import Curve, Curves, Point
from synthbench.reporting.figures.style import figure_files, figure_style, image_address
from synthbench.reporting.files import place_report
from synthbench.reporting.model.sections import Block, CsvTable, Grid, ReportSection
from synthbench.reporting.model.table import csv_numbers
from synthbench.reporting.render.csv_files import csv_text
from synthbench.reporting.render.html.page import TEMPLATES
from synthbench.reporting.render.markdown import markdown_section

NAME = "recommendation"
_FIELDS = ("recipe", "amount", "of", "mean", "low", "high", "sd", "n_seeds", "usd", "dropped")


def write_page(found: Recommendation, output: Path) -> Path:
    """Write the page into a folder beside the phases' reports and return the HTML file's path.

    Files that people edited are kept under a new name. Raises UserError if the folder can't be written.
    """
    folder = output / f"{found.name}-{NAME}"
    place_report(dict(_files(found)), folder)
    return folder / f"{NAME}.html"


def _files(found: Recommendation) -> Iterator[tuple[str, bytes]]:
    yield f"{NAME}.md", markdown_page(found).encode()
    yield f"{NAME}.csv", csv_text(CsvTable(_FIELDS, list(_csv_lines(found)))).encode()
    with figure_style():
        figure = _curves(found).draw()
        files = figure_files("curves", figure)
        yield from files.items()
        yield f"{NAME}.html", html_page(found, image_address(figure, files["curves.png"])).encode()


def markdown_page(found: Recommendation) -> str:
    """Return the page as Markdown; its first line is the answer."""
    paragraphs = [found.answer, found.more, found.spent, *found.notes]
    model = f"The model: `{found.export}` (`{found.files[-1]}`)"
    section = ReportSection(NAME, CsvTable((), ()), tuple(_blocks(found)))
    phases = [f"- {phase}: `{folder}`" for phase, folder in found.reports.items()]
    texts = [*map(markdown_text, paragraphs), model, markdown_section(section).rstrip(), "\n".join(phases)]
    return "\n\n".join(texts) + "\n"


def html_page(found: Recommendation, picture: str) -> str:
    """Return the page as HTML that needs no other file; `picture` is the figure's `data:` URL."""
    template = templates_in("recommending", TEMPLATES).get_template("page.html.jinja")
    return template.render(found=found, blocks=tuple(_blocks(found)), picture=picture)


def _blocks(found: Recommendation) -> Iterator[Block]:
    header = ("recipe", "data", "dev score", "dollars", "dropped because")
    yield Block("Measured, best on dev first", (Grid(header, tuple(map(_line, found.measured))),))
    if found.left_out:
        yield Block("Not measured", (Grid(("recipe", "why"), tuple(found.left_out.items())),))


def _line(each: Measured) -> tuple[str, ...]:
    cell = each.scores[-1][1]
    reach = "" if cell.half_width is None else f" ± {cell.half_width:.1f}"
    return each.recipe, each.data, f"{cell.mean:.1f}{reach}", f"{each.usd:,.2f}", each.dropped


def _csv_lines(found: Recommendation) -> Iterator[list[object]]:
    for each in found.measured:
        for amount, cell in each.scores:
            usd = f"{each.usd:.6f}" if amount == each.amount else ""
            yield [each.recipe, amount, each.reads, *csv_numbers(cell), usd, each.dropped]


def _curves(found: Recommendation) -> Curves:
    lines = tuple(
        Curve(each.recipe, tuple(Point(amount, cell) for amount, cell in each.scores))
        for each in found.measured
    )
    what = " or ".join(dict.fromkeys(each.reads for each in found.measured if each.reads)) or "records"
    return Curves("Dev scores against the amount of data", what, (("dev", lines),), ())
