"""The `table` section of an experiment file."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from synthbench.base.frozen import added_field

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
"""Minimum number of seeds for `early_dev`."""
Names = Annotated[tuple[str, ...], Field(strict=False)]
NameOrNames = Annotated[Names, BeforeValidator(_listed)]
CostKind = Literal["dollars", "tokens", "seconds", "total"]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PublishedOptions(_Options):
    """`table.published`: a paper's table, shown beside our results."""

    file: Annotated[NameOrNames, Field(min_length=1)] = Field(
        description="the published table, a CSV, or several; relative to the experiment file"
    )
    encoder: str | None = Field(None, description="use only the paper's rows with this encoder; null: any")
    encoders: Mapping[str, str] = Field(
        default_factory=dict,
        description="grid value -> encoder of its published rows, if the grid has several encoders; no"
        " published figures are shown at other grid values",
    )
    rows: Mapping[str, str] = Field(min_length=1, description="variant -> name of the published row")
    columns: Mapping[str, str] = Field(
        default_factory=dict,
        description="our test set or average -> published column, if their names differ",
    )

    @model_validator(mode="after")
    def _names_encoders_once(self) -> Self:
        if self.encoder is not None and self.encoders:
            raise ValueError(
                "`encoder`, of all rows, and `encoders`, of the grid's values, exclude each other"
            )
        return self

    def encoder_at(self, values: Iterable[str]) -> str | None:
        """Return the encoder of the published rows at these grid values; None: any, "": no rows."""
        if not self.encoders:
            return self.encoder
        return next((self.encoders[value] for value in values if value in self.encoders), "")


class PublishedCosts(_Options):
    """`table.costs`: a paper's cost per sentence, shown beside ours."""

    file: str = Field(min_length=1, description="the published table, a CSV; relative to the experiment file")
    row: str = Field(min_length=1, description="name of the published row")
    columns: Mapping[str, Annotated[Names, Field(min_length=1)]] = Field(
        min_length=1,
        description="method -> published columns whose sum is the method's cost; `all`: the cost of all data",
    )


class CurvesOptions(_Options):
    """`table.figures.curves`: scores plotted against a grid value or a number of records."""

    axis: str | None = Field(
        None,
        description="grid axis along each curve; must have numeric values unless `records` is set",
    )
    records: Names = Field(
        (),
        description="parts of `data`; x is the number of records in all of them. Empty: x is the value on"
        " `axis`",
    )

    @model_validator(mode="after")
    def _has_amounts(self) -> Self:
        if self.axis is None and not self.records:
            raise ValueError("needs `axis:`, `records:` or both")
        return self


class DensitiesOptions(_Options):
    """`table.figures.densities`: the distributions of the pairs' scores."""

    parts: Annotated[Names, Field(min_length=1)] = Field(
        description="parts of `data` with scored pairs; one curve per row and part"
    )
    reference: str | None = Field(
        None, description="part to compare all `parts` with, drawn once; null: none"
    )


class FrontierOptions(_Options):
    """`table.figures.frontier`: the score plotted against a row's cost."""

    costs: Annotated[tuple[CostKind, ...], Field(strict=False), BeforeValidator(_listed)] = Field(
        min_length=1,
        description="the costs, each in a panel: `dollars` or `tokens` of LLM requests, `seconds` of"
        " computing, `total` dollars of requests and computing",
    )
    hour_usd: float | None = Field(
        None, ge=0, description="US dollars per hour of computing; required for `total`, else not allowed"
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
    """`table.figures`: figures besides the score figure."""

    caption: bool = Field(
        default=True,
        description="true: figures contain title and notes; false: they do not, as papers have captions",
    )

    curves: CurvesOptions | None = Field(
        None, description="scores against a grid value or number of records (`curves.*`); null: no figure"
    )
    densities: DensitiesOptions | None = Field(
        None, description="distributions of the pairs' scores (`densities.*`); null: no figure"
    )
    early_dev: bool = Field(
        default=False,
        description="rank correlation between the seeds' early and final dev scores (`early_dev.*`)",
    )
    frontier: FrontierOptions | None = Field(
        None,
        description="score against cost, with a line through the best rows for their cost (`frontier.*`);"
        " null: no figure",
    )


def _not_all(notes: object) -> object:
    """Return "short" for "all", the default in results of earlier versions; else return `notes`."""
    return "short" if notes == "all" else notes


class LatexOptions(_Options):
    """`table.latex`: the layout of the LaTeX tables."""

    label: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9:._-]+$",
        description="the table's \\label; other tables, such as `comparisons.tex`, append their name. null:"
        " tab:EXPERIMENT",
    )
    wide: bool = Field(
        default=False, description="true: across both columns of a two-column page, however narrow the table"
    )
    notes: Annotated[Literal["short", "none"], BeforeValidator(_not_all)] = Field(
        "short", description="notes below the table. short: at most three, others in `notes.tex`; none: none"
    )


class TableOptions(_Options):
    """The `table` section of an experiment file; every field is optional."""

    across: NameOrNames = Field(
        (),
        description="grid axis, or several, whose values become columns instead of rows",
    )
    columns: Names | None = Field(
        None,
        min_length=1,
        description="columns in order: test sets, averages, values of `across` (`VALUE` or `VALUE: TASK`);"
        " null: all test sets",
    )
    averages: Mapping[str, Annotated[Names, Field(min_length=1)]] = Field(
        default_factory=dict,
        max_length=100,
        description="column name -> the test sets that it averages; averages not in `columns` come last",
    )
    published: PublishedOptions | None = Field(
        None, description="a paper's figures, shown beside ours; null: none"
    )
    costs: PublishedCosts | None = Field(
        None, description="a paper's US dollars per sentence, shown beside ours; null: none"
    )
    record_usd: Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default_factory=dict,
        max_length=100,
        description="source -> US dollars per record, for labels by people or an LLM used elsewhere;"
        " included in the frontier's `dollars` and `total`",
    )
    figures: FiguresOptions = Field(FiguresOptions(), description="figures besides the score figure")
    latex: LatexOptions = Field(LatexOptions(), description="layout of the LaTeX tables")
    compare_to: Annotated[Mapping[str, Names] | None, BeforeValidator(_compared_with_all)] = Field(
        None,
        description="the row that all others are compared with (`comparisons.*`), at the same grid point; a"
        " row shown once for all points is compared at each point. Or several rows, each with a list of the"
        " rows compared with it, [] for all. null: the file's `baseline`",
    )
    primary: Names | None = added_field(
        None,
        min_length=1,
        description="the columns whose comparisons are primary, named as in `columns`. Only these columns and"
        " the test sets of a primary average are tested. null: the averages, else all columns",
    )
    family: Annotated[Mapping[str, Names] | None, BeforeValidator(_compared_with_all)] = added_field(
        None,
        description="the primary comparisons, in the form of `compare_to`: baseline -> the rows compared with"
        " it, each `NAME` or `NAME [AXIS=VALUE]`; []: all rows. Other comparisons of `compare_to` are"
        " exploratory: intervals without a test. null: all are primary",
    )
    best: bool = added_field(
        False,
        description="true: find the row that is significantly above all others at its grid point, in each"
        " primary column; tests all pairs of rows, as a separate family",
    )
    shows: Mapping[str, Annotated[str, AfterValidator(_sentence)]] = added_field(
        {},
        description=f"row -> a sentence about it below the table, at most {MAX_SENTENCE} characters",
    )
    notes: Names = Field((), description="further notes on the table, a sentence each")
    caption: str = Field("", description="the caption; empty: the experiment's description, else its name")
    ceiling: Names = Field((), description="variants shown below a rule and never compared with others")
    decimals: int = Field(2, ge=0, le=6, description="decimal places; scores are printed × 100")

    @property
    def kept_axes(self) -> tuple[str, ...]:
        """The axes along which equal rows stay separate: those of `across` and of the curves."""
        curves = self.figures.curves
        along = () if curves is None or curves.axis is None else (curves.axis,)
        return (*self.across, *along)

    @property
    def counted_parts(self) -> frozenset[str]:
        """The parts of the data whose score distributions a figure needs."""
        densities = self.figures.densities
        if densities is None:
            return frozenset()
        return frozenset((*densities.parts, *((densities.reference,) if densities.reference else ())))
