"""Sample records for the report: some of each data set, and several data sets' records for one sentence."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.listing import shortened
from synthbench.data.checking import fingerprint
from synthbench.data.records import Ranking, Record, ScoredPair
from synthbench.data.streaming import (
    anchor_column,
    failure_reasons,
    records_where,
    some_anchors,
    some_records,
)
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.result_cache import ResultCache
from synthbench.reporting.results import DataExcerpt, RecordExcerpt, RunResult, SharedRecords, SharedSentence

VERSION = 2
"""Raise it whenever the same data give different samples."""
NUM_SENTENCES, NUM_TRIED = 5, 20
NUM_RECORDS_SIDE_BY_SIDE = 4
NUM_CANDIDATES = 5
NUM_REASONS = 5
TEXT_LENGTH = 300
ORIGIN_LENGTH = 120
ORIGIN = ("label", "split", "subset", "method", "generator", "instruction", "source_id", "seed", "id")


class Samples:
    """Samples the training data of each row's first seed.

    Leaves out data that are no longer in the store.
    """

    def __init__(self, runs: Sequence[RunResult], artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._cache = ResultCache(artifacts, VERSION)
        first: dict[tuple[object, ...], RunResult] = {}
        for run in runs:
            first.setdefault((run.variant, *run.axes.items()), run)
        self._stages = list(dict.fromkeys(data.stage for run in first.values() for data in run.datasets))

    def of_each(self) -> Iterator[DataExcerpt]:
        """Yield some records of each data set."""
        for stage in self._stages:
            with suppress(UserError):
                yield DataExcerpt.model_validate(self._cached(self._excerpt, stage))

    def side_by_side(self) -> Iterator[SharedSentence]:
        """Yield sentences that several data sets have different records for, with these records."""
        anchors: dict[str, list[str]] = {}
        for stage in self._stages:
            with suppress(UserError):
                for text in self._cached(self._anchors, stage):
                    anchors.setdefault(text, []).append(stage)
        shared = [text for text, stages in anchors.items() if len(stages) > 1]
        tried = sorted(shared, key=lambda text: (-len(anchors[text]), fingerprint(text)))[:NUM_TRIED]
        yield from islice(self._differing(anchors, tried), NUM_SENTENCES)

    def _differing(
        self, anchors: Mapping[str, Sequence[str]], tried: Sequence[str]
    ) -> Iterator[SharedSentence]:
        for text in tried:
            # The anchors may be cached while the records are gone.
            with suppress(UserError):
                found = tuple(self._found(text, anchors[text], tried))
                if len(found) > 1:
                    yield SharedSentence(sentence=text, found=found)

    def _cached(self, find: Callable[..., Any], *key: str) -> Any:  # noqa: ANN401 - JSON
        """Return the cached result of `find(*key)`, computing it if need be; key[0] is the data's stage."""
        return self._cache.get(partial(find, *key), find.__name__, *key, of=key[:1])

    def _excerpt(self, stage: str) -> dict[str, Any]:
        folder = self._artifacts.dataset(stage)
        reasons = sorted(failure_reasons(folder).items(), key=lambda reason: (-reason[1], reason[0]))
        excerpt = DataExcerpt(
            stage=stage,
            records=tuple(map(_shown, some_records(folder))),
            failures=tuple(
                (shortened(reason, ORIGIN_LENGTH), number) for reason, number in reasons[:NUM_REASONS]
            ),
            revisions=tuple(self._artifacts.manifest(stage).revisions.items()),
        )
        return excerpt.model_dump(mode="json")

    def _anchors(self, stage: str) -> list[str]:
        return some_anchors(self._artifacts.dataset(stage))

    def _found(self, sentence: str, stages: Sequence[str], tried: Sequence[str]) -> Iterator[SharedRecords]:
        """Yield the data sets' records for one sentence.

        Data sets share an entry if they have equally many records and the same few are shown.
        """
        same: dict[str, SharedRecords] = {}
        for stage in stages:
            number, records = self._cached(self._with_anchors, stage, *tried)[sentence]
            shown = tuple(map(RecordExcerpt.model_validate, records))
            content = str((number, [(record.texts, record.score) for record in shown]))
            known = same.get(content)
            before = () if known is None else known.stages
            same[content] = SharedRecords(stages=(*before, stage), records=shown, num_records=number)
        yield from same.values()

    def _with_anchors(self, stage: str, *sentences: str) -> dict[str, tuple[int, list[Any]]]:
        """Return for each sentence how many records have this sentence as first text, and some of these."""
        folder = self._artifacts.dataset(stage)
        column = anchor_column(self._artifacts.manifest(stage).kind)
        found: dict[str, list[Record]] = {sentence: [] for sentence in sentences}
        for record in records_where(folder, column, sentences):
            found[getattr(record, column)].append(record)
        return {
            sentence: (len(records), [_shown(record).model_dump(mode="json") for record in _some(records)])
            for sentence, records in found.items()
        }


def _some(records: Sequence[Record]) -> list[Record]:
    """Return a few records of one sentence with as many distinct scores as possible, highest first."""
    ordered = sorted(records, key=lambda record: (-(_score(record) or 0.0), fingerprint(record.id)))
    before: Counter[float | None] = Counter()
    ranks = []
    for record in ordered:
        ranks.append(before[_score(record)])
        before[_score(record)] += 1
    chosen = sorted(range(len(ordered)), key=lambda at: (ranks[at], at))[:NUM_RECORDS_SIDE_BY_SIDE]
    return [ordered[at] for at in sorted(chosen)]


def _shown(record: Record) -> RecordExcerpt:
    values = {column: getattr(record, column) for column in ORIGIN}
    known = {column: value for column, value in values.items() if value not in ("", None)}
    if record.split == "train":
        del known["split"]
    return RecordExcerpt(
        texts=tuple((name, shortened(text, TEXT_LENGTH)) for name, text in _texts(record)),
        score=_score(record),
        origin=tuple((column, shortened(str(value), ORIGIN_LENGTH)) for column, value in known.items()),
    )


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    if not isinstance(record, Ranking):
        yield from zip(record.text_names(), record.texts(), strict=True)
        return
    yield from (("query", query) for query in record.queries)
    graded = sorted(zip(record.grades, record.candidates, strict=True), key=lambda each: -each[0])
    for grade, candidate in graded[:NUM_CANDIDATES]:
        yield f"of grade {grade:g}", candidate
    if len(graded) > NUM_CANDIDATES:
        yield "and", f"{len(graded) - NUM_CANDIDATES:,} further candidates"


def _score(record: Record) -> float | None:
    return record.score if isinstance(record, ScoredPair) else None
