"""Requests to the LLM (arXiv 2305.12599): equal settings and sentence ids give equal requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from synthbench.api import Exemplar, Prompt, PromptChat, drawn, drawn_chat, hashed_number
from synthbench_syncse.prompts import (
    NUM_CAPTIONS,
    NUM_EXAMPLES,
    NUM_TOPICS,
    LabelPrompt,
    SentencePrompts,
)

SENTENCES_PER_REQUEST = 20
_ALL = "all"


@dataclass(frozen=True)
class LabelChats:
    """Requests for a positive or a hard negative, by one of the prompts.

    `kind` is "positive" or "negative". `is_fixed`: all sentences get the same prompt and exemplars, as in the
    paper's naive generation. `exemplars` replace the prompts' own.
    """

    prompts: Sequence[LabelPrompt]
    kind: str
    seed: int
    is_fixed: bool = False
    exemplars: Sequence[Exemplar] | None = None

    def chat(self, sentence_id: str, sentence: str) -> PromptChat:
        """Return the request for one sentence, whose id selects prompt and exemplars."""
        of = (self.seed, self.kind, _ALL if self.is_fixed else sentence_id)
        chat = drawn_chat(self.prompts, {"sentence": sentence}, *of, exemplars=self.exemplars)
        return replace(chat, sample=hashed_number(self.seed))


@dataclass(frozen=True)
class SentenceChats:
    """Requests for new sentences, by index.

    A request names one genre (in turn) and six topics, after one example of ten sentences of that genre. With
    a `domain` it names that domain and six aspects, without an example; with `is_naive` it asks for sentences
    of any kind, always in the same words after the same example.
    """

    pool: SentencePrompts
    seed: int
    genres: tuple[str, ...] = ()
    domain: str = ""
    is_naive: bool = False

    def chat(self, index: int) -> PromptChat:
        """Return the request for SENTENCES_PER_REQUEST sentences; `name`: genre, domain or "naive"."""
        if self.is_naive:
            chat = self._naive()
        else:
            chat = self._on_domain(index) if self.domain else self._on_genre(index)
        return replace(chat, sample=hashed_number(self.seed, index))

    def _on_genre(self, index: int) -> PromptChat:
        name = self._genres_in_turn[index % len(self._genres_in_turn)]
        genre = self.pool.genres[name]
        of = (self.seed, "sentences", index)
        is_caption = name in self.pool.caption_genres
        prompts = (is_caption and self.pool.caption_prompts) or self.pool.prompts
        examples = drawn(genre.examples, NUM_EXAMPLES, *of, "examples")
        captions = drawn(genre.examples, NUM_CAPTIONS, *of, "captions")
        values = {
            "genre": genre.description,
            "topics": ", ".join(drawn(self.pool.topics, NUM_TOPICS, *of, "topics")),
            "examples": ", ".join(f'"{caption}"' for caption in captions),
        }
        return replace(_after_example(prompts, values, examples, *of), name=name)

    def _on_domain(self, index: int) -> PromptChat:
        of = (self.seed, "sentences", self.domain, index)
        values = {
            "domain": self.pool.domains.get(self.domain, f"texts on {self.domain}"),
            "topics": ", ".join(drawn(self.pool.aspects, NUM_TOPICS, *of, "aspects")),
            "number": SENTENCES_PER_REQUEST,
        }
        return replace(drawn_chat(self.pool.domain_prompts or (), values, *of), name=self.domain)

    def _naive(self) -> PromptChat:
        naive = self.pool.naive
        if naive is None:
            raise ValueError("the pool has no naive prompt")
        return replace(_after_example(naive.prompt, {}, naive.examples, self.seed), name="naive")

    @cached_property
    def _genres_in_turn(self) -> tuple[str, ...]:
        names = self.genres or tuple(self.pool.genres)
        return drawn(names, len(names), self.seed, "genres")


def numbered(sentences: Iterable[str]) -> str:
    """Return the sentences as a numbered list."""
    return "\n".join(f"{position}. {sentence}" for position, sentence in enumerate(sentences, 1))


def _after_example(
    prompts: Sequence[Prompt], values: Mapping[str, object], examples: Sequence[str], *of: object
) -> PromptChat:
    shown = {"number": len(examples), "answer": numbered(examples)}
    wanted = {**values, "number": SENTENCES_PER_REQUEST}
    return drawn_chat(prompts, wanted, *of, exemplars=[shown])
