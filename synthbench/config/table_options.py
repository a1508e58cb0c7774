"""The `table` section of an experiment file."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MAX_SENTENCE = 200  # characters


def _listed(value: Any) -> Any:  # noqa: ANN401 - any value of the file
    return (value,) if isinstance(value, str) else value


def _compared_with_all(value: Any) -> Any:  # noqa: ANN401 - any value of the file
    return {value: ()} if isinstance(value, str) else value


def _sentence(text: str) -> str:
    if not text.strip() or len(text.splitlines()) > 1:
        raise ValueError("must be a sentence on one line")
    if len(text) > MAX_SENTENCE:
        raise ValueError(f"has {len(text)} characters; at most {MAX_SENTENCE}, what is longer is a note")
    return text


FEWEST_SEEDS = 3
"""Seeds that `early_dev` needs to rank them."""
Names = Annotated[tuple[str, ...], Field(strict=False)]
NameOrNames = Annotated[Names, BeforeValidator(_listed)]
CostKind = Literal["dollars", "tokens", "seconds", "total"]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PublishedOptions(_Options):
    """`table.published`: a paper's table whose values are shown beside ours."""

    file: Annotated[NameOrNames, Field(min_length=1)] = Field(
        description="the published table, a CSV, or several; relative to the experiment file"
    )
    encoder: str | None = Field(
        None, description="only rows with this encoder, where the paper has a row for several; null: any"
    )
    encoders: Mapping[str, str] = Field(
        default_factory=dict,
        description="value of a grid axis -> the encoder of its published rows, where the grid has several;"
        " rows at other values have none",
    )
    rows: Mapping[str, str] = Field(min_length=1, description="variant -> the published row")
    columns: Mapping[str, str] = Field(
        default_factory=dict,
        description="test set or average -> the published column, if it has another name",
    )

    @model_validator(mode="after")
    def _names_encoders_once(self) -> Self:
        if self.encoder is not None and self.encoders:
            raise ValueError(
                "`encoder`, of all rows, and `encoders`, of the grid's values, exclude each other"
            )
        return self

    def encoder_at(self, values: Iterable[str]) -> str | None:
        """Return the encoder of the published rows at these values of the grid; None: any."""
        if not self.encoders:
            return self.encoder
        return next((self.encoders[value] for value in values if value in self.encoders), "")


class PublishedCosts(_Options):
    """`table.costs`: what a paper paid for a sentence, beside what we did."""

    file: str = Field(min_length=1, description="the published table, a CSV; relative to the experiment file")
    row: str = Field(min_length=1, description="its row")
    columns: Mapping[str, Annotated[Names, Field(min_length=1)]] = Field(
        min_length=1,
        description="method, or `all` for all that data took -> the published columns, which are added up",
    )


class CurvesOptions(_Options):
    """`table.figures.curves`: scores against an amount."""

    axis: str | None = Field(
        None,
        description="axis of the grid along which a line goes; without `records` its values are numbers",
    )
    records: Names = Field(
        (), description="parts of `data` whose records are counted for x; empty: x is the value on `axis`"
    )

    @model_validator(mode="after")
    def _has_amounts(self) -> Self:
        if self.axis is None and not self.records:
            raise ValueError("needs `axis:`, `records:` or both")
        return self


class DensitiesOptions(_Options):
    """`table.figures.densities`: how the scores of pairs are distributed."""

    parts: Annotated[Names, Field(min_length=1)] = Field(
        description="parts of `data`, scored pairs, of which each row gives a line"
    )
    reference: str | None = Field(
        None, description="the part that they are compared with, drawn once; null: compared with none"
    )


class FrontierOptions(_Options):
    """`table.figures.frontier`: the score against what a row cost."""

    costs: Annotated[tuple[CostKind, ...], Field(strict=False), BeforeValidator(_listed)] = Field(
        min_length=1,
        description="`dollars` and `tokens` of LLMs that were asked, `seconds` of computing, `total` dollars"
        " of both: a panel each",
    )
    hour_usd: float | None = Field(
        None, ge=0, description="US dollars for an hour of computing, which `total` needs"
    )
    score: str | None = Field(
        None, description="test set, average or value of `across`; null: the mean of the table's test sets"
    )

    @model_validator(mode="after")
    def _has_a_price_of_computing(self) -> Self:
        if ("total" in self.costs) != (self.hour_usd is not None):
            raise ValueError("costs: [total] and hour_usd go together: the price of an hour of computing")
        return self


class FiguresOptions(_Options):
    """`table.figures`: what is drawn beside the scores."""

    caption: bool = Field(
        default=True,
        description="whether figures hold title and notes; false for papers, which have captions",
    )

    curves: CurvesOptions | None = Field(
        None, description="scores against an amount, with intervals (`curves.*`); null: not drawn"
    )
    densities: DensitiesOptions | None = Field(
        None, description="distributions of the pairs' scores (`densities.*`); null: not drawn"
    )
    early_dev: bool = Field(
        default=False,
        description="how dev scores on the way rank the seeds, against those in the end (`early_dev.*`)",
    )
    frontier: FrontierOptions | None = Field(
        None,
        description="the score against what it cost, the best for its cost joined (`frontier.*`);"
        " null: not drawn",
    )


class LatexOptions(_Options):
    """`table.latex`: how the LaTeX tables are set."""

    label: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9:._-]+$",
        description="of \\label; `comparisons.tex` and the others add their name; null: tab:EXPERIMENT",
    )
    wide: bool = Field(default=False, description="true: `table*`, across both columns of a two-column page")
    notes: Literal["all", "short", "none"] = Field(
        "all",
        description="below the table: all notes; short: only what explains its figures and marks; or none",
    )


class TableOptions(_Options):
    """The `table` section of an experiment file; every field may be left out."""

    across: NameOrNames = Field(
        (),
        description="one axis of the grid, or several, whose values become columns; a row has all of them",
    )
    columns: Names | None = Field(
        None,
        min_length=1,
        description="test sets and averages, in order, and values of `across` (`VALUE`, or `VALUE: TASK`);"
        " null: all test sets",
    )
    averages: Mapping[str, Annotated[Names, Field(min_length=1)]] = Field(
        default_factory=dict,
        max_length=100,
        description="name -> the test sets that this column averages; those not in `columns` come last",
    )
    published: PublishedOptions | None = Field(
        None, description="a paper's figures, printed beside ours; null: none"
    )
    costs: PublishedCosts | None = Field(
        None, description="a paper's US dollars per sentence, printed beside ours; null: none"
    )
    record_usd: Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default_factory=dict,
        max_length=100,
        description="source -> US dollars that each record read from it cost, by people or an LLM asked"
        " elsewhere; part of the frontier's `dollars` and `total`",
    )
    figures: FiguresOptions = Field(FiguresOptions(), description="figures beside that of the scores")
    latex: LatexOptions = Field(LatexOptions(), description="how the LaTeX tables are set")
    compare_to: Annotated[Mapping[str, Names] | None, BeforeValidator(_compared_with_all)] = Field(
        None,
        description="the row that all others are compared with (`comparisons.*`), at the same point of the"
        " grid unless it is shown once for all points; or several, each with a list of the rows compared with"
        " it, [] for all; null: `baseline`",
    )
    shows: Mapping[str, Annotated[str, AfterValidator(_sentence)]] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description=f"row -> a sentence on what it shows, at most {MAX_SENTENCE} characters, listed"
        " below the table",
    )
    notes: Names = Field((), description="what else must be known beside the table, a sentence each")
    caption: str = Field("", description="empty: the experiment's description, or its name")
    ceiling: Names = Field((), description="variants set apart below a rule, never compared with the others")
    decimals: int = Field(2, ge=0, le=6, description="digits behind the point; scores are printed × 100")

    @property
    def kept_axes(self) -> tuple[str, ...]:
        """The axes on which a row has each of its values, though it may be the same for several."""
        curves = self.figures.curves
        along = () if curves is None or curves.axis is None else (curves.axis,)
        return (*self.across, *along)

    @property
    def counted_parts(self) -> frozenset[str]:
        """The parts of the data whose scores are counted for a figure."""
        densities = self.figures.densities
        if densities is None:
            return frozenset()
        return frozenset((*densities.parts, *((densities.reference,) if densities.reference else ())))
