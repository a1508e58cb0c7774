"""From an experiment file, a profile and overrides to a validated Experiment, or to all its faults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import did_you_mean
from synthbench.base.user_files import RootedName
from synthbench.config.candidates import candidates_of, check_candidates
from synthbench.config.coordinates import coordinates_of
from synthbench.config.documents import Document, read_document
from synthbench.config.environment_checks import (
    IN_FILE,
    check_data_folder,
    check_llm,
    find_roots,
    is_folder_needed,
    look_into_sources,
)
from synthbench.config.experiment import Candidate, Experiment, RunConfig, Variant
from synthbench.config.llm import SHORT_FORM, AnyLLM, EndpointLLM, NamedLLM
from synthbench.config.overrides import Changes, Overrides
from synthbench.config.permissions import (
    check_cluster,
    check_command,
    check_key_variable,
    named_files,
    what_is_rounded,
    whose_code_runs,
)
from synthbench.config.precisions import GivenPrecision, given_precisions
from synthbench.config.problems import Fault, Problems, parse
from synthbench.config.profiles import replacements, substitute_models, substitute_oracle, substitute_tasks
from synthbench.config.provided_tasks import with_names
from synthbench.config.replaced import check_llms, check_models, check_sources
from synthbench.config.rows import MOST_ROWS, ExperimentRow, RowProblems, check_values, rows_of
from synthbench.config.runs import LEARNING, RunParser
from synthbench.config.schema import AnySource, Corpora, ExperimentSection
from synthbench.config.starts import StartLinker, what_starts, with_starts
from synthbench.config.table import FiguresCheck, TableCheck
from synthbench.sources.description import Roots
from synthbench.sources.models import Source

if TYPE_CHECKING:
    from synthbench.config.published_tables import PublishedValue

MOST_TRAININGS = 20_000


def load_experiment(file: Path, overrides: Overrides | None = None, *, with_data: bool = False) -> Experiment:
    """Read and validate an experiment file and look for the local models that it names.

    Order of patches: defaults, grid axes in the order of the file, variant, what the axes' values say of
    this variant, profile, `--set`. `with_data`
    reads every source, too, that lies on this machine; what was not read is named in the notes.

    Raises one UserError with every fault found.
    """
    return _ExperimentLoader(file, overrides or Overrides()).load(with_data=with_data)


LLM_KEYS = (SHORT_FORM, "llms")


def _llms_of(document: Document, problems: Problems) -> dict[str, NamedLLM | None]:
    """Return the LLMs that a file names, None for one whose section is wrong; their faults are noted."""
    given = document.data.get("llms")
    sections: dict[tuple[str, ...], Any] = {}
    if document.data.get(SHORT_FORM) is not None:
        sections[SHORT_FORM,] = document.data[SHORT_FORM]
    for name, raw in given.items() if isinstance(given, dict) else ():
        sections["llms", name] = raw
    found: dict[str, NamedLLM | None] = {}
    for path, raw in sections.items():
        settings = parse(AnyLLM, raw, document, path, problems)
        options = settings.options() if isinstance(settings, EndpointLLM) else ()
        locations = {option: document.location((*path, option)) for option in options}
        found[path[-1]] = None if settings is None else NamedLLM(path[-1], settings, locations)
    return found


def _identities(llms: Mapping[str, NamedLLM | None]) -> dict[str, dict[str, Any] | None]:
    return {name: None if llm is None else dict(llm.settings.identity()) for name, llm in llms.items()}


class _ExperimentLoader:
    def __init__(self, file: Path, overrides: Overrides) -> None:
        self.file = file
        self.overrides = overrides
        self.problems = Problems(file.parent)
        self.changes = Changes.read(file, overrides, self.problems)
        self.original = read_document(file)
        patched = self.changes.applied(self.original, self.problems)
        self.document = substitute_tasks(patched, self.changes.substitute.tasks, self.problems)
        self.replaced = dict.fromkeys(replacements(patched, self.document))
        check_sources(patched, self.document, self.problems)
        if self.changes.substitute.llm:
            check_llms(self.original, self.document, self.problems)
            llms = (
                Document({key: each.data.get(key) for key in LLM_KEYS}) for each in (self.original, patched)
            )
            self.replaced |= dict.fromkeys(replacements(*llms))
        self.file_document = Changes.none().applied(self.original, Problems(file.parent))
        self.file_rows: Mapping[str, ExperimentRow] = {}
        self.used_llms: set[str] = set()
        self.idle_parts: dict[str, Document] = {}
        """Parts of which no row makes use, each with a row that has it."""
        self.precisions: dict[GivenPrecision, None] = {}
        self.num_rows = 1
        self.sources = self._sources()
        self.llms = self._llms()

    def load(self, *, with_data: bool) -> Experiment:
        document, problems = self.document, self.problems
        section: ExperimentSection | None = parse(ExperimentSection, document.data, document, (), problems)
        if section is not None:
            given = self.overrides.assignments
            check_cluster(section.runtime, self.file, document, given, problems)
            for llm in self._known_llms():
                check_llm(llm, document, problems)
                check_key_variable(llm, document, self.overrides.assignments, problems)
                check_command(llm, self.file, document, self.overrides.assignments, problems)
        corpora = parse(Corpora, document.data.get("corpora", {}), document, ("corpora",), problems)
        rows = self._rows()
        variants, used_sources = self._variants(self._wanted(rows))
        table = TableCheck(document, self.original, rows, problems)
        if rows:
            table.names()
        roots, given_by = find_roots(self.file, corpora or Corpora(), self.overrides.data)
        if self.overrides.data is not None or (with_data and is_folder_needed(self.sources, roots)):
            check_data_folder(roots, given_by, document, problems)
        notes: list[str] = []
        if with_data:
            optional = {name for row in rows for name in _optional_sources(row)}
            notes = list(look_into_sources(self.sources, optional, roots, document, problems))
        published: tuple[PublishedValue, ...] = ()
        if section is not None:
            table.main_scores(section.table, variants)
            figures = FiguresCheck(document, self.original, rows, problems)
            figures.check(section.table.figures, variants)
            published = table.published(section.table, self.file.parent, self.sources)
            published = (*published, *table.published_costs(section.table, self.file.parent))
            self._check_unused(section, used_sources)
            self._check_amount(section, variants)
        problems.raise_if_any()
        assert section is not None, "a section that does not parse has problems"
        distinct, equal = _without_equal(variants, section.table.kept_axes)
        is_of_file = self._is_of_file(section, variants)
        resolved = dict(self.file_document.data) if is_of_file else self._resolved()
        return Experiment(
            name=section.experiment,
            description=section.description,
            file=self.file,
            sources=section.sources,
            roots=roots,
            variants=tuple(distinct),
            seeds=self.overrides.seeds or section.seeds,
            vary=section.vary,
            llms={llm.name: llm for llm in self._known_llms()},
            table=section.table,
            published=published,
            runtime=section.runtime,
            resolved=resolved,
            notes=(*equal, *notes, *_notes_on(distinct)),
            remarks=(*self._remarks(section), *_lost(rows)),
            used_llms=frozenset(self.used_llms),
            files=self._files(section, variants, roots),
            is_data_folder_given=roots.data is not None and given_by != IN_FILE,
            is_of_file=is_of_file,
            rows_of_file=frozenset() if is_of_file else self._rows_of_file(section, distinct),
            precisions=tuple(self.precisions),
        )

    def _rows(self) -> list[ExperimentRow]:
        rows = with_names(rows_of(self.document, self.changes.run, self.problems), self.file.parent)
        if rows:
            check_values(self.document, self.original, self.problems)
        if self.overrides.changes_anything:
            of_file = rows_of(self.file_document, (), Problems(self.file.parent))
            self.file_rows = {row.label: row for row in with_names(of_file, self.file.parent)}
        self.num_rows = max(1, len(rows))
        return rows

    def _resolved(self) -> dict[str, Any]:
        overridden = self.changes.resolved()
        return {**self.document.data, **({"overrides": overridden} if overridden else {})}

    def _is_of_file(self, section: ExperimentSection, variants: Sequence[Variant]) -> bool:
        """Tell whether the overrides change nothing but the runtime."""
        if not self.overrides.changes_anything:
            return True
        data, of_file = ({**each.data, "runtime": None} for each in (self.document, self.file_document))
        is_same = data == of_file and self.overrides.seeds in ((), section.seeds)
        rows = {variant.label: variant for variant in variants}
        return is_same and list(rows) == list(self.file_rows) and all(row.is_of_file for row in rows.values())

    def _rows_of_file(self, section: ExperimentSection, variants: Sequence[Variant]) -> frozenset[str]:
        """Return the labels of the rows that compute what rows of these names compute without overrides."""
        data, of_file = self.document.data, self.file_document.data
        sources = of_file.get("sources")
        known = sources if isinstance(sources, dict) else {}
        is_shared = data.get("vary") == of_file.get("vary") and all(
            data["sources"][name] == known[name] for name in section.sources.keys() & known.keys()
        )
        if any(data.get(key) != of_file.get(key) for key in LLM_KEYS):
            before = _llms_of(self.file_document, Problems(self.file.parent))
            is_shared &= _identities(before) == _identities(self.llms)
        return frozenset(variant.label for variant in variants if is_shared and variant.is_of_file)

    def _sources(self) -> dict[str, Source | None]:
        """Return each source by name; None for one whose section is wrong, which the whole's parse notes."""
        described = self.document.data.get("sources")
        scratch = Problems(self.file.parent)
        return {
            name: parse(AnySource, raw, self.document, ("sources", name), scratch)
            for name, raw in (described.items() if isinstance(described, dict) else ())
        }

    def _llms(self) -> dict[str, NamedLLM | None]:
        """Return each LLM by name; None for one whose section is wrong, which the whole's parse notes."""
        if all(self.document.data.get(key) for key in LLM_KEYS):
            message = "has both `llm:` and `llms:`; list the one LLM under `llms:`, too"
            self.problems.add(self.document, ("llms",), message)
        named = self.document.data.get("llms")
        if isinstance(named, dict) and SHORT_FORM in named:
            message = f"'{SHORT_FORM}' is what the only LLM is called in `llm: ...`; take another name"
            self.problems.add(self.document, ("llms", SHORT_FORM), message)
        return _llms_of(self.document, Problems(self.file.parent))

    def _known_llms(self) -> list[NamedLLM]:
        return [llm for llm in self.llms.values() if llm is not None]

    def _variants(self, rows: Sequence[ExperimentRow]) -> tuple[list[Variant], set[str]]:
        """Return the valid variants, and the sources that were used; note the faults of the others."""
        found: list[Variant] = []
        used: set[str] = set()
        idle: dict[str, Document] = {}
        busy: set[str] = set()
        row_problems = RowProblems(rows)
        for row in rows:
            parser = self._parser()
            problems = parser.problems
            variant = self._variant(row, parser)
            used |= parser.components.used_sources
            idle |= parser.idle
            busy.update(*map(_names_of_parts, variant.candidates if variant else ()))
            self.used_llms |= parser.components.used_llms
            row_problems.add(row, problems)
            if variant is not None:
                found.append(variant)
        found = StartLinker(found, rows, row_problems).linked()
        self.problems.note(*row_problems.faults())
        self.idle_parts = {name: row for name, row in idle.items() if name not in busy}
        return found, used

    def _parser(self) -> RunParser:
        folder = self.file.parent
        return RunParser(self.sources, Problems(folder), folder, self.llms, draws_data=self._draws_data())

    def _draws_data(self) -> bool:
        """Tell whether the table asks for a figure of the data themselves: nothing need be trained for it."""
        figures = self.document.section("table").data.get("figures")
        return isinstance(figures, dict) and bool(figures.get("densities"))

    def _variant(self, row: ExperimentRow, parser: RunParser) -> Variant | None:
        document, problems = row.document, parser.problems
        candidates: list[Candidate] = []
        of_file = self.file_rows.get(row.label)
        is_of_file = of_file is not None and of_file.document.data == document.data
        for chosen, candidate in candidates_of(document, problems, MOST_ROWS // self.num_rows):
            substitute = self.changes.substitute
            judged = substitute_oracle(candidate, substitute.oracle)
            substituted = substitute_models(judged, substitute, problems)
            self.replaced |= dict.fromkeys(replacements(judged, substituted))
            is_of_file &= substituted.data == candidate.data
            self.precisions |= dict.fromkeys(given_precisions(substituted))
            config = parser.parse(substituted)
            if substituted.data != judged.data:
                check_models(judged, self._parser(), problems)
            if config is not None:
                candidates.append(Candidate(chosen, config))
        if not candidates:
            return None
        parameters = candidates[0].config.parameters
        if candidates[0].chosen:
            ranged = {path: list(values) for path, values in document.data["select"]["over"].items()}
            parameters = {**parameters, **ranged}
            check_candidates(document, candidates, problems)
        return Variant(row.name, row.axes, tuple(candidates), parameters, is_of_file)

    def _files(
        self, section: ExperimentSection, variants: Sequence[Variant], roots: Roots
    ) -> tuple[Path, ...]:
        documents = (self.original, self.document, self.changes.profile, *self.changes.run)
        configs = [candidate.config for variant in variants for candidate in variant.candidates]
        published = [options.file for options in (section.table.published, section.table.costs) if options]
        names = [name for given in published for name in ([given] if isinstance(given, str) else given)]
        others: list[Any] = [
            [llm.settings for llm in self._known_llms()],
            [RootedName(name, self.file.parent) for name in names],
        ]
        others += [audit.sheets for config in configs for audit in config.audits]
        found = named_files(documents, section.sources.values(), roots, configs, others)
        return tuple(dict.fromkeys(found))

    def _remarks(self, section: ExperimentSection) -> Iterator[str]:
        """Yield what the profile replaced, and that an LLM is named in vain."""
        for new in dict.fromkeys(new for _, new in self.replaced):
            replaced = ", ".join(old for old, its_new in self.replaced if its_new == new)
            yield f"--profile {self.overrides.profile}: {replaced} -> {new}"
        for llm in self._known_llms():
            if llm.name not in self.used_llms:
                yield f"{llm.section}: nothing uses it"

    def _check_unused(self, section: ExperimentSection, used_sources: set[str]) -> None:
        """Require that the file as it is, without overrides, uses every source that it names."""
        changes = [
            each for each in self.overrides.assignments if not each.startswith(("runtime.", "llm.", "llms."))
        ]
        if self.problems.faults or self.overrides.variants or self.overrides.profile or changes:
            return
        for name in section.sources:
            if name not in used_sources:
                self.problems.add(self.document, ("sources", name), "is used by no variant")
        for name in self.llms:
            if name not in self.used_llms and name != SHORT_FORM:
                self.problems.add(self.document, ("llms", name), "no row asks it")
        for name, row in self.idle_parts.items():
            message = "is not trained on, and no other part, selection or audit uses it"
            self.problems.add(row, ("data", name), message)

    def _check_amount(self, section: ExperimentSection, variants: Sequence[Variant]) -> None:
        """Require that the trainings of the whole experiment can be planned in reasonable time."""
        number = len(self.overrides.seeds or section.seeds) * sum(len(each.candidates) for each in variants)
        if number > MOST_TRAININGS:
            many = f"{number:,} trainings, rows times seeds; at most {MOST_TRAININGS:,} are planned"
            self.problems.add(self.document, ("seeds",), many)

    def _wanted(self, rows: Sequence[ExperimentRow]) -> list[ExperimentRow]:
        """Return the rows that `--variant` leaves, and those that they start from; all without it."""
        wanted, names = self.overrides.variants, {row.name for row in rows}
        for name in wanted if rows else ():
            if name not in names:
                message = f"no such variant in {self.file}{did_you_mean(name, names)}"
                self.problems.note(Fault("", f"--variant {name}", message))
        return with_starts(rows, wanted)


def _without_equal(variants: Sequence[Variant], kept: Sequence[str]) -> tuple[list[Variant], list[str]]:
    """Drop variants that compute what an earlier one computes, with a note on each.

    A variant that is the same for all values of an axis loses the axis and comes behind the others; not so on
    an axis in `kept`, whose values are columns, or points of a curve.
    """
    groups: list[list[Variant]] = []
    for variant in variants:
        coordinates = coordinates_of(variant.axes, kept)
        equals = (
            group
            for group in groups
            if coordinates_of(group[0].axes, kept) == coordinates and _configs(group[0]) == _configs(variant)
        )
        group = next(equals, None)
        if group is None:
            groups.append([variant])
        else:
            group.append(variant)
    notes: dict[str, None] = {}
    distinct = []
    for first, *others in groups:
        shared = _shared_axes([first, *(each for each in others if each.name == first.name)], variants)
        if shared:
            notes[f"{first.name} is the same for every {' and '.join(shared)}; it is shown once"] = None
            others = [each for each in others if each.name != first.name]
        notes |= {f"{each.label} is the same as {first.label}; it is shown once": None for each in others}
        axes = {axis: value for axis, value in first.axes.items() if axis not in shared}
        distinct.append(replace(first, axes=axes))
    num_axes = max((len(variant.axes) for variant in distinct), default=0)
    return sorted(distinct, key=lambda variant: len(variant.axes) < num_axes), list(notes)


def _shared_axes(equal: Sequence[Variant], variants: Sequence[Variant]) -> list[str]:
    """Return the axes over which equal variants of one name spread, if these are all points of the axes."""
    varying = [axis for axis in equal[0].axes if len({each.axes[axis] for each in equal}) > 1]
    fixed = {axis: value for axis, value in equal[0].axes.items() if axis not in varying}
    all_points = [
        each for each in variants if each.name == equal[0].name and fixed.items() <= each.axes.items()
    ]
    return varying if len(all_points) == len(equal) else []


def _notes_on(variants: Sequence[Variant]) -> Iterator[str]:
    """Yield what who reads the results must know of the rows."""
    yield from whose_code_runs(variants)
    yield from what_is_rounded(variants)
    yield from what_starts(variants)


def _names_of_parts(candidate: Candidate) -> Iterator[str]:
    return (part.name for part in candidate.config.parts)


def _configs(variant: Variant) -> list[RunConfig]:
    return [candidate.config for candidate in variant.candidates]


def _lost(rows: Sequence[ExperimentRow]) -> Iterator[str]:
    """Yield what patches dropped unnamed, each once with the variants that it holds for."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        for lost in row.lost:
            names.setdefault(lost, {})[row.name] = None
    for lost, of in names.items():
        yield f"{lost} (in {', '.join(of)})"


def _optional_sources(row: ExperimentRow) -> Iterator[str]:
    """Yield the sources of a row whose data may be missing, as `EvaluationPlan.optional`, where readable."""
    evaluate = row.document.data.get("evaluate")
    for raw in evaluate.values() if isinstance(evaluate, dict) else ():
        section = raw if isinstance(raw, dict) else {}
        for key in ("if_found", *(() if section.get("tasks") else LEARNING)):
            listed = section.get(key)
            yield from (str(name) for name in (listed if isinstance(listed, list) else ()))
