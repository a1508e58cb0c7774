"""Tokens and money that a plan's stages would take."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from synthbench.engine.plan import StageStatus
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.facts import StageFacts, StageView, asked, expected
from synthbench.llm.endpoint import ChatAmount, money
from synthbench.plugins.contracts import Method
from synthbench.stages.asking import SHARD_KEY, AskingOperation

if TYPE_CHECKING:
    from synthbench.config.llm import NamedLLM


def tokens(found: Sequence[StageStatus], known: StageFacts) -> Iterator[str]:
    """Yield a line of tokens per local language model, and a line per method whose tokens are unknown."""
    written: Counter[str] = Counter()
    most: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for operation, stage in _makers(found):
        expects = expected(known.view(stage))
        if expects.tokens is not None and expects.work is not None:
            written[expects.work.model] += expects.tokens
            most[expects.work.model] += round(expects.tries * expects.tokens)
        elif expects.work is None and operation.llm is None and stage.kind == "generate":
            unknown[operation.component] += 1
    for model, number in written.items():
        tries = f" if no text needs another try, at most {most[model]:,} with all tries"
        yield f"up to {number:,} written by {model}{tries if most[model] > number else ''}"
    for component, number in unknown.items():
        yield f"unknown of {number} × generate {component}"


def llm_totals(found: Sequence[StageStatus], known: StageFacts) -> Iterator[str]:
    """Yield lines for each LLM (requests, tokens, dollars), then all LLMs' dollars, then unknown stages."""
    of_llms, missing = _asked_by_llm(found, known)
    for llm, amount in of_llms:
        yield from amount.lines(llm.endpoint())
    prices = [money(llm.endpoint(), amount) for llm, amount in of_llms]
    total = sum(usd or 0.0 for usd in prices)
    if len(of_llms) > 1 and (total or None not in prices):
        bound = "at least" if None in prices else "about"
        yield f"money of all LLMs: {bound} {total:,.2f} US dollars"
    for kind, number in missing.items():
        yield f"unknown: requests, tokens and money of {number} × {kind}, which come on top"


def llm_dollars(found: Sequence[StageStatus], known: StageFacts) -> tuple[float, int]:
    """Return the known US dollars for LLMs, and the number of LLMs and stages that this sum leaves out."""
    of_llms, missing = _asked_by_llm(found, known)
    prices = [money(llm.endpoint(), amount) for llm, amount in of_llms]
    return sum(usd or 0.0 for usd in prices), prices.count(None) + missing.total()


def _asked_by_llm(
    found: Sequence[StageStatus], known: StageFacts
) -> tuple[list[tuple["NamedLLM", ChatAmount]], Counter[str]]:
    """Return total requests and tokens per LLM, and how many stages of each kind have unknown requests.

    Stages that send the same requests count once.
    """
    of_llms: dict[str, tuple[NamedLLM, ChatAmount]] = {}
    missing: Counter[str] = Counter()
    seen: set[str] = set()
    for operation, stage in _makers(found):
        if operation.llm is None or (key := _requests_of(operation, stage)) in seen:
            continue
        seen.add(key)
        amount = asked(known.view(stage))
        if amount is None:
            missing[stage.kind] += 1
        else:
            llm, before = of_llms.get(operation.llm.name, (operation.llm, ChatAmount(0, 0, 0)))
            of_llms[llm.name] = llm, before + amount
    return list(of_llms.values()), missing


def _requests_of(operation: AskingOperation[Any], stage: Stage) -> str:
    """Return a key that stages with equal requests share: inputs, and the settings that affect requests."""
    after_answers: frozenset[str] = getattr(operation.plugin, "after_answers", frozenset())
    if not after_answers:
        return stage.identity
    settings = {key: value for key, value in operation.config().items() if key not in after_answers}
    inputs = {name: each.identity for name, each in stage.inputs.items()}
    return json.dumps([operation.component, settings, inputs], sort_keys=True)


def costs(found: Sequence[StageStatus], store: Store) -> Iterator[tuple[Stage, tuple[str, ...]]]:
    """Yield each stage to be run that has costs, with a line for each kind of cost; leaves out shards."""
    known = StageFacts(store)
    for operation, stage in _makers(found):
        # Shards have no costs of their own: their stage has the costs of all.
        view = replace(known.view(stage), is_sharded=False)
        if SHARD_KEY in view.config:
            continue
        own = operation.plugin.cost(view.sizes()) if isinstance(operation.plugin, Method) else ()
        lines = (*own, *_asking(operation, view))
        if lines:
            yield stage, lines


def _asking(operation: AskingOperation[Any], view: StageView) -> Iterator[str]:
    if operation.llm is None:
        return
    amount = asked(view)
    if amount is None:
        yield "requests, tokens and money: unknown"
    else:
        yield from amount.lines(operation.llm.endpoint())


def _makers(found: Sequence[StageStatus]) -> Iterator[tuple[AskingOperation[Any], Stage]]:
    for status in found:
        if status.is_to_run and isinstance(status.stage.operation, AskingOperation):
            yield status.stage.operation, status.stage
