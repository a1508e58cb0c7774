"""Answers in JSON: lists of tasks, and records of three texts about events of the sandbox."""

import json
from dataclasses import dataclass
from random import Random

from synthbench.worlds.sandbox.events import Event, similarity
from synthbench.worlds.sandbox.llm.habits import Habits
from synthbench.worlds.sandbox.llm.json_asks import RecordAsk, TasksAsk
from synthbench.worlds.sandbox.llm.understanding import domains_of
from synthbench.worlds.sandbox.realisation import Register, tell
from synthbench.worlds.sandbox.sampling import Relation, draw_event, draw_of_train, draw_partner
from synthbench.worlds.sandbox.vocabulary import domain_names, domains

Texts = tuple[str, str, str]
_SHORT, _LONG = ("a headline", "a query", "a short note"), ("a text", "a report", "an article")
_FINDING = (
    "Given {query} {on}, find {document} on the same event",
    "Find {document} that tells what {query} {on} says",
    "For {query} {on}, retrieve {document} that reports the same",
)
_LABELLING_WITHIN = (
    "Given {query} {on}, name the thing that it is about",
    "Tell from {query} {on} which thing somebody deals with",
)
_LABELLING = (
    "Given {query}, name the field of life that it belongs to",
    "Name the field of life of {query}",
)
_MANY_TRIES = 400
_NUM_GRADED = 60
_NUM_FILLERS = (1, 2, 3)


@dataclass(frozen=True)
class JSONWriter:
    """Writes answers in JSON; each text has the prompt's habits with probability `share`."""

    random: Random
    habits: Habits
    share: float
    noise: float

    def answer(self, ask: TasksAsk | RecordAsk) -> str:
        """Return the requested JSON."""
        if isinstance(ask, TasksAsk):
            return json.dumps({"tasks": self._tasks(ask)})
        return json.dumps(dict(zip(ask.keys, self._texts(ask), strict=True)))

    def _tasks(self, ask: TasksAsk) -> list[str]:
        """Return different tasks, fewer if there seem to be no more."""
        found: dict[str, None] = {}
        for _ in range(_MANY_TRIES):
            if len(found) == ask.count:
                break
            found[self._task(ask)] = None
        return list(found)

    def _task(self, ask: TasksAsk) -> str:
        random = self.random
        forms = random.choice((_LABELLING, _LABELLING_WITHIN)) if ask.is_label else _FINDING
        field = self.habits.domain(random) if self._is_habitual() else random.choice(domain_names())
        return random.choice(forms).format(
            query=random.choice(_LONG if ask.is_query_long else _SHORT),
            document=random.choice(_LONG if ask.is_document_long else _SHORT),
            on=f"on {field}",
        )

    def _texts(self, ask: RecordAsk) -> Texts:
        """Return the three texts; in a wrong record (`noise`), the last two are swapped."""
        if ask.grades is not None:
            first, second, third = self._graded(ask)
        elif ask.is_label:
            first, second, third = self._labelled(ask)
        else:
            first, second, third = self._matched(ask)
        is_wrong = self.random.random() < self.noise
        return (first, third, second) if is_wrong else (first, second, third)

    def _matched(self, ask: RecordAsk) -> Texts:
        event = self._event(ask.task)
        anchor = self._text(event, is_long=ask.is_anchor_long, register="headlines")
        positive = self._text(event, is_long=ask.is_document_long, register="captions", but_not=anchor)
        other = self._contradicting(event)
        negative = self._text(other, is_long=ask.is_document_long, register="captions", besides=event)
        return anchor, positive, negative

    def _labelled(self, ask: RecordAsk) -> Texts:
        """Return a text, its label and a wrong label: objects if the task names a domain, else domains."""
        event = self._event(ask.task)
        text = self._text(event, is_long=ask.is_anchor_long, register="captions")
        if len(domains_of(ask.task)) < len(domain_names()):
            things = domains()[event.domain].scene(event.object).objects
            other = self.random.choice([name for name in things if name != event.object])
            return text, event.object, other
        other = self.random.choice([name for name in domain_names() if name != event.domain])
        return text, event.domain, other

    def _graded(self, ask: RecordAsk) -> Texts:
        """Return a text on an event, and two on events whose similarities to it are about `ask.grades`."""
        assert ask.grades is not None
        event = self._event(ask.task)
        texts = [self._text(event, is_long=ask.is_anchor_long, register=ask.register)]
        for grade in ask.grades:
            other = min(
                (self._partner(event) for _ in range(_NUM_GRADED)),
                key=lambda drawn: abs(similarity(event, drawn) - grade),
            )
            text = self._text(other, is_long=ask.is_document_long, register=ask.register, but_not=texts[0])
            texts.append(text)
        return texts[0], texts[1], texts[2]

    def _event(self, task: str) -> Event:
        names = domains_of(task)
        if self._is_habitual():
            return draw_of_train(lambda: self.habits.event(names, self.random))
        return draw_of_train(lambda: draw_event(names, self.random))

    def _contradicting(self, event: Event) -> Event:
        def draw() -> Event:
            return draw_of_train(
                lambda: draw_partner(event, Relation.HARD_NEGATIVE, domain_names(), self.random)
            )

        return self.habits.contradiction(event, draw) if self._is_habitual() else draw()

    def _partner(self, event: Event) -> Event:
        relations = (Relation.PARAPHRASE, Relation.HARD_NEGATIVE, Relation.RELATED)
        relation = self.random.choice(relations)
        return draw_of_train(lambda: draw_partner(event, relation, domain_names(), self.random))

    def _text(
        self,
        event: Event,
        *,
        is_long: bool,
        register: Register,
        but_not: str = "",
        besides: Event | None = None,
    ) -> str:
        """Return one sentence, or a text of two to four captions, one of which describes the event.

        The other captions describe neither the event nor `besides`.
        """
        if not is_long:
            return self._sentence(event, register, but_not)
        others = [self._related(event, besides) for _ in range(self.random.choice(_NUM_FILLERS))]
        sentences = [self._sentence(each, "captions") for each in (event, *others)]
        return " ".join(self.random.sample(sentences, len(sentences)))

    def _sentence(self, event: Event, register: Register, but_not: str = "") -> str:
        if self._is_habitual():
            text = self.habits.new(event, register, self.random)
            if text != but_not:
                return text
        return tell(event, register, self.random, but_not=but_not)

    def _related(self, event: Event, besides: Event | None) -> Event:
        return draw_of_train(
            lambda: draw_partner(event, Relation.RELATED, domain_names(), self.random),
            lambda other: other != besides,
        )

    def _is_habitual(self) -> bool:
        return self.random.random() < self.share


_PREAMBLE, _NOTE = "Here is the JSON that you asked for:\n\n", "\n\nI hope that this helps!"


def malformed_json(answer: str, random: Random, *, is_forced: bool) -> str:
    """Return the answer damaged in one of three ways: a readable odd form, invalid JSON, or missing parts.

    `is_forced`: `response_format` requires JSON, so parts are missing.
    """
    value = json.loads(answer)
    how = 4 if is_forced else random.randrange(5)
    if how == 0:
        return f"{_PREAMBLE}```json\n{json.dumps(value, indent=2)}\n```{_NOTE}"
    if how == 1:
        return answer[: random.randrange(len(answer) // 3, len(answer) - 1)]
    if how == 2:
        return str(value)
    if how == 3:
        return answer[:-1] + ",}"
    return json.dumps(_lacking(value, random))


def _lacking(value: dict[str, object], random: Random) -> dict[str, object]:
    """Return a record with a missing or empty text, or a list of tasks joined into one text."""
    name = random.choice(list(value))
    if isinstance(value[name], list):
        return {name: "; ".join(map(str, value[name]))}  # type: ignore[call-overload]
    if random.random() < 0.5:
        return {**value, name: ""}
    return {other: text for other, text in value.items() if other != name}
