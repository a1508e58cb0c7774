"""Estimated costs of a plan's stages: time, tokens and money."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from synthbench.engine.plan import StageStatus
from synthbench.engine.progress import duration
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.estimator import Estimate, Estimator
from synthbench.estimates.facts import Known, Piece, asked, expected
from synthbench.llm.endpoint import ChatAmount, money
from synthbench.plugins.contracts import Method
from synthbench.stages.asking import SHARD_KEY, AskingOperation

if TYPE_CHECKING:
    from synthbench.config.llm import NamedLLM


@dataclass(frozen=True)
class Time:
    """Seconds of some stages together; `unknown` counts stages without an estimate, by what is unknown."""

    seconds: float
    num_stages: int
    num_from_past: int
    unknown: Counter[str]

    @classmethod
    def of(cls, stages: Iterable[Stage], estimator: Estimator) -> "Time":
        """Add up."""
        estimates = [(stage, estimator.estimate(stage)) for stage in stages]
        return cls(
            sum(each.seconds or 0.0 for _, each in estimates),
            len(estimates),
            sum(each.is_from_past for _, each in estimates),
            Counter(_gap(stage, each) for stage, each in estimates if each.seconds is None),
        )

    def __str__(self) -> str:
        """The time in words: "unknown" is one, too."""
        if not self.num_stages:
            return "none"
        if self.unknown.total() == self.num_stages:
            return "unknown"
        return f"{'at least' if self.unknown else 'about'} {duration(self.seconds)}"


def _gap(stage: Stage, estimate: Estimate) -> str:
    return f"{stage.kind} {stage.operation.component}: {estimate.unknown}"


@dataclass(frozen=True)
class StageGroup:
    """The stages of one kind and component: how many are cached, and how long the others take.

    `num_unknown` of those to run may be cached.
    """

    title: str
    num_stages: int
    num_to_run: int
    num_cached: int
    num_unknown: int
    time: Time


def groups(found: Sequence[StageStatus], estimator: Estimator) -> list[StageGroup]:
    """Return the stages by kind and component, in the order of the first of each."""
    of_title: dict[str, list[StageStatus]] = defaultdict(list)
    for status in found:
        of_title[f"{status.stage.kind} {status.stage.operation.component}"].append(status)
    return [
        StageGroup(
            title,
            len(members),
            sum(each.is_to_run for each in members),
            sum(each.state == "cached" for each in members),
            sum(each.state == "unknown" for each in members),
            Time.of((each.stage for each in members if each.is_to_run), estimator),
        )
        for title, members in of_title.items()
    ]


def tokens(found: Sequence[StageStatus], known: Known) -> Iterator[str]:
    """Yield a line for each local language model: how many tokens it would write."""
    written: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for operation, stage in _makers(found):
        expects = expected(known.piece(stage))
        if expects.tokens is not None and expects.work is not None:
            written[expects.work.model] += expects.tokens
        elif expects.work is None and operation.llm is None and stage.kind == "generate":
            unknown[operation.component] += 1
    for model, number in written.items():
        yield f"{number:,} written by {model} at most"
    for component, number in unknown.items():
        yield f"unknown of {number} × generate {component}"


def asked_in_all(found: Sequence[StageStatus], known: Known) -> Iterator[str]:
    """Yield lines on the requests, tokens and money of all stages that ask an LLM, by LLM."""
    of_llms, missing = _asked_by_llm(found, known)
    for llm, amount in of_llms:
        yield from amount.lines(llm.endpoint())
    if len(of_llms) > 1:
        prices = [money(llm.endpoint(), amount) for llm, amount in of_llms]
        known_usd = [usd for usd in prices if usd is not None]
        bound = "at least" if len(known_usd) < len(prices) else "about"
        yield f"money of all LLMs: {bound} {sum(known_usd):,.2f} US dollars"
    for kind, number in missing.items():
        yield f"unknown: requests, tokens and money of {number} × {kind}, which come on top"


def llm_dollars(found: Sequence[StageStatus], known: Known) -> tuple[float, int]:
    """Return what LLMs cost as far as it is known, and how many LLMs and stages it leaves out."""
    of_llms, missing = _asked_by_llm(found, known)
    prices = [money(llm.endpoint(), amount) for llm, amount in of_llms]
    return sum(usd or 0.0 for usd in prices), prices.count(None) + missing.total()


def _asked_by_llm(
    found: Sequence[StageStatus], known: Known
) -> tuple[list[tuple["NamedLLM", ChatAmount]], Counter[str]]:
    """Return what each LLM is asked in all, and the stages of which that is unknown, by kind."""
    of_llms: dict[str, tuple[NamedLLM, ChatAmount]] = {}
    missing: Counter[str] = Counter()
    for operation, stage in _makers(found):
        if operation.llm is None:
            continue
        amount = asked(known.piece(stage))
        if amount is None:
            missing[stage.kind] += 1
        else:
            llm, before = of_llms.get(operation.llm.name, (operation.llm, ChatAmount(0, 0, 0)))
            of_llms[llm.name] = llm, before + amount
    return list(of_llms.values()), missing


def costs(found: Sequence[StageStatus], store: Store) -> Iterator[tuple[Stage, tuple[str, ...]]]:
    """Yield each stage that is to run a method or a step that uses models, with lines on its costs."""
    known = Known(store)
    for operation, stage in _makers(found):
        # The costs of shards are those of the stage that they share.
        piece = replace(known.piece(stage), is_sharded=False)
        if SHARD_KEY in piece.config:
            continue
        own = operation.plugin.cost(piece.sizes()) if isinstance(operation.plugin, Method) else ()
        lines = (*own, *_asking(operation, piece))
        if lines:
            yield stage, lines


def _asking(operation: AskingOperation[Any], piece: Piece) -> Iterator[str]:
    if operation.llm is None:
        return
    amount = asked(piece)
    if amount is None:
        yield "requests, tokens and money: unknown"
    else:
        yield from amount.lines(operation.llm.endpoint())


def _makers(found: Sequence[StageStatus]) -> Iterator[tuple[AskingOperation[Any], Stage]]:
    for status in found:
        if status.is_to_run and isinstance(status.stage.operation, AskingOperation):
            yield status.stage.operation, status.stage
