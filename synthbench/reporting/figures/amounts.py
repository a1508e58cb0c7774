"""Amounts along the x axis of a panel: logarithmic where they need it, 0 left of that, labels apart."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench.reporting.figures.style import SMALL_FONT_SIZE
from synthbench.reporting.figures.text import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN = 0.07
MOST_ROOM = 0.3
LABEL_GAP = 0.04
MOST_TICKS = 6


def scale_amounts(
    panel: "Axes",
    amounts: Sequence[float],
    width: float,
    ticks: Sequence[float] | None = None,
    room: float = 0.0,
) -> None:
    """Set scale, limits and the labels of the ticks, as many as there is room for on `width` inches.

    `amounts` rise from 0 or more; ticks are the amounts themselves unless others are given; left of the first
    amount and right of the last one stay `room` inches at least.
    """
    positive = [amount for amount in amounts if amount > 0]
    if needs_logarithm(amounts):
        panel.set_xscale("symlog" if amounts[0] <= 0 else "log", **_zero(amounts, positive))
    transform = panel.xaxis.get_transform()
    ends = [float(transform.transform(amount)) for amount in (amounts[0], amounts[-1])] if amounts else [0, 1]
    share = min(room / width, MOST_ROOM)
    margin = max(MARGIN, share / (1 - 2 * share)) * (ends[1] - ends[0]) or 0.5
    panel.set_xlim(
        *(float(transform.inverted().transform(end)) for end in (ends[0] - margin, ends[1] + margin))
    )
    span = ends[1] - ends[0] + 2 * margin
    shown = amounts if ticks is None else ticks
    places = [(float(transform.transform(amount)) - ends[0] + margin) / span * width for amount in shown]
    panel.set_xticks(shown, _labels(shown, places))
    panel.minorticks_off()


def beside(panel: "Axes", amounts: Sequence[float], shifts: Sequence[float], width: float) -> list[float]:
    """Return the amounts that stand so many inches right of these on a scaled panel that is `width` wide."""
    transform = panel.xaxis.get_transform()
    left, right = (float(transform.transform(limit)) for limit in panel.get_xlim())
    return [
        float(transform.inverted().transform(transform.transform(amount) + shift * (right - left) / width))
        for amount, shift in zip(amounts, shifts, strict=True)
    ]


def needs_logarithm(amounts: Sequence[float]) -> bool:
    """Tell whether rising amounts span more than a decade, 0 left out."""
    positive = [amount for amount in amounts if amount > 0]
    return bool(positive) and positive[-1] > 10 * positive[0]


def round_ticks(amounts: Sequence[float]) -> list[float]:
    """Return some round numbers in the range of rising amounts, with 0 where it is one of them.

    On a logarithmic scale they are 1, 2 and 5 of each decade, or as many decades as there is room for.
    """
    from matplotlib.ticker import MaxNLocator

    positive = [amount for amount in amounts if amount > 0]
    if not needs_logarithm(amounts):
        ends = (amounts[0], amounts[-1]) if amounts else (0.0, 1.0)
        found = [float(tick) for tick in MaxNLocator(MOST_TICKS - 1).tick_values(*ends)]
        return [tick for tick in found if ends[0] <= tick <= ends[1]] or list(ends)
    low, high = (math.floor(math.log10(amount)) for amount in (positive[0], positive[-1]))
    fine = [digit * 10.0**power for power in range(low, high + 1) for digit in (1, 2, 5)]
    fine = [tick for tick in fine if positive[0] <= tick <= positive[-1]]
    step = math.ceil((high - low + 1) / MOST_TICKS)
    coarse = [10.0**power for power in range(low, high + 1, step) if 10.0**power >= positive[0]]
    return [*([0.0] if amounts[0] <= 0 else []), *(fine if len(fine) <= MOST_TICKS else coarse)]


def _zero(amounts: Sequence[float], positive: Sequence[float]) -> dict[str, float]:
    """Return where a scale with 0 on it stops to be logarithmic."""
    return {"linthresh": positive[0], "linscale": 0.5} if amounts[0] <= 0 else {}


def _labels(amounts: Sequence[float], places: Sequence[float]) -> list[str]:
    """Label amounts from right to left, leaving out those whose labels would meet the one before."""
    labels: list[str] = []
    free_to = float("inf")
    for amount, place in zip(reversed(amounts), reversed(places), strict=True):
        text = _amount_text(amount)
        half = text_width(text, SMALL_FONT_SIZE) / 2
        fits = place + half <= free_to
        labels.append(text if fits else "")
        free_to = place - half - LABEL_GAP if fits else free_to
    return labels[::-1]


def _amount_text(amount: float) -> str:
    """Return an amount in four digits at most, from 10,000 on in thousands."""
    if amount < 10_000:
        return f"{amount:,.0f}" if amount == round(amount) else f"{amount:.4g}"
    return f"{amount / 1000:.3g}k" if amount < 1_000_000 else f"{amount / 1000:,.0f}k"
