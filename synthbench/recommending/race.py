"""Which recipes are trained on more data, and why the others are dropped."""

from collections.abc import Mapping
from dataclasses import dataclass

from synthbench.recommending.answer import points
from synthbench.recommending.curves import Forecast
from synthbench.statistics.differences import Difference

LEVEL = 0.2
"""A recipe is dropped if the 80 % interval of the leader's forecast minus its own lies above 0."""
MOST_RUNNING = (3, 2)
"""How many recipes may be in each round of the race."""
RULE = (
    "A recipe is dropped if its forecast for its share of the budget is below the leader's and the 80 %"
    f" interval of the difference excludes 0. At most {MOST_RUNNING[0]} recipes run in the first round of the"
    f" race and {MOST_RUNNING[1]} in the second: those with the highest forecasts, in the file's order if"
    " equal. The highest mean dev score in the last round wins; of equal ones the first."
    " If the 95 % interval of its difference to the baseline on the test set lies below 0, the answer is the"
    " baseline."
)
"""The rule, in the words of the pilot file."""


@dataclass(frozen=True)
class Standing:
    """Recipes that stay in the race, best forecast first, and dropped recipes with the reason."""

    running: tuple[str, ...]
    dropped: Mapping[str, str]


def standing(forecasts: Mapping[str, Forecast], most: int, baseline: str = "") -> Standing:
    """Return which recipes stay in the race, by RULE; at most `most`.

    `forecasts` are those of the running recipes and the baseline. The baseline may lead, but is never
    returned. A recipe whose score can't be forecast (`why_unknown`) is dropped only for its rank.
    """
    ranked = sorted(forecasts, key=lambda name: -forecasts[name].value)
    leader = ranked[0]
    ranked = [name for name in ranked if name != baseline]
    dropped: dict[str, str] = {}
    for name in ranked:
        why = _behind(forecasts[name], forecasts[leader], leader)
        if why:
            dropped[name] = why
    running = [name for name in ranked if name not in dropped]
    for rank, name in enumerate(running[most:], most + 1):
        dropped[name] = f"its forecast, {points(forecasts[name].value)}, ranks {rank}; {most} go on"
    return Standing(tuple(running[:most]), {name: dropped[name] for name in forecasts if name in dropped})


def _behind(ours: Forecast, best: Forecast, leader: str) -> str:
    """Return why a recipe can no longer win, "" if it can."""
    if ours is best or ours.why_unknown or best.why_unknown:
        return ""
    behind = Difference(best.value - ours.value, (ours.noise, best.noise))
    half_width = behind.half_width_at(LEVEL)
    if behind.value <= half_width or behind.value == 0.0:
        return ""
    low, high = behind.value - half_width, behind.value + half_width
    return (
        f"its forecast, {points(ours.value)}, is {points(behind.value)} ({points(low)} to {points(high)})"
        f" below that of {leader}"
    )
