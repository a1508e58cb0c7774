"""Changes to an experiment by the command line and a profile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError, did_you_mean
from synthbench.config.documents import (
    Document,
    KeyPath,
    expand_dotted,
    merge,
    parse_document,
    read_document,
    without_nulls,
)
from synthbench.config.problems import Cursor, Problems
from synthbench.config.profiles import profile_file, substitute_llm, substitute_tasks
from synthbench.config.providers import with_providers
from synthbench.config.recipes import with_recipes
from synthbench.config.schema import ExperimentSection, ProfileSection, RunSection, SubstituteSection
from synthbench.config.short import OWN_KEYS, Expanded, expand_short

RUN_KEYS = tuple(RunSection.model_fields)


@dataclass(frozen=True)
class Overrides:
    """Changes to an experiment by the command line."""

    profile: str | None = None
    assignments: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    data: Path | None = None

    @property
    def changes_anything(self) -> bool:
        """Whether there are overrides besides `data`, the data folder."""
        return bool(self.profile or self.assignments or self.variants or self.seeds)


@dataclass(frozen=True)
class Request:
    """An experiment file merged with its includes, profile and overrides; each value has its location.

    `file` is the long form of the experiment file. `document` is `file` with all top-level patches and the
    profile's LLM. `substituted` is `document` with the profile's sources. `runs` are patches of every run,
    applied after the patch of its variant.
    """

    file: Document
    document: Document
    substituted: Document
    runs: tuple[Document, ...]
    profile: Document
    substitute: SubstituteSection
    expanded: Expanded
    """The long form of the file, with findings and notes on it."""

    @classmethod
    def read(cls, file: Path, overrides: Overrides, problems: Problems) -> "Request":
        """Read and merge all files and overrides; note the faults of the profile and `--set`.

        Null removes a key, a row or an axis value. The LLM is substituted after the profile's patches, but
        before `--set`, which may set the new LLM's keys. Raises UserError if a file is missing or not YAML,
        or a `--set` is unreadable.
        """
        section, profile = _read_profile(file, overrides.profile, problems)
        substitute = section.substitute
        assignments = [each for each in _assignments(overrides.assignments) if _is_known(each, problems)]
        typed = [each for each in assignments if _first_key(each) not in RUN_KEYS]
        of_runs = (each for each in assignments if _first_key(each) in RUN_KEYS)
        runs = tuple(expand_dotted(each) for each in (_patch(profile, "run"), *of_runs))
        short = [each for each in typed if _first_key(each) in OWN_KEYS]
        given = read_document(file)
        for patch in short:
            if "base" in given.data:
                given = merge(given, expand_dotted(patch), keep_nulls=True)
            else:
                problems.add(patch, (_first_key(patch),), "only a file with `base:` at its top has this key")
        expanded = expand_short(given, file.parent, substitute)
        own = with_recipes(expanded.document)
        for each in (own, *assignments):
            for path in _null_grades(each.data):
                problems.add(each, path, "null would mean the default grades; write yes-no for yes or no")
        of_name = _patch(profile.section("experiments"), str(own.data.get("experiment")))
        document = own
        for patch in (_patch(profile, "experiment"), of_name):
            document = with_providers(_patched(document, patch, problems), file.parent)
        document = substitute_llm(document, substitute.llm)
        for patch in (each for each in typed if each not in short):
            document = with_providers(_patched(document, patch, problems), file.parent)
        document = without_removed(document)
        return cls(
            file=own,
            document=document,
            substituted=substitute_tasks(document, substitute.tasks, problems),
            runs=runs,
            profile=profile,
            substitute=substitute,
            expanded=expanded,
        )

    def changes_of_runs(self) -> dict[str, Any]:
        """Return the patches of every run, and the profile's substitutes, as plain data."""
        patch = Document({})
        for each in self.runs:
            patch = merge(patch, each, keep_nulls=True)
        substitute = {key: value for key, value in self.substitute.model_dump().items() if value}
        return {**patch.data, **({"substitute": substitute} if substitute else {})}


def _null_grades(data: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of each `judge.grades: null`, which once stood for a question of yes or no."""
    for key, value in data.items():
        here = (*path, key)
        if isinstance(value, dict):
            yield from _null_grades(value, here)
        elif value is None and ".".join(map(str, here)).endswith("judge.grades"):
            yield here


def _patched(document: Document, dotted: Document, problems: Problems) -> Document:
    """Merge a patch with dotted keys into a file; note a fault for each absent row or axis to remove."""
    patch = expand_dotted(dotted, whole=document.data)
    document = _with_llm_in_full(document, patch)
    absent = list(_absent_rows(document, patch))
    document = merge(document, patch, keep_nulls=True)
    for path, known in absent:
        problems.add(patch, path, f"nothing to remove: no such name{did_you_mean(path[-1], known)}")
        del document.mapping(*path[:-1])[path[-1]]
    return document


def _with_llm_in_full(document: Document, patch: Document) -> Document:
    """Expand `llm: NAME` to `llm: {endpoint: NAME}` if a patch sets other keys of the LLM."""
    for path in (("llm",), *(("llms", name) for name in patch.mapping("llms"))):
        given = document.at(path)
        if isinstance(given, str) and isinstance(patch.at(path), dict):
            location: dict[KeyPath, str] = {(*path, "endpoint"): document.location(path)}
            document = document.replaced(path, {"endpoint": given}, location)
    return document


def _read_profile(file: Path, name: str | None, problems: Problems) -> tuple[ProfileSection, Document]:
    if name is None:
        return ProfileSection(), Document({})
    document = read_document(profile_file(file, name))
    return Cursor(document, problems).readable(ProfileSection, document.data), document


def _patch(document: Document, key: str) -> Document:
    is_mapping = isinstance(document.data.get(key, {}), dict)
    return document.section(key) if is_mapping else Document({})


def _assignments(texts: Sequence[str]) -> list[Document]:
    """Parse every `--set`; raises one UserError for all unreadable ones."""
    documents: list[Document] = []
    faults: list[str] = []
    for text in texts:
        try:
            documents.append(_assignment(text))
        except UserError as error:
            faults += error.messages
    if faults:
        raise UserError(*dict.fromkeys(faults))
    return documents


def _assignment(text: str) -> Document:
    path, separator, value = text.partition("=")
    location = f"--set {text}"
    if not separator or not path or "" in path.split("."):
        raise UserError(f"{location}: must read PATH=VALUE, such as train.learning_rate=2e-5")
    parsed = parse_document(f"{path.strip()}: {value}", location)
    paths = dict.fromkeys(parsed.locations, location)
    return Document(parsed.data, paths)


def _is_known(assignment: Document, problems: Problems) -> bool:
    """Return whether the first key of a `--set` exists; note a fault if not."""
    key, known = _first_key(assignment), (*ExperimentSection.model_fields, *RUN_KEYS, *OWN_KEYS)
    if key not in known:
        problems.add(assignment, (key,), f"unknown key{did_you_mean(key, known)}")
    return key in known


def _first_key(document: Document) -> str:
    return str(next(iter(document.data))).partition(".")[0]


def _absent_rows(document: Document, patch: Document) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield (path, existing names) for each absent variant, axis or axis value that a patch removes."""
    for path in (("variants",), ("grid",), *(("grid", axis) for axis in patch.mapping("grid"))):
        known = document.mapping(*path)
        for name, value in patch.mapping(*path).items():
            if value is None and name not in known:
                yield (*path, name), list(known)


def without_removed(document: Document) -> Document:
    """Drop keys set to null, except in `defaults`, `variants` and `grid`: their patches are applied later.

    An unknown top-level key stays, so that the schema reports it.
    """
    patches, known = ("defaults", "variants", "grid"), ExperimentSection.model_fields
    data = {
        key: value if key in patches else without_nulls(value)
        for key, value in document.data.items()
        if value is not None or key not in known
    }
    return Document(data, document.locations)
