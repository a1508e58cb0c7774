"""The experiment files of a recommendation: a row is a recipe with an amount of data and a learning rate."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from synthbench.config.documents import Document as Patch
from synthbench.config.documents import expand_dotted, merge, texts_in

AMOUNTS = ("sentences", "passages")
"""The sources that recipes may sample; a recipe's amount is the sample's number of records."""
DEV, TEST = "dev", "test"
_OF_FILE = ("corpora", "llm", "llms", "runtime")


@dataclass(frozen=True)
class Contender:
    """A recipe as a row of the long experiment file; `run` has all settings of the row.

    `reads`: source -> its number of records, for the sources that the recipe may sample (AMOUNTS).
    `rates`: learning rates to choose from on dev. `rate`: the learning rate in use, at first the recipe's
    default; None keeps that of `run`. `rate_paths`: the keys of learning rates in `run`.
    """

    name: str
    run: Mapping[str, Any]
    reads: Mapping[str, int]
    starts_from: str = ""
    rates: tuple[float, ...] = ()
    rate: float | None = None
    rate_paths: tuple[str, ...] = ("train.learning_rate",)

    @property
    def available(self) -> int:
        """The largest possible amount of data, in records; 0 if the recipe's amount is fixed."""
        return max(self.reads.values(), default=0)

    @property
    def counted(self) -> str:
        """What the recipe's amounts count, such as "sentences"; "" if the recipe's amount is fixed."""
        return next(iter(self.reads), "")


@dataclass(frozen=True)
class PhaseRow:
    """A row of a phase: a contender with an amount of data, in records; 0 if the amount is fixed.

    `tried`: a learning rate to try; None keeps the contender's rate.
    """

    contender: str
    amount: int = 0
    tried: float | None = None

    @property
    def name(self) -> str:
        """The row's name in the phase's experiment file."""
        parts = [self.contender, str(self.amount) if self.amount else ""]
        return "-".join(filter(None, (*parts, f"rate-{self.tried:g}" if self.tried is not None else "")))


@dataclass(frozen=True)
class Contest:
    """A long experiment file and the recipes that compete in it.

    `usd`: US dollars that all phases together may cost. `hour_usd`: the price of an hour of computing.
    `devs`: dev set -> its evaluator; if empty, DEV is the only dev set and is evaluated like the test set.
    """

    long: Mapping[str, Any]
    contenders: Mapping[str, Contender]
    baseline: str
    usd: float
    hour_usd: float = 0.0
    devs: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.long["experiment"])

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """A group's first contender -> all its contenders, which learn from the same generated data.

        A group's data are paid for once, so all its contenders get the same amounts.
        """
        found: dict[str, list[str]] = {}
        for name in self.contenders:
            made = json.dumps(list(self._methods(name)), sort_keys=True)
            found.setdefault(made if made != "[]" else name, []).append(name)
        return {names[0]: tuple(names) for names in found.values()}

    def _methods(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Yield the settings of a contender's generated data parts, without `prepare`.

        The parts of the contender that it starts from come first.
        """
        contender = self.contenders[name]
        if contender.starts_from:
            yield from self._methods(contender.starts_from)
        for part in (contender.run.get("data") or {}).values():
            if isinstance(part, Mapping) and "method" in part:
                yield {key: value for key, value in part.items() if key != "prepare"}

    def group_of(self, name: str) -> str:
        """Return the name of a contender's group: the group's first contender."""
        return next(first for first, names in self.groups.items() if name in names)

    def available(self, group: str) -> int:
        """Return the most records that a contender of a group can read, 0 if all their amounts are fixed."""
        return max(self.contenders[name].available for name in self.groups[group])

    def with_starts(self, rows: Iterable[PhaseRow]) -> list[PhaseRow]:
        """Return the rows, each preceded by the rows whose trained models it starts from."""
        found: dict[PhaseRow, None] = {}
        for row in rows:
            chain = [row]
            while first := self.contenders[chain[-1].contender].starts_from:
                rate = self.contenders[first].rate if row.tried is not None else None
                chain.append(PhaseRow(first, min(row.amount, self.contenders[first].available), rate))
            found.update(dict.fromkeys(reversed(chain)))
        return list(found)

    def with_rates(self, rates: Mapping[str, float]) -> "Contest":
        """Return the study with new learning rates (contender -> rate); other contenders keep their rates."""
        chosen = {
            name: replace(each, rate=rates.get(name, each.rate)) for name, each in self.contenders.items()
        }
        return replace(self, contenders=chosen)

    def with_dev(self, sources: Mapping[str, Any], evaluators: Mapping[str, str]) -> "Contest":
        """Return the study with further dev sets, given as name -> source and name -> evaluator."""
        long = {**self.long, "sources": {**self.long["sources"], **sources}}
        return replace(self, long=long, devs={**self.devs, **evaluators})

    def with_test(self, source: Mapping[str, Any], evaluator: str) -> "Contest":
        """Return the study with this test set."""
        long = {
            **self.long,
            "sources": {**self.long["sources"], TEST: source},
            "defaults": {**self.long["defaults"], "evaluate": evaluations({TEST: evaluator})},
        }
        return replace(self, long=long)

    def making(self, phase: str, sources: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
        """Return an experiment file that makes data with the study's LLM; `rows` are its variants."""
        kept = {key: self.long[key] for key in _OF_FILE if key in self.long}
        return {
            "experiment": f"{self.name}-{phase}", **kept, "sources": sources, "seeds": [0], "variants": rows
        }  # fmt: skip

    def phase(self, name: str, rows: Sequence[PhaseRow], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
        """Return the experiment of a phase that scores these rows on dev; `more`: other keys of the file."""
        tested = self.long["defaults"].get("evaluate", {})
        evaluate = evaluations(self.devs) or {key: _on_dev(section) for key, section in tested.items()}
        if len(self.devs) > 1:
            more["table"] = {**more.get("table", {}), "averages": {DEV: list(self.devs)}}
        return self._document(f"{self.name}-{name}", rows, {row: row.name for row in rows}, evaluate, more)

    def final(self, rows: Sequence[PhaseRow], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
        """Return the experiment that scores these rows, named after their recipes, on the test set."""
        names = {row: row.contender for row in rows}
        return self._document(
            f"{self.name}-final", rows, names, self.long["defaults"].get("evaluate", {}), more
        )

    def _document(
        self,
        name: str,
        rows: Sequence[PhaseRow],
        names: Mapping[PhaseRow, str],
        evaluate: Mapping[str, Any],
        more: Mapping[str, Any],
    ) -> dict[str, Any]:
        variants = {names[row]: self._run(row, names) for row in rows}
        sources = {**self.long["sources"], **self._samples(rows)}
        used = {text for _, text in texts_in({"evaluate": evaluate, "variants": variants})}
        kept = {key: self.long[key] for key in _OF_FILE if key in self.long}
        return {
            "experiment": name,
            **kept,
            "sources": {key: source for key, source in sources.items() if key in used},
            "defaults": {"evaluate": evaluate},
            "variants": variants,
            **more,
        }

    def _run(self, row: PhaseRow, names: Mapping[PhaseRow, str]) -> dict[str, Any]:
        contender = self.contenders[row.contender]
        rate = row.tried if row.tried is not None else contender.rate
        patch: dict[str, Any] = {} if rate is None else dict.fromkeys(contender.rate_paths, rate)
        if contender.starts_from:
            start = next(each for each in self.with_starts([row]) if each.contender == contender.starts_from)
            patch["train.starts_from"] = names[start]
        samples = {
            source: _sample_name(source, row.amount)
            for source, number in contender.reads.items()
            if row.amount < number
        }
        run = {key: value for key, value in contender.run.items() if key != "evaluate"}
        whole = merge(Patch(_renamed(run, samples)), expand_dotted(Patch(patch)), keep_nulls=True)
        return dict(whole.data)

    def _samples(self, rows: Iterable[PhaseRow]) -> dict[str, Any]:
        return {
            _sample_name(source, row.amount): {
                **self.long["sources"][source],
                "sample": {"size": row.amount, "seed": 0},
            }
            for row in rows
            for source, number in self.contenders[row.contender].reads.items()
            if row.amount < number
        }


def evaluations(tasks: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the `evaluate` sections for dev or test sets, given as name -> evaluator."""
    sections: dict[str, dict[str, Any]] = {}
    for name, evaluator in tasks.items():
        section = sections.setdefault(evaluator, {"evaluator": evaluator, "tasks": []})
        section["tasks"].append(name)
    return sections


def _sample_name(source: str, amount: int) -> str:
    return f"{source}-{amount}"


def _on_dev(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the test set's `evaluate` section, adapted to the dev set.

    The evaluator `pairs` then measures average precision. Other measures need a threshold chosen on dev.
    """
    kept = {key: value for key, value in section.items() if key not in ("tasks", "dev", "exclude")}
    if kept.get("evaluator") == "pairs":
        kept["measure"] = "average_precision"
    return {**kept, "tasks": [DEV]}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return a run's settings with all references to sources renamed; `names`: name -> new name."""
    if isinstance(value, list):
        return [_renamed(child, names) for child in value]
    if not isinstance(value, Mapping):
        return value
    result = {key: _renamed(child, names) for key, child in value.items()}
    if isinstance(source := result.get("source"), str):
        result["source"] = names.get(source, source)
    if isinstance(roles := result.get("sources"), Mapping):
        result["sources"] = {
            role: names.get(each, each) if isinstance(each, str) else each for role, each in roles.items()
        }
    return result
