"""Steps for scored pairs: label smoothing, both orders, and random negatives."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from synthbench.base.errors import UserError
from synthbench.data.draws import digest
from synthbench.data.records import Record, RecordKind, ScoredPair
from synthbench.plugins.contracts import Records, Step, StepContext

SCORED_PAIRS = frozenset({RecordKind.SCORED_PAIR})
ADD_RANDOM_NEGATIVES = "add-random-negatives"
RANDOM_LABEL = "random"
RANDOM_INSTRUCTION = "random negative"
DRAWS_EACH = 20


class SmoothLabels(Step):
    """Smooth every score y to (1 - epsilon) y + epsilon / 2; `label` is unchanged.

    With 0.2, the scores 0, 0.5 and 1 become 0.1, 0.5 and 0.9, as in the DINO paper (EMNLP 2021, section 4).
    """

    version = 1
    kinds = SCORED_PAIRS

    epsilon: float = Field(
        0.2, gt=0.0, lt=1.0, description="strength of the smoothing; 1 would make every score 0.5"
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield all records with their new scores."""
        return (replace(record, score=self._smoothed(record)) for record in _pairs(records))

    def _smoothed(self, pair: ScoredPair) -> float:
        return (1 - self.epsilon) * pair.score + self.epsilon / 2


class AddSwapped(Step):
    """Add each pair in the other order, (b, a), with the same score, after all records.

    The added pairs show whether a labeller's scores depend on the order; to train on both orders, use the
    trainer's option `both_orders`. A swapped pair that its split contains already is not added.
    """

    version = 1
    kinds = SCORED_PAIRS

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield all records, then the swapped ones, whose ids end in "/swapped"."""
        yield from records
        known = set(records.rows_of("split", "sentence1", "sentence2"))
        for pair in _pairs(records):
            swapped = (pair.split, pair.sentence2, pair.sentence1)
            if swapped not in known:
                known.add(swapped)
                yield replace(
                    pair, id=f"{pair.id}/swapped", sentence1=pair.sentence2, sentence2=pair.sentence1
                )

    def expected(self, num_records: int) -> int:
        """Return an upper bound: twice the number of records."""
        return 2 * num_records


class AddRandomNegatives(Step):
    """Add pairs with score 0: each distinct sentence1 with a sentence2 from pairs with another sentence1.

    As in the DINO paper (EMNLP 2021, section 4: "from other dataset entries"). No sentence is paired with
    itself, and both sentences come from the same split. New pairs have the `label` "random", the
    `instruction` "random negative", and the `source_id` of an original pair of their sentence1. Put this step
    after `smooth-labels`, since the score 0 is certain and needs no smoothing.
    """

    version = 1
    kinds = SCORED_PAIRS

    per_group: int = Field(2, ge=1, description="number of new pairs per distinct sentence1")
    seed: int = Field(0, description="seed of the draw")
    same_source: bool = Field(
        False, description="true: draw also from the sentence1's own pairs, as DINO's code does"
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield all records, followed by the new pairs; raises UserError if no pair can be drawn."""
        yield from records
        num_added = 0
        for group in _groups(records):
            pool = _Pool.of(group.values())
            for sentence, of_sentence in group.items():
                for negative in self._negatives(sentence, of_sentence, pool):
                    num_added += 1
                    yield negative
        if len(records) and not num_added:
            raise UserError("add-random-negatives: no record of another sentence1 to draw a negative from")

    def remark(self, before: Records, after: Records) -> str:
        """Return a remark on how many pairs are missing for lack of other sentences; "" if none."""
        num_wanted = self.per_group * len(set(before.rows_of("split", "sentence1")))
        num_lacking = num_wanted - (len(after) - len(before))
        return f"{num_lacking} fewer than wanted, for lack of other sentences" if num_lacking else ""

    def _negatives(self, sentence: str, group: "_Group", pool: "_Pool") -> Iterator[ScoredPair]:
        excluded = {sentence} if self.same_source else {sentence, *group.partners}
        first = group.first
        for partner in self._drawn(pool, sentence, excluded):
            identity = digest(ADD_RANDOM_NEGATIVES, self.seed, first.split, sentence, partner).hex()[:20]
            yield replace(
                first,
                id=f"{RANDOM_LABEL}/{identity}",
                sentence2=partner,
                score=0.0,
                label=RANDOM_LABEL,
                instruction=RANDOM_INSTRUCTION,
                generator=pool.generators[partner],
                seed=self.seed,
            )

    def _drawn(self, pool: "_Pool", sentence: str, excluded: set[str]) -> Sequence[str]:
        """Return `per_group` distinct texts of the pool outside `excluded`, or all if there are fewer."""
        drawn: dict[str, None] = {}
        for number in range(DRAWS_EACH * self.per_group):
            value = int.from_bytes(digest(ADD_RANDOM_NEGATIVES, self.seed, sentence, number))
            text = pool.texts[value % len(pool.texts)]
            if text not in excluded:
                drawn[text] = None
            if len(drawn) == self.per_group:
                return tuple(drawn)
        allowed = [text for text in pool.texts if text not in excluded and text not in drawn]
        allowed.sort(key=lambda text: digest(ADD_RANDOM_NEGATIVES, self.seed, sentence, text))
        return (*drawn, *allowed[: self.per_group - len(drawn)])


@dataclass(slots=True)
class _Group:
    """The pairs that share a sentence1: `first` has the smallest id, `partners` are the sentence2 texts."""

    first: ScoredPair
    partners: dict[str, tuple[str, str]]
    """sentence2 -> its pair's id (the smallest, if several) and generator."""

    def add(self, pair: ScoredPair) -> None:
        """Add one pair."""
        if pair.id < self.first.id:
            self.first = pair
        writer = (pair.id, pair.generator)
        self.partners[pair.sentence2] = min(self.partners.get(pair.sentence2, writer), writer)


def _groups(records: Records) -> Iterable[Mapping[str, _Group]]:
    """Return, for each split, a mapping of sentence1 to its group, in order of appearance."""
    splits: dict[str, dict[str, _Group]] = defaultdict(dict)
    for pair in _pairs(records):
        groups = splits[pair.split]
        if pair.sentence1 not in groups:
            groups[pair.sentence1] = _Group(pair, {})
        groups[pair.sentence1].add(pair)
    return splits.values()


@dataclass(frozen=True)
class _Pool:
    """The sorted distinct sentence2 texts to draw from; `generators`: text -> the model that wrote it."""

    texts: Sequence[str]
    generators: Mapping[str, str]

    @classmethod
    def of(cls, groups: Iterable[_Group]) -> "_Pool":
        writers: dict[str, tuple[str, str]] = {}
        for group in groups:
            for text, writer in group.partners.items():
                writers[text] = min(writers.get(text, writer), writer)
        return cls(sorted(writers), {text: generator for text, (_, generator) in writers.items()})


def _pairs(records: Iterable[Record]) -> Iterator[ScoredPair]:
    """Yield the records, typed as scored pairs: `kinds` permits no other kind."""
    for record in records:
        assert isinstance(record, ScoredPair)
        yield record
