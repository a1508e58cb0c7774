"""The answer of a recommendation in one line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.recommending.curves import Forecast


@dataclass(frozen=True)
class OnTest:
    """A score on the test set, in [-1, 1], and the difference to the baseline with its 95 % interval.

    `half_width`: half the width of the interval; None if the noise is unknown.
    """

    score: float
    difference: float
    half_width: float | None

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.half_width is not None and abs(self.difference) > self.half_width


@dataclass(frozen=True)
class AnswerLine:
    """The facts that the one-line answer states.

    `winner`: the recipe with the highest dev score, which may be the baseline. `challenger`: the best recipe
    on dev besides the baseline. `tested`: the challenger's result on the test set. `equals`: recipes that do
    not differ significantly from the winner on dev. `usd`: recipe -> its cost in dollars.
    """

    winner: str
    baseline: str
    challenger: str
    tested: OnTest
    baseline_score: float
    equals: Sequence[str]
    usd: Mapping[str, float]

    @property
    def recipe(self) -> str:
        """The recipe to take: the winner on dev, or the baseline if clearly better on the test set."""
        is_worse = self.tested.is_clear and self.tested.difference < 0
        return self.baseline if is_worse else self.winner

    @property
    def line(self) -> str:
        """The answer in one line."""
        alone = named(self.baseline)
        if self.recipe != self.winner:
            return (
                f"{self.baseline}: {points(self.baseline_score)}; {self.winner}, the best on dev, is"
                f" {self._difference()} it on the test set"
            )
        if self.winner == self.baseline:
            return (
                f"{self.winner}: {points(self.baseline_score)}; no recipe is ahead of it on dev. On the test"
                f" set {self.challenger}, the best of them, is {self._difference()} {alone}"
            )
        gain = f"{self.winner}: {points(self.tested.score)}, {self._difference()} {alone}"
        unclear = "" if self.tested.is_clear else ", no clear difference"
        return f"{gain}{unclear}, for {dollars(self.usd[self.winner])}{self._equal()}"

    def _difference(self) -> str:
        value, half_width = self.tested.difference, self.tested.half_width
        sign = 1 if value >= 0 else -1
        side = "above" if value >= 0 else "below"
        if half_width is None:
            return f"{points(sign * value)} {side}"
        ends = sorted((sign * value - half_width, sign * value + half_width))
        return f"{points(sign * value)} ({' to '.join(map(points, ends))}) {side}"

    def _equal(self) -> str:
        """Return a clause that names the cheapest of `equals`; "" if none is cheaper than the winner."""
        cheapest = min(self.equals, key=lambda name: self.usd[name], default=self.winner)
        if self.usd[cheapest] >= self.usd[self.winner]:
            return ""
        return f"; on dev no difference to {cheapest}, for {_usd(self.usd[cheapest])}"


def named(baseline: str) -> str:
    """Return a baseline's name as a sentence uses it, such as "gold alone" for gold-only."""
    return {"gold-only": "gold alone", "untrained": "no training"}.get(baseline, baseline)


def more_money(recipe: str, now: float, later: Sequence[tuple[float, Forecast]], reads: str) -> str:
    """Return a line on what more money would gain with a recipe; `now`: the recipe's dev score in [-1, 1].

    `later`: (dollars, forecast) for each larger amount of data. `reads`: the unit of the amounts, such as
    sentences; "" if the recipe's amount is fixed.
    """
    if not reads:
        return f"More money: {recipe} has no amount that money could raise."
    if not later:
        return f"More money: {recipe} has read all {reads} there are; it needs more of them first."
    texts = []
    for usd, forecast in later:
        what = f"{dollars(usd)} ({forecast.amount:,} {reads})"
        if forecast.why_unknown:
            texts.append(f"for {what} can't tell: {forecast.why_unknown}")
        else:
            gain, reach = points(forecast.value - now, "+"), points(forecast.noise.half_width)
            texts.append(f"for {what} {gain} ± {reach} points on dev")
    return f"More money: {'; '.join(texts)}."


def dollars(usd: float) -> str:
    """Return dollars as text, such as "1 dollar", "2.5 dollars" or "less than 0.01 dollars"."""
    return f"{_usd(usd)} dollar{'s' * (_usd(usd) != '1')}"


def _usd(usd: float) -> str:
    if 0 < usd < 0.01:
        return "less than 0.01"
    return f"{usd:,.0f}" if usd >= 10 or usd == round(usd) else f"{usd:.2g}"


def points(score: float, sign: str = "") -> str:
    """Return a score x 100 as text with one decimal; with `sign` "+", positive scores get a plus."""
    return f"{100 * score:{sign}z.1f}".replace("-", "−")
