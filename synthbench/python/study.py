"""Compare recipes on your own data from Python, without writing an experiment file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from synthbench.engine.progress import progress_for_people
from synthbench.python.files import Data, base_named, study_file
from synthbench.python.results import Results
from synthbench.python.running import Changes, Options, overrides_of, plan, prepared, run
from synthbench.recommending.outcome import Recommendation
from synthbench.recommending.page import write_page
from synthbench.recommending.studies import recommender_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """A comparison of recipes on your data: a short experiment file made from Python (docs/own_data.md).

    Data are lists, data frames, single columns or files; columns are recognised by their names and content.
    `variants`: names of recipes, or name -> patch, or "all". `budget`: US dollars, or a mapping with `usd`
    and `machine_hour_usd`. `more`: further keys of the experiment file, such as `seeds`.
    """

    base: str | Path | Mapping[str, Any]
    sentences: Data | None = field(default=None, repr=False)
    gold: Data | None = field(default=None, repr=False)
    dev: Data | None = field(default=None, repr=False)
    test: Data | None = field(default=None, repr=False)
    passages: Data | None = field(default=None, repr=False)
    llm: str | Mapping[str, Any] | None = None
    budget: float | Mapping[str, float] | None = None
    variants: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] = "all"
    name: str = "study"
    more: Mapping[str, Any] | None = None

    @cached_property
    def file(self) -> Path:
        """Path of the short experiment file, written with its data into a folder of the home."""
        variants = self.variants if isinstance(self.variants, str | Mapping) else list(self.variants)
        budget = {"usd": self.budget} if isinstance(self.budget, int | float) else self.budget
        keys = {"base": base_named(self.base), "llm": self.llm, "budget": budget, **(self.more or {})}
        given = {key: value for key, value in keys.items() if value is not None}
        sources = {role: getattr(self, role) for role in ("sentences", "gold", "dev", "test", "passages")}
        return study_file(self.name, {**given, "variants": variants}, sources)

    def run(self, *, jobs: int = 1, output: str | Path = "reports", **options: Unpack[Options]) -> Results:
        """Run the study as `synthbench run` does, and return its results."""
        return run(self.file, jobs=jobs, output=output, **options)

    def plan(self, **options: Unpack[Options]) -> "pd.DataFrame":
        """Return what a run would compute and cost, a row per stage; computes nothing."""
        return plan(self.file, **options)

    def recommend(
        self, *, jobs: int = 1, output: str | Path = "reports", **options: Unpack[Changes]
    ) -> "Recommended":
        """Find the best recipe for the study's budget, as `synthbench recommend` does."""
        given: Options = {**options}  # type: ignore[typeddict-item]  # variants and seeds are absent
        with prepared(self.file, given):
            recommender = recommender_of(
                self.file, overrides_of(given), progress_for_people(), jobs=jobs, output=Path(output)
            )
            found = recommender.run()
        return Recommended(found, write_page(found, Path(output)))


@dataclass(frozen=True)
class Recommended:
    """The answer of `Study.recommend`, and the path of its page; `found` holds the whole recommendation."""

    found: Recommendation
    page: Path

    @property
    def answer(self) -> str:
        """A sentence with the recommended recipe, its gain and its cost."""
        return self.found.answer

    @cached_property
    def measured(self) -> "pd.DataFrame":
        """A row per measured recipe, the best on dev first.

        Columns: recipe, amount (the largest measured amount of data, 0 if fixed), of (the amount's unit),
        dev_score (x 100), usd, dropped (why the recipe is not the answer).
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "recipe": each.recipe,
                "amount": each.amount,
                "of": each.reads,
                "dev_score": each.dev_score,
                "usd": each.usd,
                "dropped": each.dropped,
            }
            for each in self.found.measured
        )

    def _repr_html_(self) -> str:
        from html import escape

        lines = (self.found.answer, self.found.more, self.found.spent, *self.found.notes)
        said = "".join(f"<p>{escape(line)}</p>" for line in lines if line)
        return said + self.measured.to_html(index=False)
