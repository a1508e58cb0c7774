"""What the command line and a profile change in an experiment."""

from collections.abc import Iterable, Iterator, Sequence
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
from synthbench.config.llm import in_full
from synthbench.config.problems import Cursor, Problems
from synthbench.config.profiles import profile_file, substitute_llm
from synthbench.config.schema import ExperimentSection, ProfileSection, RunSection, SubstituteSection

RUN_KEYS = tuple(RunSection.model_fields)


@dataclass(frozen=True)
class Overrides:
    """What the command line changes in an experiment."""

    profile: str | None = None
    assignments: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    data: Path | None = None

    @property
    def changes_anything(self) -> bool:
        """Whether another experiment than the file's may come of it."""
        return bool(self.profile or self.assignments or self.variants or self.seeds)


@dataclass(frozen=True)
class Changes:
    """The overrides as patches, of the top level and of every run after its variant; a profile has both.

    Keys of those of the top level are still dotted: what they name depends on the file.
    """

    profile: Document
    top: tuple[Document, ...]
    run: tuple[Document, ...]
    substitute: SubstituteSection

    @classmethod
    def none(cls) -> "Changes":
        """Return those of an experiment without overrides."""
        return cls(Document({}), (), (), SubstituteSection())

    @classmethod
    def read(cls, file: Path, overrides: Overrides, problems: Problems) -> "Changes":
        """Read the profile and the `--set`s; what is wrong with what they say is noted.

        Raises UserError if the profile is missing or no YAML, or a `--set` can't be read.
        """
        profile, document = _read_profile(file, overrides.profile, problems)
        assignments = [each for each in _assignments(overrides.assignments) if _is_known(each, problems)]
        is_run = [_first_key(assignment) in RUN_KEYS for assignment in assignments]
        pairs = list(zip(assignments, is_run, strict=True))
        return cls(
            profile=document,
            top=tuple(each for each, run in pairs if not run),
            run=(
                expand_dotted(_patch(document, "run")),
                *(expand_dotted(each) for each, run in pairs if run),
            ),
            substitute=profile.substitute,
        )

    def applied(self, document: Document, problems: Problems) -> Document:
        """Lay the patches of the top level over a file; null takes a key, a row or an axis value away.

        The LLM is substituted between the profile's patches and what is typed, which may set its keys.
        """
        own = _patch(self.profile.section("experiments"), str(document.data.get("experiment")))
        document = self._patched(document, (_patch(self.profile, "experiment"), own), problems)
        document = substitute_llm(document, self.substitute.llm)
        return _without_removed(self._patched(document, self.top, problems))

    @staticmethod
    def _patched(document: Document, patches: Iterable[Document], problems: Problems) -> Document:
        for dotted in patches:
            patch = expand_dotted(dotted, whole=document.data)
            document = _with_llm_in_full(document, patch)
            absent = list(_absent_rows(document, patch))
            document = merge(document, patch, keep_nulls=True)
            for path, known in absent:
                message = f"nothing to remove: no such name{did_you_mean(path[-1], known)}"
                problems.add(patch, path, message)
                holder = document.data
                for key in path[:-1]:
                    holder = holder[key]
                del holder[path[-1]]
        return document

    def resolved(self) -> dict[str, Any]:
        """Return what patches every run, as plain data."""
        patch = Document({})
        for each in self.run:
            patch = merge(patch, each, keep_nulls=True)
        substitute = {key: value for key, value in self.substitute.model_dump().items() if value}
        return {**patch.data, **({"substitute": substitute} if substitute else {})}


def _with_llm_in_full(document: Document, patch: Document) -> Document:
    """Write `llm: NAME` as `llm: {endpoint: NAME}` where a patch sets keys beside the endpoint."""
    data, locations = _in_full(document, patch, "llm")
    named, patched = data.get("llms"), patch.data.get("llms")
    for name in patched if isinstance(named, dict) and isinstance(patched, dict) else ():
        inner = _in_full(document.section("llms"), patch.section("llms"), name)
        data = {**data, "llms": {**data["llms"], **inner[0]}}
        locations |= {("llms", *path): location for path, location in inner[1].items()}
    return Document(data, locations)


def _in_full(document: Document, patch: Document, key: str) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    llm = document.data.get(key)
    if not (isinstance(llm, str) and isinstance(patch.data.get(key), dict)):
        return dict(document.data), dict(document.locations)
    locations = {**document.locations, (key, "endpoint"): document.location((key,))}
    return {**document.data, key: in_full(llm)}, locations


def _read_profile(file: Path, name: str | None, problems: Problems) -> tuple[ProfileSection, Document]:
    if name is None:
        return ProfileSection(), Document({})
    document = read_document(profile_file(file, name))
    return Cursor(document, problems).readable(ProfileSection, document.data), document


def _patch(document: Document, key: str) -> Document:
    is_mapping = isinstance(document.data.get(key, {}), dict)
    return document.section(key) if is_mapping else Document({})


def _assignments(texts: Sequence[str]) -> list[Document]:
    """Parse every `--set`; raises one UserError on all that can't be read."""
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
    """Tell whether a `--set` changes a key that exists, and note the problem if not."""
    key, known = _first_key(assignment), (*ExperimentSection.model_fields, *RUN_KEYS)
    if key not in known:
        problems.add(assignment, (key,), f"unknown key{did_you_mean(key, known)}")
    return key in known


def _first_key(document: Document) -> str:
    return str(next(iter(document.data))).partition(".")[0]


def _absent_rows(document: Document, patch: Document) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the path of each variant, axis or axis value that a patch takes away though there is none.

    With it come the names that there are.
    """
    found, taken = document.data, patch.data
    grid, axes = _mapping(found, "grid"), _mapping(taken, "grid")
    sections: list[tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = [
        (("variants",), _mapping(found, "variants"), _mapping(taken, "variants")),
        (("grid",), grid, axes),
    ]
    sections += [(("grid", axis), _mapping(grid, axis), _mapping(axes, axis)) for axis in axes]
    for path, known, patched in sections:
        for name, value in patched.items():
            if value is None and name not in known:
                yield (*path, name), list(known)


def _mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _without_removed(document: Document) -> Document:
    """Drop keys set to null, but for those in patches and under dotted keys, still to remove something."""
    patches = ("defaults", "variants", "grid")
    data = {key: value if key in patches else without_nulls(value) for key, value in document.data.items()}
    return Document({key: value for key, value in data.items() if value is not None}, document.locations)
