"""The step that chooses new passages for queries, among the passages that a search finds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.data.draws import digest
from synthbench.data.records import Pair, Record, RecordKind, RetrievalText, Triplet
from synthbench.llm.endpoint import ChatAmount
from synthbench.models.interfaces import of_passages, of_queries
from synthbench.plugins.contracts import Records, StepContext, TrainedModel
from synthbench.plugins.labellers import Judge, Labeller
from synthbench.plugins.prompts import Prompt, PromptFile, replaceable_prompts
from synthbench.preparing.labelled import WithLabellers
from synthbench.preparing.mining import TripletStep
from synthbench.preparing.vectors import unit_vectors

NAME = "relabel-retrieved"
ENCODER = "encoder"
CELLS = 32_000_000
"""Cosines computed at once, at most."""
TEXTS = "Query: {sentence1}\nPassage: {sentence2}"
RELEVANCE = Judge(
    prompt=f"Does the passage answer the query, by itself and in full?\n{TEXTS}", grades=None, expected=True
)
LIKELIHOOD = Judge(
    prompt="Somebody has this passage in mind and searches for it. How likely is it that they type this"
    f" query? 0: never. 9: just so.\n{TEXTS}",
    grades=(0, 9),
    expected=True,
)
LONGER = 50
"""Extra tokens of a passage (about 50 words, as in MS MARCO) over the sentence that labellers assume."""
JUDGES = (RELEVANCE, LIKELIHOOD)
DEFAULT = tuple(Labeller(judge=judge) for judge in JUDGES)
_Fused = list[tuple[float, str]]
"""A query's candidates, best first: (sum of 1 / rank, passage)."""


class RankingPrompt(Prompt):
    """A prompt that asks about {query} and {passage}; instructions for the answer are appended."""

    slots: ClassVar[tuple[str, ...]] = ("query", "passage")
    takes_exemplars: ClassVar[bool] = False

    @model_validator(mode="after")
    def _is_one_text(self) -> Self:
        if self.input is not None or self.pools or "{{" in self.instruction:
            raise ValueError(
                "a ranking's prompt is one text; leave out `input`, `pools` and braces but {query}, {passage}"
            )
        return self

    def of(self, judge: Judge) -> Judge:
        """Return a copy of the judge that asks with this prompt."""
        (message,) = self.chat({"query": "{sentence1}", "passage": "{sentence2}"}).messages
        return judge.model_copy(update={"prompt": message["content"]})


class RankingPrompts(PromptFile):
    """The prompts of the two default rankings of `relabel-retrieved`."""

    relevance: RankingPrompt | None = replaceable_prompts(
        "ask whether {passage} answers {query}; answered with yes or no"
    )
    likelihood: RankingPrompt | None = replaceable_prompts(
        "ask how likely {query} is for somebody who searches for {passage}; answered with 0 to 9"
    )


class RelabelRetrieved(WithLabellers, TripletStep):
    """Replace each query's passage by the best passage that a search finds for the query, as Gecko does.

    The candidates are the query's own passage and the passages that the search finds. Each ranking orders
    them; a candidate's score is the sum of 1 / rank over the rankings (Lee et al. 2024, appendix A). The best
    candidate becomes the positive; on a tie the query's own passage stays. The hard negative is the worst
    candidate, or a random one (`negative`). Records become triplets, whose `former_positive` is the query's
    own passage.
    """

    version = 1
    reads_queries = True
    after_answers = frozenset({"negative"})

    rankings: tuple[Labeller, ...] = Field(
        DEFAULT,
        min_length=1,
        description="labellers; each of them ranks a query's candidates; {sentence1} is the query,"
        " {sentence2} the passage. Default: an LLM asked two questions, scored by log-probabilities",
    )
    prompts: RankingPrompts | None = added_field(
        None,
        description="YAML file of prompts for the default rankings, or the file's content. Default: the "
        "reconstructed prompts",
    )
    source: str | None = Field(
        None, description="source of the passages to search; null: the records' own passages"
    )
    encoder: dict[str, Any] | None = Field(
        None,
        description="the encoder that searches: settings of the trainer `none`, such as `base: {model: ...}`;"
        " not the model under test; null: BM25 on words without punctuation",
    )
    number: int = Field(20, ge=1, le=1000, description="number of candidates besides the query's own passage")
    negative: Literal["lowest", "drawn"] = Field(
        "lowest",
        description="the hard negative: lowest takes the worst candidate; drawn takes a random candidate"
        " except the positive",
    )

    @model_validator(mode="after")
    def _prompts_are_of_default_rankings(self) -> Self:
        if self.prompts is not None and self.rankings != DEFAULT:
            raise ValueError("prompts are for the default rankings; write others into rankings: judge.prompt")
        return self

    def labellers(self) -> Mapping[str, Labeller]:
        """Return key in the settings -> ranking."""
        rankings = self.rankings
        if self.prompts is not None:
            own = (self.prompts.relevance, self.prompts.likelihood)
            rankings = tuple(
                Labeller(judge=judge if prompt is None else prompt.of(judge))
                for prompt, judge in zip(own, JUDGES, strict=True)
            )
        return {f"rankings.{index}": labeller for index, labeller in enumerate(rankings)}

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the models of the rankings, and the encoder that searches."""
        encoder = {} if self.encoder is None else {ENCODER: TrainedModel("none", self.encoder, (), 0)}
        return {**super().needs(), **encoder}

    def others(self) -> tuple[str, ...]:
        """Return the names of the sources that trained rankings learn from, and of the passages' source."""
        return (*super().others(), *([] if self.source is None else [self.source]))

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return requests and tokens; None without an LLM.

        Each ranking by an LLM takes one request per record and candidate.
        """
        each = [labeller.asks(num_records * (self.number + 1)) for labeller in self.labellers().values()]
        asked = [amount + ChatAmount(0, LONGER * amount.num_requests, 0) for amount in each if amount]
        return sum(asked, ChatAmount(0, 0, 0)) if asked else None

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield triplets; records with fewer than two clearly scored candidates are dropped and counted."""
        pairs = sorted(set(records.rows_of("anchor", "positive")))
        candidates = self._candidates(pairs, context)
        fused = self._fused(candidates, context)
        num_changed = num_kept = 0
        for one in records:
            ranked = fused[one.anchor, one.positive]
            if len(ranked) < 2:
                continue
            num_kept += 1
            num_changed += ranked[0][1] != one.positive
            yield _relabelled(one, ranked[0][1], self._negative(one, [text for _, text in ranked[1:]]))
        context.count_dropped("fewer than two passages have a clear rank", len(records) - num_kept)
        if num_kept:
            context.measure(f"{NAME}: share of positives changed", num_changed / num_kept)

    def _negative(self, record: Pair | Triplet, others: Sequence[str]) -> str:
        """Return the hard negative; `others`: all candidates but the best one, best first."""
        if self.negative == "lowest":
            return others[-1]
        return min(others, key=lambda text: digest(NAME, self.seed, record.anchor, text))

    def _candidates(
        self, pairs: Sequence[tuple[str, str]], context: StepContext
    ) -> dict[tuple[str, str], list[str]]:
        """Return pair -> its candidates: its own passage, then the nearest other passages."""
        texts = sorted(
            {own for _, own in pairs} if self.source is None else self._passages(self.source, context)
        )
        if len(texts) < 2:
            raise UserError(f"{NAME}: {len(texts)} different passages leave no negative; needed: 2")
        queries = list(dict.fromkeys(query for query, _ in pairs))
        k = min(self.number + 1, len(texts))
        if self.encoder is None:
            from synthbench.bm25 import nearest_by_words
            from synthbench.words.scripts import words_alone

            rows: Sequence[Sequence[int]] = nearest_by_words(texts, k, queries, words_alone).indices
        else:
            rows = self._nearest(texts, queries, k, context)
        found = dict(zip(queries, rows, strict=True))
        return {
            (query, own): [own, *[texts[row] for row in found[query] if texts[row] != own][: self.number]]
            for query, own in pairs
        }

    def _passages(self, source: str, context: StepContext) -> set[str]:
        """Return a source's passages, without its queries; raises UserError if it has none."""
        data = context.source(source)
        if data is None or data.kind is not RecordKind.RETRIEVAL:
            passages = set(() if data is None else data.texts)
        else:
            passages = {one.text for one in data if isinstance(one, RetrievalText) and not one.is_query}
        if not passages:
            raise UserError(f"{NAME}: source '{source}' has no passage to search, or its data are missing")
        return passages

    def _nearest(
        self, texts: Sequence[str], queries: Sequence[str], k: int, context: StepContext
    ) -> list[list[int]]:
        """Return the indices of the k passages with the highest cosines for each query, nearest first."""
        from synthbench.bm25.top_k import greatest

        encoder, folder = context.encoder(ENCODER), context.scratch()
        passages = unit_vectors(of_passages(encoder), texts, folder / "passages.f32")
        asked = unit_vectors(of_queries(encoder), queries, folder / "queries.f32")
        step = max(1, CELLS // len(texts))
        blocks = (asked[start : start + step] @ passages.T for start in range(0, len(queries), step))
        return [row for block in blocks for row in greatest(block, k)[0].tolist()]

    def _fused(
        self, candidates: Mapping[tuple[str, str], Sequence[str]], context: StepContext
    ) -> dict[tuple[str, str], _Fused]:
        """Return pair -> its candidates with the sum of 1 / rank, best first; tied ranks are averaged."""
        from scipy.stats import rankdata

        pairs = sorted({(query, text) for (query, _), texts in candidates.items() for text in texts})
        scores: dict[tuple[str, str], list[float]] = defaultdict(list)
        for key, labeller in self.labellers().items():
            for index, verdict in labeller.own_scores(len(pairs), pairs.__getitem__, key, context):
                if verdict.value is not None:
                    scores[pairs[index]].append(verdict.value)
        found: dict[tuple[str, str], _Fused] = {}
        for (query, own), texts in candidates.items():
            clear = [text for text in texts if len(scores[query, text]) == len(self.rankings)]
            ranks = rankdata([[-score for score in scores[query, text]] for text in clear], axis=0)
            # Sums in another order differ in their last bits, which would decide ties.
            fused = (1 / ranks).sum(axis=1).round(12).tolist() if clear else []
            # Candidates come with the own passage first, then nearest first, which decides ties.
            found[query, own] = sorted(zip(fused, clear, strict=True), key=lambda each: -each[0])
        return found


def _relabelled(record: Pair | Triplet, positive: str, negative: str) -> Triplet:
    shared = {each.name: getattr(record, each.name) for each in fields(Record)}
    return Triplet(
        **shared,
        anchor=record.anchor,
        positive=positive,
        negative=negative,
        former_positive=record.positive,
    )
