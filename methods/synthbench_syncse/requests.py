"""Requests to the LLM (arXiv 2305.12599): equal settings and sentence ids give equal requests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from synthbench.api import ChatAmount, drawn, estimated_amount, filled, hashed_number
from synthbench_syncse.pools import (
    NUM_CAPTIONS,
    NUM_EXAMPLES,
    NUM_EXEMPLARS,
    NUM_TOPICS,
    LabelPool,
    SentencePool,
)

Message = dict[str, str]
SENTENCES_PER_REQUEST = 20
_INPUT = "Input: {}"
_ALL = "all"


@dataclass(frozen=True)
class SynCSERequest:
    """The messages of one request, its instruction (for provenance), and its sample index."""

    messages: tuple[Message, ...]
    instruction: str
    sample: int


@dataclass(frozen=True)
class LabelChats:
    """Requests for a positive or a hard negative: one of the pool's prompts, with five exemplars as turns.

    `kind` is "positive" or "negative". `is_fixed`: all sentences get the same prompt and exemplars, as in the
    paper's naive generation.
    """

    pool: LabelPool
    kind: str
    seed: int
    is_fixed: bool = False

    def chat(self, sentence_id: str, sentence: str) -> SynCSERequest:
        """Return the request for one sentence, whose id selects prompt and exemplars."""
        of = (self.seed, self.kind, _ALL if self.is_fixed else sentence_id)
        (name,) = drawn(tuple(self.pool.prompts), 1, *of, "prompt")
        prompt = self.pool.prompts[name]
        exemplars = drawn(prompt.exemplars, NUM_EXEMPLARS, *of, "exemplars")
        turns = [(_input(each.sentence), each.answer) for each in exemplars]
        messages = _messages(prompt.instruction, turns, _input(sentence))
        return SynCSERequest(messages, name, hashed_number(self.seed))


@dataclass(frozen=True)
class SentenceChats:
    """Requests for new sentences, by index.

    A request names one genre (in turn) and six topics, after one example of ten sentences of that genre. With
    a `domain` it names that domain and six aspects, without an example; with `is_naive` it asks for sentences
    of any kind, always in the same words after the same example.
    """

    pool: SentencePool
    seed: int
    genres: tuple[str, ...] = ()
    domain: str = ""
    is_naive: bool = False

    def chat(self, index: int) -> SynCSERequest:
        """Return the request for SENTENCES_PER_REQUEST sentences."""
        messages, instruction = self._messages(index)
        return SynCSERequest(messages, instruction, hashed_number(self.seed, index))

    def _messages(self, index: int) -> tuple[tuple[Message, ...], str]:
        if self.is_naive:
            return self._naive()
        return self._on_domain(index) if self.domain else self._on_genre(index)

    def _on_genre(self, index: int) -> tuple[tuple[Message, ...], str]:
        name = self._genres_in_turn[index % len(self._genres_in_turn)]
        genre = self.pool.genres[name]
        of = (self.seed, "sentences", index)
        is_caption = name in self.pool.caption_genres
        prompts = self.pool.caption_prompts if is_caption else self.pool.prompts
        (prompt,) = drawn(prompts, 1, *of, "prompt")
        examples = drawn(genre.examples, NUM_EXAMPLES, *of, "examples")
        captions = drawn(genre.examples, NUM_CAPTIONS, *of, "captions")
        values = {
            "genre": genre.description,
            "topics": ", ".join(drawn(self.pool.topics, NUM_TOPICS, *of, "topics")),
            "examples": ", ".join(f'"{caption}"' for caption in captions),
        }
        return _after_example(filled(prompt, values), examples), name

    def _on_domain(self, index: int) -> tuple[tuple[Message, ...], str]:
        of = (self.seed, "sentences", self.domain, index)
        (prompt,) = drawn(self.pool.domain_prompts, 1, *of, "prompt")
        values = {
            "domain": self.pool.domains.get(self.domain, f"texts on {self.domain}"),
            "topics": ", ".join(drawn(self.pool.aspects, NUM_TOPICS, *of, "aspects")),
            "number": SENTENCES_PER_REQUEST,
        }
        return (_message("user", filled(prompt, values)),), self.domain

    def _naive(self) -> tuple[tuple[Message, ...], str]:
        naive = self.pool.naive
        if naive is None:
            raise ValueError("the pool has no naive prompt")
        return _after_example(naive.prompt, naive.examples), "naive"

    @cached_property
    def _genres_in_turn(self) -> tuple[str, ...]:
        names = self.genres or tuple(self.pool.genres)
        return drawn(names, len(names), self.seed, "genres")


def numbered(sentences: Iterable[str]) -> str:
    """Return the sentences as a numbered list."""
    return "\n".join(f"{position}. {sentence}" for position, sentence in enumerate(sentences, 1))


def _after_example(prompt: str, examples: Sequence[str]) -> tuple[Message, ...]:
    shown = filled(prompt, {"number": len(examples)})
    return (
        _message("user", shown),
        _message("assistant", numbered(examples)),
        _message("user", filled(prompt, {"number": SENTENCES_PER_REQUEST})),
    )


def _messages(instruction: str, turns: Iterable[tuple[str, str]], last: str) -> tuple[Message, ...]:
    messages = [_message("system", instruction)]
    for sentence, answer in turns:
        messages += [_message("user", sentence), _message("assistant", answer)]
    return (*messages, _message("user", last))


def _input(sentence: str) -> str:
    """Return a sentence as a user's turn, on one line, since a line break would look like its end."""
    return _INPUT.format(" ".join(sentence.split()))


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def amount(num_requests: int, chats: Iterable[SynCSERequest], tokens_per_answer: int) -> ChatAmount:
    """Estimate the tokens of `num_requests` requests from the messages of a few of them."""
    return estimated_amount(num_requests, (chat.messages for chat in chats), tokens_per_answer)
