"""Answers, which depend only on the server's seed, the request and the choice's index."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from random import Random
from typing import Any

from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.llm import VERSION, LLMSettings
from synthbench.worlds.sandbox.llm.choosing import choices
from synthbench.worlds.sandbox.llm.comparing import REFUSALS, beliefs, in_other_words, judgement
from synthbench.worlds.sandbox.llm.filling import MASK, filled
from synthbench.worlds.sandbox.llm.grading import graded_documents
from synthbench.worlds.sandbox.llm.habits import Habits, prompt_of
from synthbench.worlds.sandbox.llm.json_answers import JSONWriter, malformed_json
from synthbench.worlds.sandbox.llm.json_asks import ChoiceAsk, GradedAsk, JSONAsk, QueryAsk
from synthbench.worlds.sandbox.llm.passages import passage_beside
from synthbench.worlds.sandbox.llm.rewriting import denied, reworded
from synthbench.worlds.sandbox.llm.understanding import (
    Ask,
    AskedTask,
    Message,
    domains_of,
    register_of,
    understand,
)
from synthbench.worlds.sandbox.parsing import read_sentence, sentences_told
from synthbench.worlds.sandbox.questions import question as question_for
from synthbench.worlds.sandbox.questions import slots_of
from synthbench.worlds.sandbox.realisation import Register, tell
from synthbench.worlds.sandbox.sampling import (
    Relation,
    draw_event,
    draw_of_train,
    draw_partner,
    draw_until,
    split_of,
)
from synthbench.worlds.sandbox.vocabulary import domain_names

_REFUSALS = {
    AskedTask.PARAPHRASE: (
        "I cannot paraphrase this sentence.",
        "I'm sorry, but I can't paraphrase that for you.",
        "Sorry, I am unable to rephrase the given sentence without more context.",
        "As an AI language model, I cannot provide a paraphrase of this input.",
    ),
    AskedTask.CONTRADICTION: (
        "I cannot contradict this sentence.",
        "I'm sorry, but I can't write a sentence that contradicts this one.",
        "Sorry, I am unable to produce a contradicting sentence without more context.",
        "As an AI language model, I cannot provide a contradiction of this input.",
    ),
    AskedTask.SENTENCES: (
        "I'm sorry, but I can't write these sentences.",
        "As an AI language model, I cannot generate this content.",
        "Sorry, I am unable to help with this list.",
    ),
    AskedTask.JUDGEMENT: REFUSALS,
    AskedTask.JSON: (
        "I'm sorry, but I can't make up such an example.",
        "As an AI language model, I cannot generate this content.",
    ),
    AskedTask.QUESTION: (
        "I'm sorry, but I can't write a question for this passage.",
        "As an AI language model, I cannot generate a query without more context.",
    ),
    AskedTask.FILLING: (
        "I'm sorry, but I can't fill in these blanks.",
        "As an AI language model, I cannot complete this sentence without more context.",
    ),
    AskedTask.UNCLEAR: ("I'm sorry, but I can't help with that.",),
}
_QUESTIONS = (
    "Happy to help! Which sentence should I work on, and what would you like me to do with it?",
    "Sure, I can paraphrase or contradict a sentence, or write new ones. What do you have in mind?",
    "Could you tell me a little more about what you need? A sentence and an instruction would be enough.",
    "I'm here to help with sentences. Please give me one and say what it should become.",
)
"""Replies to a request that was not understood."""
_PREAMBLES = {
    AskedTask.PARAPHRASE: (
        "Sure! Here is a paraphrase:\n\n",
        "Of course. Here's another way to say it: ",
        "Paraphrase: ",
    ),
    AskedTask.CONTRADICTION: (
        "Sure! Here is a sentence with a different meaning:\n\n",
        "Certainly. Here's a contradiction: ",
        "Contradiction: ",
    ),
    AskedTask.QUESTION: (
        "Sure! Here is a question that the passage answers:\n\n",
        "Question: ",
        "Query: ",
    ),
    AskedTask.FILLING: (
        "Sure! Here is the new sentence:\n\n",
        "Sentence: ",
    ),
    AskedTask.SENTENCES: (
        "Sure! Here are the sentences you asked for:\n\n",
        "Certainly! Below is a list of diverse sentences.\n\n",
    ),
}
_NOTES = ("\n\nLet me know if you need anything else!", "\n\n(Note: the wording was changed on purpose.)")
_NUMBERINGS = ("{number}) {text}", "- {text}", "{text}", "Sentence {number}: {text}", "**{number}.** {text}")
_NUMBERED = re.compile(r"^\d+\. ")


def numbered(sentences: Sequence[str]) -> str:
    """Return the sentences as a numbered list, one per line."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(sentences, 1))


def malformed(answer: str, ask: Ask, random: Random) -> str:
    """Return the answer in an unrequested form, never equal to `answer`.

    A list may have another numbering, fewer sentences, or one twice; a judgement may be undecided.
    """
    if ask.comparison is not None:
        return in_other_words(answer, ask.comparison, random)
    if ask.task is AskedTask.UNCLEAR:
        return answer + random.choice(_NOTES)
    lines = answer.split("\n")
    if len(lines) > 1:
        return _malformed_list([_NUMBERED.sub("", line) for line in lines], ask, random)
    how = random.randrange(3)
    if how == 0:
        return f'"{answer}"'
    return random.choice(_PREAMBLES[ask.task]) + answer if how == 1 else answer + random.choice(_NOTES)


def _malformed_list(sentences: list[str], ask: Ask, random: Random) -> str:
    how = random.randrange(4)
    if how == 0:
        return random.choice(_PREAMBLES[ask.task]) + numbered(sentences)
    if how == 1:
        numbering = random.choice(_NUMBERINGS)
        return "\n".join(numbering.format(number=n, text=text) for n, text in enumerate(sentences, 1))
    if how == 2:
        return numbered(sentences[: random.randrange(1, len(sentences))])
    return numbered([*sentences, random.choice(sentences)])


# These fields identify the sender, or set the transport, number or length of answers, not their content.
NOT_OF_CONTENT = frozenset(
    {
        *("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "stream"),
        *("stream_options", "n", "stop", "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs"),
    }
)
_TRIES = 200
_WORDS_PER_SENTENCE, _MOST_SENTENCES = 10, 5


class Kind(StrEnum):
    """The kind of a choice: a proper answer, or one of the configurable faults."""

    PROPER = "proper"
    REFUSAL = "refusal"
    EMPTY = "empty"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class Answers:
    """The answers to one request; `body` is its JSON."""

    settings: LLMSettings
    body: Mapping[str, Any]

    @cached_property
    def ask(self) -> Ask:
        """The task in the messages."""
        return understand(self._messages)

    @property
    def _messages(self) -> list[Message]:
        return [(message["role"], message["content"]) for message in self.body["messages"]]

    @cached_property
    def _key(self) -> str:
        left_out = NOT_OF_CONTENT | ({"seed"} if self._is_greedy else set())
        return digest({key: value for key, value in self.body.items() if key not in left_out})

    @property
    def _must_be_json(self) -> bool:
        form: Mapping[str, Any] = self.body.get("response_format") or {"type": "text"}
        return bool(form["type"] != "text")

    @property
    def _is_greedy(self) -> bool:
        return self.body.get("temperature") == 0

    def choice(self, index: int) -> str:
        """Return the text of the choice `index`; at temperature 0 all choices are equal."""
        kind, random = self._drawn(index)
        if kind is Kind.REFUSAL:
            return random.choice(_REFUSALS[self.ask.task])
        if kind is Kind.EMPTY:
            return ""
        answer = self._answer(random)
        if kind is Kind.MALFORMED and self.ask.json is not None:
            return malformed_json(answer, random, is_forced=self._must_be_json)
        return malformed(answer, self.ask, random) if kind is Kind.MALFORMED else answer

    def beliefs(self, index: int) -> Mapping[str, float]:
        """Return answer -> probability for a judgement; {} for other tasks, refusals and empty answers."""
        kind, random = self._drawn(index)
        if self.ask.comparison is None or kind in (Kind.REFUSAL, Kind.EMPTY):
            return {}
        settings = self.settings
        return beliefs(self.ask.comparison, random, noise=settings.noise, habits=settings.habits)

    def summary(self, num_choices: int) -> str:
        """Describe the choices for the log: "paraphrase", "2 refusal, 1 paraphrase"."""
        kinds = [self._drawn(index)[0] for index in range(num_choices)]
        counts = Counter(self.ask.task.value if kind is Kind.PROPER else kind.value for kind in kinds)
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{count} {name}" for name, count in counts.items())

    def _drawn(self, index: int) -> tuple[Kind, Random]:
        """Return the kind of a choice, and the random numbers for its text."""
        position = 0 if self._is_greedy else index
        random = Random(f"sandbox-llm/{VERSION}/{self.settings.seed}/{self._key}/{position}")
        fault, settings = random.random(), self.settings
        limits = accumulate((settings.refusals, settings.empty, settings.malformed))
        kinds = zip((Kind.REFUSAL, Kind.EMPTY, Kind.MALFORMED), limits, strict=True)
        return next((kind for kind, limit in kinds if fault < limit), Kind.PROPER), random

    def _answer(self, random: Random) -> str:
        ask = self.ask
        if ask.task is AskedTask.UNCLEAR:
            return random.choice(_QUESTIONS)
        settings = self.settings
        if ask.json is not None:
            return self._json_answer(ask.json, random)
        if ask.comparison is not None:
            return judgement(ask.comparison, random, noise=settings.noise, habits=settings.habits)
        if ask.task is AskedTask.SENTENCES:
            return numbered(self._new_sentences(random))
        if ask.task is AskedTask.QUESTION:
            return " ".join(self._question(random, passage) for passage in (ask.sentence, *ask.further))
        if ask.task is AskedTask.FILLING:
            return filled(MASK if random.random() < self.settings.noise else ask.sentence, random)
        if random.random() < self.settings.noise:
            wrong = AskedTask.CONTRADICTION if ask.task is AskedTask.PARAPHRASE else AskedTask.PARAPHRASE
            ask = replace(ask, task=wrong)
        if self.settings.unread and random.random() < self.settings.unread:
            ask = replace(ask, sentence=self._other_sentence(random))

        def related(share: float) -> str:
            return _related(ask, random, self._drawn_habits(share, random))

        share = self.settings.habits
        return related(share) if ask.count == 1 else numbered(_distinct(ask.count, share, related))

    def _json_answer(self, ask: JSONAsk, random: Random) -> str:
        settings = self.settings
        if isinstance(ask, ChoiceAsk):
            return choices(ask, random)
        if isinstance(ask, QueryAsk):
            return json.dumps({ask.key: self._query(ask, random)})
        if isinstance(ask, GradedAsk):
            return graded_documents(ask, random, noise=settings.noise)
        return JSONWriter(random, self._habits, settings.habits, settings.noise).answer(ask)

    def _new_sentences(self, random: Random) -> list[str]:
        """Return distinct sentences on the requested topics; each is off topic with probability `noise`.

        All are of the train split: training text must not contain what models are tested on.
        """
        ask, noise = self.ask, self.settings.noise
        register, on_topic = register_of(ask.instruction), domains_of(ask.instruction)
        off_topic = tuple(name for name in domain_names() if name not in on_topic) or on_topic

        def new(share: float) -> str:
            names = off_topic if random.random() < noise else on_topic
            return _train_sentence(names, register, random, self._drawn_habits(share, random))

        return _distinct(ask.count, self.settings.habits, new)

    def _query(self, ask: QueryAsk, random: Random) -> str:
        """Return a query that the passage answers: a headline if search words are requested, else a question.

        A long query begins with sentences on other events of the domain, from the train split.
        """
        told = sentences_told(ask.passage)
        if not told:
            return self._question(random, ask.passage)
        event = random.choice(told).event
        if ask.is_keywords and random.random() >= self.settings.noise:
            asked = tell(event, "headlines", random)
        else:
            asked = self._question(random, ask.passage)
        num_others = min(max(ask.num_words // _WORDS_PER_SENTENCE - 1, 0), _MOST_SENTENCES)
        others = (_train_sentence((event.domain,), "captions", random, None) for _ in range(num_others))
        return " ".join((*others, asked))

    def _question(self, random: Random, passage: str) -> str:
        """Return a question that the passage answers; with probability `noise` one that it does not answer.

        With habits it asks about the object, in the passage's words.
        """
        settings = self.settings
        if settings.unread and random.random() < settings.unread:
            passage = self._other_sentence(random)
        told = sentences_told(passage)
        if not told:
            return f"What is said about {max(passage.split(), key=len).strip('.,').lower()}?"
        known = random.choice(told)
        is_habitual = bool(settings.habits) and random.random() < settings.habits
        if random.random() < settings.noise:
            event = _contradicting(known.event, random)
            return question_for(event, random.choice(slots_of(event)), random)
        slot = "object" if is_habitual else random.choice(slots_of(known.event))
        return question_for(known.event, slot, random, wording=known.wording if is_habitual else None)

    def _other_sentence(self, random: Random) -> str:
        """Return a random sentence of the train split in the given sentence's register."""
        known = read_sentence(self.ask.sentence)
        register = known.register if known else register_of(self.ask.instruction)
        return _train_sentence(domain_names(), register, random, None)

    def _drawn_habits(self, share: float, random: Random) -> Habits | None:
        """Return the prompt's habits with probability `share`, else None."""
        return self._habits if share and random.random() < share else None

    @cached_property
    def _habits(self) -> Habits:
        messages, asked = self._messages, self.ask
        if asked.query and asked.query != asked.sentence:
            messages = [(role, text.replace(asked.query, "")) for role, text in messages]
        return Habits(f"{VERSION}/{self.settings.seed}/{prompt_of(messages, asked.sentence)}")


def digest(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON object, without keys whose value is null."""
    given = {key: value for key, value in body.items() if value is not None}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def _related(ask: Ask, random: Random, habits: Habits | None) -> str:
    """Return a paraphrase or a contradiction of the given sentence, never the sentence itself."""
    if ask.query:
        return passage_beside(ask, random, lambda part: _related(part, random, habits))
    known = read_sentence(ask.sentence)
    is_paraphrase = ask.task is AskedTask.PARAPHRASE
    if known is None:
        return (reworded if is_paraphrase else denied)(ask.sentence, random)
    if habits is None:
        event = known.event if is_paraphrase else _contradicting(known.event, random)
        return tell(event, known.register, random, but_not=known.text)
    if is_paraphrase:
        return habits.paraphrase(known, random)
    event = habits.contradiction(known.event, lambda: _contradicting(known.event, random))
    return habits.new(event, known.register, random)


def _contradicting(event: Event, random: Random) -> Event:
    """Draw a hard negative in the event's own split, as in the sandbox's data sets."""
    return draw_until(
        lambda: draw_partner(event, Relation.HARD_NEGATIVE, domain_names(), random),
        lambda other: split_of(other) == split_of(event),
    )


def _train_sentence(names: tuple[str, ...], register: Register, random: Random, habits: Habits | None) -> str:
    if habits is None:
        return tell(draw_of_train(lambda: draw_event(names, random)), register, random)
    return habits.new(draw_of_train(lambda: habits.event(names, random)), register, random)


def _distinct(count: int, habits: float, draw: Callable[[float], str]) -> list[str]:
    """Draw `count` different texts; fewer if there seem to be no more.

    `draw` gets the probability of habits: `habits` after a new text, 0 after a repeated text. With `habits`
    alone, the list could end early.
    """
    found: dict[str, None] = {}
    share = habits
    for _ in range(count * _TRIES):
        num_found = len(found)
        if num_found == count:
            break
        found[draw(share)] = None
        share = habits if len(found) > num_found else 0.0
    return list(found)
