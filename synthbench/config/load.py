"""From an experiment file, a profile and overrides to a validated Experiment, or to all its faults."""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synthbench.config.documents import (
    Document,
    expand_dotted,
    merge,
    parse_document,
    read_document,
    without_nulls,
)
from synthbench.config.experiment import Candidate, Experiment, RunConfig, Variant
from synthbench.config.problems import Problems, parse
from synthbench.config.runs import RunParser
from synthbench.config.schema import ExperimentSection, Name, ProfileSection
from synthbench.config.substitution import substitute_models
from synthbench.errors import UserError, did_you_mean
from synthbench.sources.places import Places

RUN_KEYS = ("data", "train", "evaluate", "select")


@dataclass(frozen=True)
class Overrides:
    """What the command line changes in an experiment."""

    profile: str | None = None
    assignments: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    data: Path | None = None


def load_experiment(file: Path, overrides: Overrides | None = None) -> Experiment:
    """Read and validate an experiment file.

    Order of patches: defaults, grid axes in the order of the file, variant, profile, `--set`.
    Raises one UserError with every fault found.
    """
    overrides = overrides or Overrides()
    return _Loader(file, overrides).load()


class _Loader:
    def __init__(self, file: Path, overrides: Overrides) -> None:
        self.file = file
        self.overrides = overrides
        self.problems = Problems()
        self.profile, self.profile_document = self._read_profile()
        assignments = [each for each in _assignments(overrides.assignments) if self._is_known(each)]
        self.run_assignments = [a for a in assignments if _first_key(a) in RUN_KEYS]
        document = read_document(file)
        patches = [expand_dotted(self.profile_document.section("experiment"))]
        patches += [assignment for assignment in assignments if assignment not in self.run_assignments]
        for patch in patches:
            document = merge(document, patch, keep_nulls=True)
        self.document = _without_removed(document)

    def _is_known(self, assignment: Document) -> bool:
        """Tell whether a `--set` changes a key that exists, and note the problem if not."""
        key, known = _first_key(assignment), (*ExperimentSection.model_fields, *RUN_KEYS)
        if key not in known:
            self.problems.add(assignment, (key,), f"unknown key{did_you_mean(key, known)}")
        return key in known

    def load(self) -> Experiment:
        section: ExperimentSection | None = parse(
            ExperimentSection, self.document.data, self.document, (), self.problems
        )
        if section is None:
            self._look_into_runs_all_the_same()
            self.problems.raise_if_any()
            raise AssertionError("a section that does not parse has problems")
        runs = RunParser(section.sources, self.problems)
        variants = [
            self._variant(name, axes, document, runs) for name, axes, document in self._wanted(section)
        ]
        self._check_table(section, variants)
        self._check_unused(section, runs)
        self.problems.raise_if_any()
        distinct, notes = _without_equal([variant for variant in variants if variant is not None])
        return Experiment(
            name=section.experiment,
            description=section.description,
            file=self.file,
            sources=section.sources,
            places=self._places(section),
            variants=tuple(distinct),
            seeds=self.overrides.seeds or section.seeds,
            table=section.table,
            runtime=section.runtime,
            resolved=self._resolved(),
            notes=tuple(notes),
        )

    def _resolved(self) -> dict[str, Any]:
        """Return the file with all that was changed from outside; what patches every run stands apart."""
        patch = expand_dotted(self.profile_document.section("run"))
        for assignment in self.run_assignments:
            patch = merge(patch, assignment, keep_nulls=True)
        substitutes = self.profile.substitute.models
        overrides = {**patch.data, **({"substitute": dict(substitutes)} if substitutes else {})}
        return {**self.document.data, **({"overrides": overrides} if overrides else {})}

    def _read_profile(self) -> tuple[ProfileSection, Document]:
        name = self.overrides.profile
        if name is None:
            return ProfileSection(), Document({})
        file = self.file.parent / "profiles" / f"{name}.yaml"
        if not file.is_file():
            known = [path.stem for path in file.parent.glob("*.yaml")]
            raise UserError(f"--profile {name}: no such file: {file}{did_you_mean(name, known)}")
        document = read_document(file)
        problems = Problems()
        profile = parse(ProfileSection, document.data, document, (), problems)
        problems.raise_if_any()
        return profile, document

    def _look_into_runs_all_the_same(self) -> None:
        """Report faults within the runs together with those of the top level, where its shape allows."""
        data = self.document.data
        mappings = ("sources", "defaults", "grid", "variants")
        if not all(isinstance(data.get(key, {}), dict) for key in mappings):
            return
        readable = {key: data[key] for key in ("defaults", "variants", "grid", "baseline") if key in data}
        scratch = Problems()
        section = parse(ExperimentSection, {"experiment": "x", **readable}, self.document, (), scratch)
        if section is None:
            return
        runs = RunParser(dict.fromkeys(data.get("sources", {})), self.problems)
        for name, axes, document in self._rows(section):
            self._variant(name, axes, document, runs)

    def _rows(self, section: ExperimentSection) -> Iterator[tuple[str, dict[str, str], Document]]:
        """Yield (variant, axis values, merged run document) of every row."""
        defaults = expand_dotted(self.document.section("defaults"))
        variants = self._variant_patches(section)
        grid = self.document.section("grid")
        axes = [[(axis, value) for value in values] for axis, values in section.grid.items()]
        idle = {name for name, patch in variants if patch.data}
        for combination in itertools.product(*axes):
            crossed = defaults
            for axis, value in combination:
                crossed = merge(crossed, expand_dotted(grid.section(axis).section(value)))
            for name, patch in variants:
                document = merge(crossed, patch)
                if document.data != crossed.data:
                    idle.discard(name)
                yield name, dict(combination), self._patched(document)
        for name in (name for name, _ in variants if name in idle):
            self.problems.add(self.document, ("variants", name), _PATCHES_NOTHING)

    def _variant_patches(self, section: ExperimentSection) -> list[tuple[str, Document]]:
        patches: list[tuple[str, Document]] = []
        if section.baseline is not None and section.baseline not in section.variants:
            patches.append((section.baseline, Document({})))
        elif not section.variants:
            patches.append((section.experiment, Document({})))
        for name, patch in section.variants.items():
            if not patch:
                self.problems.add(self.document, ("variants", name), _PATCHES_NOTHING)
            else:
                patches.append((name, expand_dotted(self.document.section("variants").section(name))))
        return patches

    def _patched(self, document: Document) -> Document:
        document = merge(document, expand_dotted(self.profile_document.section("run")))
        for assignment in self.run_assignments:
            document = merge(document, assignment)
        return document

    def _variant(
        self, name: str, axes: dict[str, str], document: Document, runs: RunParser
    ) -> Variant | None:
        candidates: list[Candidate] = []
        for chosen, candidate in self._candidates(document):
            substituted = substitute_models(candidate, self.profile.substitute.models, self.problems)
            config = runs.parse(substituted)
            if config is not None:
                candidates.append(Candidate(chosen, config))
        if not candidates:
            return None
        parameters = candidates[0].config.parameters
        if len(candidates) > 1:
            ranged = {path: list(values) for path, values in document.data["select"]["over"].items()}
            parameters = {**parameters, **ranged}
            self._check_candidates(document, candidates)
        return Variant(name, axes, tuple(candidates), parameters)

    def _check_candidates(self, document: Document, candidates: Sequence[Candidate]) -> None:
        first = candidates[0].config
        if first.selection is None:
            self.problems.add(document, ("select",), "needs train.selection: candidates are compared on dev")
        if any(candidate.config.selection != first.selection for candidate in candidates):
            self.problems.add(document, ("select",), "candidates must have the same train.selection")
        if any(candidate.config.evaluations != first.evaluations for candidate in candidates):
            self.problems.add(document, ("select",), "ranges over data and train only, not over evaluate")

    def _candidates(self, document: Document) -> Iterator[tuple[dict[str, Any], Document]]:
        over = document.data.get("select")
        over = over.get("over") if isinstance(over, dict) else None
        if not (isinstance(over, dict) and all(isinstance(v, list) and v for v in over.values())):
            yield {}, document
            return
        place = document.place(("select", "over"))
        for values in itertools.product(*over.values()):
            chosen = dict(zip(over, values, strict=True))
            patch = expand_dotted(Document(chosen, {(): place, **{(path,): place for path in chosen}}))
            yield chosen, merge(document, patch)

    def _check_table(self, section: ExperimentSection, variants: Sequence[Variant | None]) -> None:
        """Require that the table names test sets and variants that there are."""
        found = [variant for variant in variants if variant is not None]
        if len(found) < len(variants) or self.overrides.variants:
            return
        configs = [candidate.config for variant in found for candidate in variant.candidates]
        tasks = {t for config in configs for e in config.evaluations for t in (*e.tasks, *e.if_found)}
        names = {variant.name for variant in found}
        for key, what, known in (
            ("columns", "test set", tasks),
            ("average", "test set", tasks),
            ("ceiling", "variant", names),
        ):
            for index, name in enumerate(getattr(section.table, key) or ()):
                if name not in known:
                    message = f"no {what} is called '{name}'{did_you_mean(name, known)}"
                    self.problems.add(self.document, ("table", key, index), message)

    def _check_unused(self, section: ExperimentSection, runs: RunParser) -> None:
        """Require that the file as it is, without overrides, uses every source that it names."""
        changed = self.overrides.variants or self.overrides.profile or self.overrides.assignments
        if self.problems.messages or changed:
            return
        for name in section.sources:
            if name not in runs.used_sources:
                self.problems.add(self.document, ("sources", name), "is used by no variant")

    def _wanted(self, section: ExperimentSection) -> list[tuple[str, dict[str, str], Document]]:
        """Return the rows that `--variant` leaves, all without it."""
        rows = list(self._rows(section))
        names = {name for name, _, _ in rows}
        wanted = self.overrides.variants
        unknown = [name for name in wanted if name not in names]
        if unknown:
            where = f"no such variant in {self.file}"
            raise UserError(*(f"--variant {name}: {where}{did_you_mean(name, names)}" for name in unknown))
        return [row for row in rows if not wanted or row[0] in wanted]

    def _places(self, section: ExperimentSection) -> Places:
        folder = self.overrides.data
        if folder is None and section.corpora.folder is not None:
            folder = self.file.parent / section.corpora.folder
        if folder is None and os.environ.get("SYNTHBENCH_DATA"):
            folder = Path(os.environ["SYNTHBENCH_DATA"])
        return Places(data=folder, origin=section.corpora.origin, base=self.file.parent)


_PATCHES_NOTHING = (
    "patches nothing: every value is the defaults' own (name that row with `baseline:` instead)"
)


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
    place = f"--set {text}"
    if not separator or not path or "" in path.split("."):
        raise UserError(f"{place}: must read PATH=VALUE, such as train.learning_rate=2e-5")
    parsed = parse_document(f"{path.strip()}: {value}", place)
    paths = dict.fromkeys(parsed.places, place)
    return expand_dotted(Document(parsed.data, paths))


def _without_removed(document: Document) -> Document:
    """Drop keys set to null, but for those in patches, which are still to remove something."""
    patches = ("variants", "grid")
    data = {key: value if key in patches else without_nulls(value) for key, value in document.data.items()}
    return Document({key: value for key, value in data.items() if value is not None}, document.places)


def _first_key(document: Document) -> str:
    return str(next(iter(document.data)))


def _without_equal(variants: Sequence[Variant]) -> tuple[list[Variant], list[str]]:
    """Drop variants that compute what an earlier one computes, with a note on each.

    A variant that is the same for several values of an axis loses the axis and comes behind the others.
    """
    distinct: list[Variant] = []
    notes: dict[str, None] = {}
    for variant in variants:
        twin = next((known for known in distinct if _configs(known) == _configs(variant)), None)
        if twin is None:
            distinct.append(variant)
        elif twin.name == variant.name:
            common = {axis: value for axis, value in twin.axes.items() if variant.axes.get(axis) == value}
            distinct[distinct.index(twin)] = replace(twin, axes=common)
            axes = " and ".join(axis for axis in variant.axes if axis not in common)
            notes[f"{variant.name} is the same for every {axes}; it is shown once"] = None
        else:
            notes[f"{variant.label} is the same as {twin.label}; it is shown once"] = None
    num_axes = max((len(variant.axes) for variant in distinct), default=0)
    return sorted(distinct, key=lambda variant: len(variant.axes) < num_axes), list(notes)


def _configs(variant: Variant) -> list[RunConfig]:
    return [candidate.config for candidate in variant.candidates]


def experiment_name(file: Path) -> str:
    """Return the name of the experiment in a file, whatever else is wrong with it.

    Raises UserError if there is none.
    """
    document = read_document(file)
    problems = Problems()
    name = parse(Name, document.data.get("experiment"), document, ("experiment",), problems)
    problems.raise_if_any()
    return str(name)
