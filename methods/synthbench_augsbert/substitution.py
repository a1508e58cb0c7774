"""A baseline for AugSBERT: gold pairs with words replaced or added by a masked language model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar, Literal

from pydantic import Field

from synthbench.api import (
    Blank,
    Expected,
    GenerationContext,
    MaskedLanguageModel,
    MaskedModel,
    Method,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    Unit,
    added_field,
    check_words,
    hashed_share,
    length_sorted_units,
    linear_pattern,
)

BATCH_PAIRS = 64  # pairs changed together; a killed run repeats at most this many
DONE = {"substitute": "replaced", "insert": "inserted"}
NEW_WORD = "_"  # holds the place of a word to insert; the model guesses words of letters alone
WORD = linear_pattern(r"\b[^\W\d_]++(?!\w)(?>(?:['’-][^\W\d_]++(?!\w))*)")


class ContextualSubstitution(Method):
    """Gold pairs with a share of both sentences' words replaced by a masked language model's guesses.

    With `action: insert`, the guesses are added before the chosen words instead. A pair keeps its gold score.
    This is the baseline "SBERT-NLPAug" of Thakur et al. 2021, section 5; the paper gives no amounts. The
    authors' example code inserts NLPAug's share of words, at most 10. Yields only the new pairs.
    """

    version = 1
    is_shardable = True
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = {"gold": RecordKind.SCORED_PAIR}

    language_model: MaskedLanguageModel = Field(description="the masked language model that guesses words")
    action: Literal["substitute", "insert"] = added_field(
        "substitute",
        description="substitute: replace the chosen words; insert: add a word before each of them",
    )
    max_words: int | None = added_field(
        None,
        ge=1,
        description="maximum number of chosen words per sentence; null: no limit",
    )
    share: float = Field(0.3, gt=0, le=1, description="share of a sentence's words to choose; at least one")
    top_k: int = Field(100, ge=1, description="number of most probable words to draw a word from")
    copies: int = Field(1, ge=1, description="new pairs per gold pair")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the choice of words and replacements")

    def revisions(self) -> Mapping[str, str]:
        """Return the content hash or commit of the language model."""
        return self.language_model.fingerprint()

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if the pairs have no spaces between words."""
        texts = (text for row in sources["gold"].text_rows() for text in row)
        check_words(texts, "contextual-substitution", "texts with spaces between words")

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most `copies` pairs for each gold pair; the time is unknown."""
        return Expected(self.copies * num_records["gold"] if "gold" in num_records else None)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per copy of a train gold pair; the units' positions follow gold's order.

        Replacements depend on the pair's id, the copy and the seed.
        """
        gold = [record for record in sources["gold"] if record.split == "train"]
        copies = [(record, copy) for record in gold for copy in range(self.copies)]
        lengths = [sum(map(len, record.texts())) for record, _ in copies]
        keys = [f"{record.id}/{copy}" for record, copy in copies]
        model: MaskedModel | None = None
        with context.progress.task("replacing words", len(copies)) as task:
            for piece, batch in enumerate(length_sorted_units(lengths, BATCH_PAIRS)):
                left = (index for index in batch if keys[index] not in context.finished_units)
                if context.is_mine(piece) and any(True for _ in left):
                    model = model or self.language_model.load(context.runtime)
                    changed = self._changed([copies[index] for index in batch], model)
                    for index, unit in zip(batch, changed, strict=True):
                        if keys[index] not in context.finished_units:
                            yield replace(unit, key=keys[index], position=index)
                task.advance(len(batch))

    def _changed(self, copies: Sequence[tuple[ScoredPair, int]], model: MaskedModel) -> Iterator[Unit]:
        """Yield a unit per copy, also for finished copies: the model's rounding depends on the batch."""
        drafts = [
            self._draft(text, f"{self.seed}\x1f{record.id}\x1f{copy}\x1f{side}")
            for record, copy in copies
            for side, text in enumerate(record.texts())
        ]
        while any(draft.word_indices for draft in drafts):
            turn = [draft for draft in drafts if draft.word_indices]
            blanks = [draft.next_blank() for draft in turn]
            for draft, words in zip(turn, model.guesses(blanks, self.top_k), strict=True):
                draft.fill(words)
        for (record, _), first, second in zip(copies, drafts[::2], drafts[1::2], strict=True):
            yield self._unit(record, first, second)

    def _draft(self, text: str, key: str) -> "_Draft":
        """Return a draft of a sentence, with its chosen words."""
        number = len(WORD.findall(text))
        wanted = max(1, round(self.share * number))
        order = sorted(range(number), key=lambda index: hashed_share(key, "word", index))
        chosen = order[: min(wanted, self.max_words or wanted)]
        if self.action == "insert":
            # From the last to the first, so that a new word does not shift the next ones.
            return _Draft(text, key, sorted(chosen, reverse=True), inserts=True)
        return _Draft(text, key, chosen)

    def _unit(self, gold: ScoredPair, first: "_Draft", second: "_Draft") -> Unit:
        if not (first.num_replaced or second.num_replaced):
            return Unit("", 0, (), {f"no word could be {DONE[self.action]}": 1})
        limit = "" if self.max_words is None else f" max_words={self.max_words}"
        action = "" if self.action == "substitute" else f"{self.action} "
        record = ScoredPair(
            sentence1=first.text,
            sentence2=second.text,
            score=gold.score,
            source_id=gold.id,
            method="contextual-substitution",
            generator=self.language_model.model,
            instruction=f"{action}share={self.share:g} top_k={self.top_k}{limit}",
            seed=self.seed,
        )
        return Unit("", 0, (record,))


@dataclass
class _Draft:
    """A sentence in progress; `word_indices`: the words to replace, or to insert a word before."""

    text: str
    key: str
    word_indices: list[int]
    inserts: bool = False
    num_replaced: int = 0

    def next_blank(self) -> Blank:
        start, end = list(WORD.finditer(self.text))[self.word_indices[0]].span()
        if not self.inserts:
            return Blank(self.text, start, end)
        text = f"{self.text[:start]}{NEW_WORD} {self.text[start:]}"
        return Blank(text, start, start + len(NEW_WORD))

    def fill(self, words: Sequence[tuple[str, float]]) -> None:
        """Draw a word by probability, with the replaced word's case; without words, change nothing."""
        blank, index = self.next_blank(), self.word_indices.pop(0)
        if not words:
            return
        drawn = hashed_share(self.key, "guess", index)
        reached = zip(words, accumulate(probability for _, probability in words), strict=True)
        word = next((word for (word, _), share in reached if drawn < share), words[-1][0])
        self.text = blank.filled(word[0].upper() + word[1:] if blank.word[0].isupper() else word)
        self.num_replaced += 1
