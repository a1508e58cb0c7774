"""A stage: one cached step, whose identity is the hash of its inputs and settings."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from socket import gethostname
from typing import Any, ClassVar

from synthbench.base.errors import UserError
from synthbench.base.redaction import without_secrets
from synthbench.config.documents import flatten
from synthbench.config.llm import NamedLLM
from synthbench.engine.workspace import Workspace
from synthbench.plugins.code import code_changes

SHARD = "shard:"
"""Prefix of the names of shards in `Stage.reads`."""
START = "start"
"""The name of the input whose model a training starts from."""


class Operation(ABC):
    """The computation of a stage. Picklable, since it may run in another process."""

    kind: ClassVar[str]
    comes_first: ClassVar[bool] = False
    """Whether the stage only reads sources: such cheap stages run before all others."""

    @property
    @abstractmethod
    def component(self) -> str:
        """Name of the plug-in or built-in component."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Version of the component's behaviour."""

    def config(self) -> Mapping[str, Any]:
        """Return all settings that determine the result, as plain JSON values."""
        return {}

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """Inputs from outside the store: name -> content hash or commit."""
        return {}

    def assume(self, outside: Mapping[str, str]) -> None:
        """Use these values as `outside`, in a plan without the data; identities then differ from a run's."""
        vars(self)["outside"] = outside

    def code(self) -> Mapping[str, Mapping[str, str]]:
        """Return third-party plug-ins' code versions: plug-in -> package -> release or content hash."""
        return {}

    def check(self, inputs: Mapping[str, Path]) -> None:  # noqa: B027 - most have nothing to check
        """Raise UserError if the stage's sources are unusable; `inputs` has only the sources' folders.

        Called once the sources have been read, before all other stages are computed.
        """

    @abstractmethod
    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Compute the artifact into `work.output`; called again after a kill, with the same `work.folder`."""

    def check_artifact(self, folder: Path, stage: "Stage") -> None:  # noqa: B027 - most are checked when read
        """Validate a possibly foreign artifact; raises UserError if this stage can't have written it."""

    def check_work(self, folder: Path) -> None:  # noqa: B027 - most is checked when read
        """Validate possibly foreign unfinished work; raises UserError if this stage can't have written it."""

    @property
    def trusted(self) -> tuple[Any, ...]:
        """The models whose own Python code the experiment allows to run."""
        return ()

    def group(self, inputs: Mapping[str, "Stage"]) -> str:
        """Return the group's key: stages of equal key run together; "": the stage runs alone."""
        return ""

    @property
    def asked_llm(self) -> NamedLLM | None:
        """The LLM that `run` uses, None if it uses none."""
        return None

    @property
    def num_devices(self) -> int:
        """The number of GPUs, or of CPU processes, that `run` uses at once."""
        return 1

    def run_together(self, others: Sequence["GroupMember"]) -> Iterator["GroupMember"]:
        """Run all stages of a group in order, including this one; yield each once its output is complete.

        The caller commits each stage before the next one runs.
        """
        for member in others:
            member.operation.run(member.inputs, member.work)
            yield member


@dataclass(frozen=True)
class GroupMember:
    """One stage of a group, ready to run."""

    operation: Operation
    inputs: Mapping[str, Path]
    work: Workspace


@dataclass(frozen=True, eq=False)
class Stage:
    """An operation on other stages' artifacts. Stages of equal identity are the same work."""

    operation: Operation
    inputs: Mapping[str, "Stage"] = field(default_factory=dict)
    label: str = ""
    shards: tuple["Stage", ...] = ()
    """Stages that each compute a part of this stage's work; their number does not change the result."""
    paid_by: str = ""
    """The identity of the stage billed for a shard's LLM requests; "": the shard itself."""

    @cached_property
    def reads(self) -> Mapping[str, "Stage"]:
        """The stages whose artifacts `run` reads, by name: inputs and shards."""
        return {**self.inputs, **{f"{SHARD}{number}": shard for number, shard in enumerate(self.shards)}}

    @cached_property
    def trusted(self) -> tuple[Any, ...]:
        """The models whose own Python code the experiment allows to run in this stage or its ancestors."""
        found = (model for stage in ancestors([self]) for model in stage.operation.trusted)
        return tuple(dict.fromkeys(found))

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The specification that the identity hashes."""
        code = {name: dict(packages) for name, packages in self.operation.code().items()}
        return {
            "kind": self.operation.kind,
            "component": self.operation.component,
            "version": self.operation.version,
            "config": dict(self.operation.config()),
            "outside": dict(self.operation.outside),
            "inputs": {name: stage.identity for name, stage in self.inputs.items()},
            **({"code": code} if code else {}),
        }

    @property
    def stored_spec(self) -> dict[str, Any]:
        """`spec` as stored with the artifact: without the secrets in its settings."""
        return {**self.spec, "config": without_secrets(self.spec["config"])}

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the canonical JSON of `spec`, in hex; the order of named inputs counts."""
        canonical = {**self.spec, "inputs": list(self.spec["inputs"].items())}
        text = json.dumps(canonical, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def check_code(self) -> None:
        """Raise UserError if a plug-in's code has changed since the stage was planned."""
        for change in code_changes(self.spec.get("code", {}), self.operation.code()):
            raise UserError(f"{self}: {change} while the run was under way; run the same command again")

    def check_identity(self) -> None:
        """Raise UserError if the stage has another identity here than on the machine that planned it."""
        here = Stage(replace(self.operation), self.inputs, self.label)  # type: ignore[type-var] # all are dataclasses
        if here.identity != self.identity:
            raise UserError(
                f"{self}: is other work on {gethostname()} than where it was planned"
                f" ({difference(self.spec, here.spec)}); give both the same files"
            )

    @property
    def kind(self) -> str:
        """The stage kind: source, exclude, join, prepare, generate, train, select, evaluate or audit."""
        return self.operation.kind

    def __str__(self) -> str:
        return f"{self.kind} {self.label or self.operation.component}"


def ancestors(ends: Iterable[Stage], without: str | tuple[()] = ()) -> Iterator[Stage]:
    """Yield the stages and all that they depend on, each once, inputs first; leaves out shards.

    `without`: inputs whose names have this prefix are not followed; (): all are followed.
    """
    return _reached(
        ends,
        lambda stage: [source for name, source in stage.inputs.items() if not name.startswith(without)],
        lambda _: True,
    )


def to_compute(ends: Iterable[Stage], is_missing: Callable[[Stage], bool]) -> Iterator[Stage]:
    """Yield the missing stages among `ends`, their inputs and their shards, each once, inputs first.

    The walk stops at stages that are not missing.
    """
    return _reached(ends, lambda stage: stage.reads.values(), is_missing)


def _reached(
    ends: Iterable[Stage],
    onwards: Callable[[Stage], Iterable[Stage]],
    through: Callable[[Stage], bool],
) -> Iterator[Stage]:
    seen: set[str] = set()

    def reached(stage: Stage) -> Iterator[Stage]:
        if stage.identity not in seen and through(stage):
            seen.add(stage.identity)
            for source in onwards(stage):
                yield from reached(source)
            yield stage

    for end in ends:
        yield from reached(end)


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the difference between two specs of a stage, "" if there is none; omits secrets."""
    changes: list[str] = []
    for key in ("component", "version"):
        if old.get(key) != new.get(key):
            changes.append(f"{key} {old.get(key)} -> {new.get(key)}")
    changes += code_changes(old.get("code", {}), new.get("code", {}))
    before, after = (dict(flatten(without_secrets(spec.get("config", {})))) for spec in (old, new))
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            changes.append(f"{path} {_shown(before, path)} -> {_shown(after, path)}")
    if before == after and old.get("config", {}) != new.get("config", {}):
        changes.append("a key or password in its settings")
    for part, what in (("outside", "changed outside"), ("inputs", "input changed")):
        names = old.get(part, {}).keys() | new.get(part, {}).keys()
        differing = sorted(n for n in names if old.get(part, {}).get(n) != new.get(part, {}).get(n))
        changes += [f"{what}: {name}" for name in differing]
    return "; ".join(changes)


def _shown(leaves: Mapping[str, Any], path: str) -> str:
    return json.dumps(leaves[path], ensure_ascii=False) if path in leaves else "absent"
