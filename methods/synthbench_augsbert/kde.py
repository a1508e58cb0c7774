"""Silver pairs whose scores are spread as gold's, chosen from many random ones (Thakur et al. 2021, 3.1)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from synthbench.api import GenerationContext, Record, Records, SyntheticDataset, UserError, kl_divergence
from synthbench_augsbert.gold import GoldSentences
from synthbench_augsbert.samplers import ChoosingSampler, check_size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synthbench_augsbert.density import Bandwidth

BINS = 20  # of the histograms that tell how near the kept scores are to gold's
LABELLED = "labelled"
POSITIVE = 0.5  # the least score of a pair of the positive class


class KDESampler(ChoosingSampler):
    """Of `size` labelled random pairs those that bring the scores' distribution near gold's.

    Where gold has scores of 0 and 1 only, all pairs scored 0.5 or more are kept, and as many others as gold's
    ratio of classes asks for. Else a pair of score s is kept with probability min(1, gold's density at s /
    silver's). What is drawn follows from the seed and the two sentences alone.
    """

    name: Literal["kde"] = "kde"
    size: int = Field(200_000, ge=2, description="random pairs that are labelled, of which some are kept")
    bandwidth: Literal["scott"] | Annotated[float, Field(gt=0, le=1)] = Field(
        "scott",
        description="the kernel's standard deviation; scott: that of the scores, gold's or silver's, times"
        " n^(-1/5)",
    )

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"kde size={self.size} bandwidth={self.bandwidth}"

    def check(self, gold: GoldSentences) -> None:
        """Raise UserError if there are fewer than `size` new pairs."""
        check_size(self.name, self.size, gold)

    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the random sampler of so many pairs."""
        return {LABELLED: {"name": "random", "size": self.size}}

    def select(
        self, gold: SyntheticDataset, labelled: Mapping[str, Records], seed: int, context: GenerationContext
    ) -> Iterator[Record]:
        """Yield those of the labelled pairs that are kept, in their order; all else is counted and told.

        Held are one number for each labelled pair and draw, not the pairs themselves.
        Raises UserError if the labelled pairs' scores are all the same, or none is kept. Gold's must differ.
        """
        import numpy as np

        gold_scores = np.array([record.score for record in gold if record.split == "train"])
        pairs = labelled[LABELLED]
        silver_scores = np.array(pairs.column("score"))
        selection = choose(gold_scores, silver_scores, draws(pairs, seed), self.bandwidth)
        context.progress.say(f"  kde: {selection.remark}")
        for name, value in selection.measured.items():
            context.measure(name, value)
        context.count_dropped(
            "kde: too many pairs of such a score", len(selection.kept) - int(selection.kept.sum())
        )
        for record, is_kept in zip(pairs, selection.kept.tolist(), strict=True):
            if is_kept:
                yield replace(record, id="", instruction=self.description)


@dataclass(frozen=True)
class Selection:
    """Which of the labelled pairs are kept, and what people should know of it.

    `divergences` are the Kullback-Leibler divergences of all labelled pairs' scores from gold's, and of those
    kept, in nats, by histograms of so many `bins`; `widths` are the bandwidths for gold and for silver, if
    densities decided.
    """

    kept: "NDArray[np.bool_]"
    divergences: tuple[float, float]
    bins: int
    widths: tuple[float, float] | None = None

    @property
    def remark(self) -> str:
        """All of it in words."""
        how = "by class"
        if self.widths is not None:
            how = f"by densities of bandwidths {self.widths[0]:.3g} (gold) and {self.widths[1]:.3g} (silver)"
        return (
            f"kept {int(self.kept.sum()):,} of {len(self.kept):,} random pairs {how}; KL divergence of their "
            f"scores from gold's ({self.bins} bins): {self.divergences[0]:.3f} nats before, "
            f"{self.divergences[1]:.3f} after"
        )

    @property
    def measured(self) -> Mapping[str, float]:
        """All of it by name."""
        places = ("before", "after")
        told = {
            f"kde: KL divergence {place}, nats": value
            for place, value in zip(places, self.divergences, strict=True)
        }
        widths = zip(("gold", "silver"), self.widths or (), strict=False)
        return {**told, **{f"kde: bandwidth, {whose}": width for whose, width in widths}}


def draws(pairs: Iterable[Record], seed: int) -> "NDArray[np.float64]":
    """Return a number from 0 to 1 for each pair of sentences: of whatever order, and wherever it stands."""
    import numpy as np

    return np.fromiter((_draw(seed, *sorted(pair.texts())) for pair in pairs), np.float64)


def _draw(seed: int, first: str, second: str) -> float:
    content = f"kde\x1f{seed}\x1f{first}\x1f{second}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:8]) / 2**64


def choose(
    gold: "NDArray[np.float64]",
    silver: "NDArray[np.float64]",
    drawn: "NDArray[np.float64]",
    bandwidth: "Bandwidth",
) -> Selection:
    """Choose by the scores of gold and silver, and a number drawn for each silver pair.

    Raises UserError if a density is asked of silver scores that are all equal, or nothing is kept.
    """
    import numpy as np

    if np.isin(gold, (0.0, 1.0)).all():
        kept = _by_class(gold, silver, drawn)
        return Selection(kept, _divergences(gold, silver, kept, bins=2), bins=2)
    return _by_density(gold, silver, drawn, bandwidth)


def _by_class(
    gold: "NDArray[np.float64]", silver: "NDArray[np.float64]", drawn: "NDArray[np.float64]"
) -> "NDArray[np.bool_]":
    """Keep all positives, and of the negatives those with the lowest draws, at gold's ratio."""
    import numpy as np

    kept = silver >= POSITIVE
    if not kept.any():
        raise UserError(f"augsbert: sampler kde: none of {len(silver):,} random pairs is a positive one")
    positives = int((gold >= POSITIVE).sum())
    wanted = round(int(kept.sum()) * (len(gold) - positives) / positives)
    negatives = np.flatnonzero(~kept)
    kept[negatives[np.argsort(drawn[negatives], kind="stable")[:wanted]]] = True
    return kept


def _by_density(
    gold: "NDArray[np.float64]",
    silver: "NDArray[np.float64]",
    drawn: "NDArray[np.float64]",
    bandwidth: "Bandwidth",
) -> Selection:
    from synthbench_augsbert.density import Density

    try:
        of_gold, of_silver = (Density(scores, bandwidth) for scores in (gold, silver))
    except ValueError as error:
        raise UserError(
            f"augsbert: sampler kde: all {len(silver):,} random pairs have the score {silver[0]:g}; the "
            "cross-encoder has learned nothing to choose by"
        ) from error
    kept = drawn * of_silver.at(silver) < of_gold.at(silver)
    if not kept.any():
        raise UserError(f"augsbert: sampler kde: none of {len(silver):,} random pairs is kept")
    widths = (of_gold.width, of_silver.width)
    return Selection(kept, _divergences(gold, silver, kept, bins=BINS), BINS, widths)


def _divergences(
    gold: "NDArray[np.float64]", silver: "NDArray[np.float64]", kept: "NDArray[np.bool_]", *, bins: int
) -> tuple[float, float]:
    import numpy as np

    of_gold, before, after = (
        np.histogram(scores, bins, (0.0, 1.0))[0].tolist() for scores in (gold, silver, silver[kept])
    )
    return kl_divergence(before, of_gold), kl_divergence(after, of_gold)
