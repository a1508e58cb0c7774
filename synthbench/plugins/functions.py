"""Methods written as one function, whose parameters are its sources, its LLM and its settings.

from synthbench.api import LLM, ScoredPair, method, sentence_in

@method
def paraphrased(sentences: list[str], llm: LLM, temperature: float = 1.0) -> Iterator[ScoredPair]:
    prompts = [f'Paraphrase this sentence: "{sentence}"' for sentence in sentences]
    for sentence, answer in zip(sentences, llm.ask(prompts, temperature=temperature)):
        if answer:
            yield ScoredPair(sentence1=sentence, sentence2=sentence_in(answer), score=1.0)
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from types import NoneType, UnionType, new_class
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints, overload

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, Failure, Record, RecordKind, Sentence
from synthbench.llm.answered import why_unusable
from synthbench.llm.asking import estimated_amount
from synthbench.llm.client import LLM
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.json_answers import REFUSAL
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.models.work import Expected
from synthbench.plugins.contracts import GenerationContext, Method

Function = Callable[..., Iterable[Record]]
TOKENS_PER_ANSWER = 18
"""Default estimate of the tokens of an answer: one sentence."""
_MOST_REHEARSED = 8
_MOST_REQUESTS = 10_000
_RETURNS = "an Iterator of the records that it yields, such as `-> Iterator[ScoredPair]`"


class FunctionMethod(Method):
    """A method that calls a function; the decorator `method` makes its subclasses."""

    function: ClassVar[Function]
    llm_name: ClassVar[str] = ""
    tokens_per_answer: ClassVar[int] = TOKENS_PER_ANSWER

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record]:
        """Yield the function's records, and failures for unusable records and prompts without an answer."""
        roles = (*self.source_roles, *self.optional_source_roles)
        given = {role: _values(sources[role]) if role in sources else None for role in roles}
        return self._called(given, context.llm if self.uses_llm else None)

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Estimate the requests by calling the function on a few made-up records; None if that fails."""
        found = self._expected(num_records)
        return None if found is None else found[0]

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Estimate the number of records by the same calls as `asks`; unknown without an LLM."""
        found = self._expected(num_records)
        return Expected() if found is None else Expected(found[1])

    def _called(self, given: Mapping[str, Sequence[Any] | None], llm: LLM | None) -> Iterator[Record]:
        settings = {name: getattr(self, name) for name in type(self).model_fields}
        asked = {} if llm is None else {self.llm_name: llm}
        for record in type(self).function(**given, **settings, **asked):
            if llm is not None and isinstance(record, Record):
                yield from _taken(llm.failures)
                yield _written(record, llm.model)
            else:
                yield record
        if llm is not None:
            yield from _taken(llm.failures)

    def _expected(self, num_records: Mapping[str, int]) -> tuple[ChatAmount, int] | None:
        """Return the expected requests and records, extrapolated from calls on up to 8 made-up records.

        None without an LLM, if a required source's size is unknown, or if the function raises an error.
        """
        if not self.uses_llm or not self.source_roles.keys() <= num_records.keys():
            return None
        largest = max(num_records.values(), default=0)
        sizes = (largest,) if largest <= _MOST_REHEARSED else (_MOST_REHEARSED // 2, _MOST_REHEARSED)
        llms = [_Rehearsal() for _ in sizes]
        try:
            made = [
                self._rehearsed(_scaled(num_records, size), llm)
                for size, llm in zip(sizes, llms, strict=True)
            ]
        except Exception:  # noqa: BLE001 - whatever a function does with texts that it was not written for
            return None
        requests, records = (
            max(0, ends[-1] + (ends[-1] - ends[0]) * (largest - sizes[-1]) // max(sizes[-1] - sizes[0], 1))
            for ends in ([len(llm.asked) for llm in llms], made)
        )
        chats = [request.messages for request in llms[-1].asked]
        return estimated_amount(requests, chats, self.tokens_per_answer), records

    def _rehearsed(self, sizes: Mapping[str, int], llm: "_Rehearsal") -> int:
        """Return how many records the function yields for made-up ones; `sizes`: role -> number of these."""
        kinds = {**self.source_roles, **self.optional_source_roles}
        given = {role: _made_up(kind, sizes[role]) if role in sizes else None for role, kind in kinds.items()}
        return sum(1 for _ in self._called(given, LLM("", "", llm)))


@overload
def method(function: Function) -> type[FunctionMethod]: ...


@overload
def method(
    *, version: int = 1, tokens_per_answer: int = TOKENS_PER_ANSWER
) -> Callable[[Function], type[FunctionMethod]]: ...


def method(
    function: Function | None = None, *, version: int = 1, tokens_per_answer: int = TOKENS_PER_ANSWER
) -> Any:
    """Turn a function that yields records into a method.

    A parameter is a source (`sentences: list[str]`, `gold: list[ScoredPair]`; `| None = None` makes it
    optional), the LLM (`llm: LLM`), or a setting: a key of the experiment file. The function must be pure: a
    killed run calls it again and takes the LLM's answers from the cache. With an LLM, a record becomes a
    failure if one of its texts is empty or repeats another one. Raise `version` when the same settings give
    other records; `plan` estimates costs from `tokens_per_answer`.

    Raises UserError for a parameter without a type or with a forbidden name, and for two LLMs. The return
    type must name exactly one kind of record besides failures; otherwise raises UserError.
    """
    if function is None:
        return lambda given: _made(given, version, tokens_per_answer)
    return _made(function, version, tokens_per_answer)


def _made(function: Function, version: int, tokens_per_answer: int) -> type[FunctionMethod]:
    name = function.__name__
    hints = get_type_hints(function, include_extras=True)
    parts = _Parts(name)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in hints:
            raise UserError(f"method '{name}': parameter '{parameter.name}' has no type")
        parts.add(parameter, hints[parameter.name])
    kinds = {kind for kind in _kinds(hints.get("return")) if kind != RecordKind.FAILURE}
    if len(kinds) != 1:
        raise UserError(f"method '{name}': its return type must be {_RETURNS}")
    namespace = {
        **parts.defaults,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "__annotations__": parts.settings,
        "function": staticmethod(function),
        "version": version,
        "tokens_per_answer": tokens_per_answer,
        "record_kind": kinds.pop(),
        "source_roles": parts.required,
        "optional_source_roles": parts.optional,
        "uses_llm": bool(parts.llm_name),
        "llm_name": parts.llm_name,
    }
    return new_class(name, (FunctionMethod,), {}, lambda body: body.update(namespace))


@dataclass
class _Parts:
    """A function's parameters by use: sources by role, the LLM, settings with their defaults."""

    function: str
    required: dict[str, RecordKind] = field(default_factory=dict)
    optional: dict[str, RecordKind] = field(default_factory=dict)
    llm_name: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)

    def add(self, parameter: inspect.Parameter, hint: Any) -> None:  # noqa: ANN401 - any type
        """Add a parameter as a source, the LLM or a setting, by its type `hint` and its default.

        Raises UserError for a second LLM, a forbidden name, and parameters that can't be given by name.
        """
        name, default = parameter.name, parameter.default
        kind = _kind_of_list(hint)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UserError(f"method '{self.function}': parameter '{parameter}' can't be given by its name")
        if hint is LLM:
            if self.llm_name:
                raise UserError(f"method '{self.function}': has two LLMs, '{self.llm_name}' and '{name}'")
            self.llm_name = name
        elif kind is not None and default is inspect.Parameter.empty:
            self.required[name] = kind
        elif kind is not None and default is None:
            self.optional[name] = kind
        elif name.startswith("_") or name in FunctionMethod.__class_vars__ or hasattr(FunctionMethod, name):
            raise UserError(f"method '{self.function}': a setting can't be called '{name}'; rename it")
        else:
            self.settings[name] = hint
            if default is not inspect.Parameter.empty:
                self.defaults[name] = default


@dataclass
class _Rehearsal:
    """An LLM that answers every request with a made-up sentence."""

    asked: list[ChatRequest] = field(default_factory=list)

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        """Yield a made-up answer to each request; raises RuntimeError after 10,000 requests."""
        for request in requests:
            self.asked.append(request)
            if len(self.asked) > _MOST_REQUESTS:
                raise RuntimeError("too many requests")
            yield ChatAnswer(request, _sentence(len(self.asked)))


def _scaled(num_records: Mapping[str, int], size: int) -> dict[str, int]:
    """Return the numbers scaled so that the largest is `size`, rounded up."""
    largest = max(num_records.values(), default=0)
    return {role: ceil(number * size / max(largest, 1)) for role, number in num_records.items()}


def _sentence(number: int) -> str:
    return f"This made-up sentence, number {number}, is about as long as others."


def _made_up(kind: RecordKind, size: int) -> list[Any]:
    """Return `size` made-up records as the function gets them: sentences as texts."""
    record_type = RECORD_TYPES[kind]
    more: dict[str, Any] = {"score": 0.5} if "score" in record_type.own_fields() else {}
    if kind == RecordKind.RANKING:
        more = {"candidates": (_sentence(1), _sentence(2)), "grades": (1.0, 0.0)}
    texts = [_sentence(number) for number in range(size)]
    if kind == RecordKind.SENTENCE:
        return texts
    names = [name for name in record_type.text_fields if name not in more]
    return [
        record_type(**{name: f"{text} ({name})" for name in names}, **more)  # type: ignore[arg-type]
        for text in texts
    ]


def _values(data: SyntheticDataset) -> list[Any]:
    """Return a source's records as the function gets them: sentences as texts."""
    values: list[Any] = data.column("sentence") if data.kind == RecordKind.SENTENCE else list(data)
    return values


def _written(record: Record, model: str) -> Record:
    """Return a record that an LLM wrote, or a failure if one of its texts is empty or repeats another."""
    texts = record.texts()
    for index, text in enumerate(texts):
        if (reason := why_unusable(text, texts[:index])) and reason != REFUSAL:
            return Failure(reason=reason, raw_text=text, generator=model)
    return record if record.generator else replace(record, generator=model)


def _taken(failures: list[Failure]) -> list[Failure]:
    taken = failures[:]
    failures.clear()
    return taken


def _kind_of_list(hint: Any) -> RecordKind | None:  # noqa: ANN401 - any type
    """Return the kind of records in a list type, also if it is optional; None for any other type."""
    if get_origin(hint) in (Union, UnionType):
        inner = [each for each in get_args(hint) if each is not NoneType]
        return _kind_of_list(inner[0]) if len(inner) == 1 else None
    if get_origin(hint) not in (list, Sequence):
        return None
    kinds = list(_kinds(list[Sentence] if get_args(hint) == (str,) else hint))
    return kinds[0] if len(kinds) == 1 else None


def _kinds(hint: Any) -> Iterator[RecordKind]:  # noqa: ANN401 - any type
    """Yield the record kinds in an iterable's type, such as `Iterator[Pair | Failure]`."""
    items = get_args(hint)[:1]
    for item in items:
        members = get_args(item) if get_origin(item) in (Union, UnionType) else (item,)
        for member in members:
            if isinstance(member, type) and issubclass(member, Record) and member is not Record:
                yield member.kind
