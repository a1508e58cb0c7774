"""Loads and validates an experiment file with its profile and overrides; reports all faults at once."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import did_you_mean
from synthbench.base.user_files import RootedName
from synthbench.config.components import Components
from synthbench.config.documents import Document
from synthbench.config.env_file import take_keys
from synthbench.config.environment_checks import (
    IN_FILE,
    check_data_folder,
    find_roots,
    is_folder_needed,
    look_into_sources,
)
from synthbench.config.experiment import Candidate, Experiment, Variant, configs_of
from synthbench.config.llm import SHORT_FORM, AnyLLM, EndpointLLM, NamedLLM
from synthbench.config.overrides import Overrides, Request, without_removed
from synthbench.config.permissions import (
    check_cluster,
    check_command,
    check_key_variable,
    named_files,
    what_is_rounded,
    whose_code_runs,
)
from synthbench.config.precisions import GivenPrecision, given_precisions
from synthbench.config.problems import Cursor, Fault, Problems
from synthbench.config.profiles import (
    OF_ONE_MODEL,
    replacements,
    substitute_models,
    substitute_oracle,
)
from synthbench.config.rows import MOST_ROWS, ExperimentRow, RowProblems, check_values, rows_of, with_names
from synthbench.config.runs import LEARNING, RunReader
from synthbench.config.schema import AnySource, Corpora, ExperimentSection, GivenSeeds
from synthbench.config.served_llm import ServedLLM
from synthbench.config.table import TableCheck, check_figures
from synthbench.config.variants import (
    StartLinker,
    candidates_of,
    check_candidates,
    what_starts,
    with_starts,
    without_equal,
)
from synthbench.sources.description import Roots

if TYPE_CHECKING:
    from synthbench.config.published_tables import PublishedValue

MOST_TRAININGS = 20_000
LLM_KEYS = (SHORT_FORM, "llms")


def load_experiment(file: Path, overrides: Overrides | None = None, *, with_data: bool = False) -> Experiment:
    """Read and validate an experiment file, and check the local models that it names.

    Order of patches: defaults, grid axes in file order, variant, this variant's patches in the axis values,
    profile, `--set`. `with_data` also reads every local source; `notes` name the sources that were not read.

    Raises one UserError with every fault found.
    """
    experiment = _ExperimentLoader(file, overrides or Overrides()).load(with_data=with_data)
    take_keys(file.parent, _key_variables(experiment.llms.values()))
    return experiment


class _ExperimentLoader:
    def __init__(self, file: Path, overrides: Overrides) -> None:
        self.file = file
        self.folder = file.parent
        self.overrides = overrides
        self.problems = Problems(self.folder)
        request = self.request = Request.read(file, overrides, self.problems)
        self.original, self.document, self.substitute = request.file, request.substituted, request.substitute
        self.file_document = without_removed(request.file)
        self.at = Cursor(self.document, self.problems)
        self.replaced = dict.fromkeys(replacements(request.document.data, self.document.data))
        sources = Cursor(request.document, self.problems)["sources"]
        self._check_replaced([sources[name] for name in sources.mapping], AnySource)
        if self.substitute.llm:
            self._check_replaced(_llms_at(Cursor(request.file, self.problems)), AnyLLM)
            both = (request.file.data, request.document.data)
            llms = ({key: each.get(key) for key in LLM_KEYS} for each in both)
            self.replaced |= dict.fromkeys(replacements(*llms))
        # The faults of these sections are noted when the whole file is parsed.
        scratch = Cursor(self.document, Problems(self.folder))
        described = scratch["sources"]
        known = {name: described[name].parse(AnySource) for name in described.mapping}
        self.components = Components(known, _llms_of(scratch), self.folder)
        # Density figures need only the data, no training.
        self.draws_data = bool(self.document.mapping("table", "figures").get("densities"))
        self.precisions: dict[GivenPrecision, None] = {}

    def _check_replaced(self, before: Sequence[Cursor], schema: Any) -> None:  # noqa: ANN401
        """Note the faults of sections that a profile replaces: the file must be valid on its own."""
        for each in before:
            if each.value != Cursor(self.document, self.problems, each.path).value:
                each.parse(schema)

    def load(self, *, with_data: bool) -> Experiment:
        at, problems, sources = self.at, self.problems, self.components.sources
        self._check_llm_names()
        section: ExperimentSection | None = at.parse(ExperimentSection)
        if self.overrides.seeds:
            given = Document({"--seeds": list(self.overrides.seeds)})
            Cursor(given, problems)["--seeds"].parse(GivenSeeds)
        if section is not None:
            self._check_permissions(section)
        corpora = at["corpora"].parse(Corpora, at.value.get("corpora", {}))
        rows = self._rows()
        variants = self._variants(self._wanted(rows))
        table = TableCheck(at, self.original, rows)
        if rows:
            table.names()
        roots, given_by = find_roots(self.file, corpora or Corpora(), self.overrides.data)
        if self.overrides.data is not None or (with_data and is_folder_needed(sources, roots)):
            check_data_folder(at, roots, given_by)
        notes = [*self.request.expanded.notes]
        if with_data:
            optional = {name for row in rows for name in _optional_sources(row)}
            notes += look_into_sources(at["sources"], sources, optional, roots)
        published: tuple[PublishedValue, ...] = ()
        if section is not None:
            table.main_scores(section.table, variants)
            figures = section.table.figures
            check_figures(at["table"]["figures"], figures, self.original, rows, variants)
            published = table.published(section.table, self.folder, sources)
            self._check_unused(section)
            self._check_amount(section, variants)
        problems.raise_if_any()
        assert section is not None, "a section that does not parse has problems"
        distinct, equal = without_equal(variants, section.table.kept_axes)
        notes = [*equal, *notes, *whose_code_runs(distinct), *what_is_rounded(distinct)]
        is_of_file = self._is_of_file(section, variants)
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
            resolved=dict(self.file_document.data) if is_of_file else self._resolved(),
            notes=(*notes, *what_starts(distinct)),
            remarks=(*self.request.expanded.findings, *self._remarks(), *_lost(rows)),
            used_llms=frozenset(self.components.used_llms),
            files=self._files(section, variants, roots),
            is_data_folder_given=roots.data is not None and given_by != IN_FILE,
            is_of_file=is_of_file,
            rows_of_file=frozenset() if is_of_file else self._rows_of_file(section, distinct),
            precisions=tuple(self.precisions),
            document=self.document,
        )

    def _check_llm_names(self) -> None:
        if all(self.document.data.get(key) for key in LLM_KEYS):
            self.at["llms"].add("has both `llm:` and `llms:`; list the one LLM under `llms:`, too")
        if SHORT_FORM in self.at["llms"].mapping:
            message = f"'{SHORT_FORM}' is what the only LLM is called in `llm: ...`; take another name"
            self.at["llms"][SHORT_FORM].add(message)

    def _check_permissions(self, section: ExperimentSection) -> None:
        """Note a fault for each action that the user has not permitted, and each missing file of an LLM."""
        typed = self.overrides.assignments
        check_cluster(self.at["runtime"], section.runtime, self.file, typed)
        for llm in self._known_llms():
            at = Cursor(self.document, self.problems, llm.path)
            if isinstance(llm.settings, ServedLLM):
                at["model"].passes(llm.settings.check_folder)
            check_key_variable(at, llm, typed)
            check_command(at, llm, self.file, typed)

    def _rows(self) -> list[ExperimentRow]:
        rows = with_names(rows_of(self.document, self.request.runs, self.problems), self.folder)
        if rows:
            check_values(self.at, self.original)
        self.file_rows: dict[str, ExperimentRow] = {}
        if self.overrides.changes_anything:
            of_file = rows_of(self.file_document, (), Problems(self.folder))
            self.file_rows = {row.label: row for row in with_names(of_file, self.folder)}
        self.most_candidates = MOST_ROWS // max(1, len(rows))
        return rows

    def _resolved(self) -> dict[str, Any]:
        overridden = self.request.changes_of_runs()
        return {**self.document.data, **({"overrides": overridden} if overridden else {})}

    def _is_of_file(self, section: ExperimentSection, variants: Sequence[Variant]) -> bool:
        """Return whether the overrides change nothing but the runtime."""
        if not self.overrides.changes_anything:
            return True
        data, of_file = ({**each.data, "runtime": None} for each in (self.document, self.file_document))
        is_same = data == of_file and self.overrides.seeds in ((), section.seeds)
        rows = {variant.label: variant for variant in variants}
        return is_same and list(rows) == list(self.file_rows) and all(row.is_of_file for row in rows.values())

    def _rows_of_file(self, section: ExperimentSection, variants: Sequence[Variant]) -> frozenset[str]:
        """Return the labels of the rows whose results are the same without overrides."""
        data, of_file = self.document.data, self.file_document.data
        sources = of_file.get("sources")
        known = sources if isinstance(sources, dict) else {}
        is_shared = data.get("vary") == of_file.get("vary") and all(
            data["sources"][name] == known[name] for name in section.sources.keys() & known.keys()
        )
        if any(data.get(key) != of_file.get(key) for key in LLM_KEYS):
            before = _llms_of(Cursor(self.file_document, Problems(self.folder)))
            is_shared &= _identities(before) == _identities(self.components.llms)
        return frozenset(variant.label for variant in variants if is_shared and variant.is_of_file)

    def _known_llms(self) -> list[NamedLLM]:
        return [llm for llm in self.components.llms.values() if llm is not None]

    def _variants(self, rows: Sequence[ExperimentRow]) -> list[Variant]:
        """Return the valid variants; note all faults; set `idle_parts`: parts that no row uses."""
        found: list[Variant] = []
        idle: dict[str, Document] = {}
        row_problems = RowProblems(rows)
        for row in rows:
            problems = Problems(self.folder)
            variant = self._variant(row, problems, idle)
            row_problems.add(row, problems)
            if variant is not None:
                found.append(variant)
        busy = {part.name for config in configs_of(found) for part in config.parts}
        self.idle_parts = {name: row for name, row in idle.items() if name not in busy}
        found = StartLinker(found, rows, row_problems).linked()
        self.problems.note(*row_problems.faults())
        return found

    def _variant(self, row: ExperimentRow, problems: Problems, idle: dict[str, Document]) -> Variant | None:
        """Return a row with its candidates, None if none is valid; add its unused parts to `idle`."""
        at = Cursor(row.document, problems)
        candidates: list[Candidate] = []
        of_file = self.file_rows.get(row.label)
        is_of_file = of_file is not None and of_file.document.data == row.document.data
        for chosen, candidate in candidates_of(at, self.most_candidates):
            judged = substitute_oracle(candidate, self.substitute.oracle)
            substituted = substitute_models(judged, self.substitute, problems)
            self.replaced |= dict.fromkeys(replacements(judged.data, substituted.data))
            is_of_file &= substituted.data == candidate.data
            self.precisions |= dict.fromkeys(given_precisions(substituted))
            reader = RunReader(self.components, substituted, problems, draws_data=self.draws_data)
            config = reader.config()
            idle |= dict.fromkeys(reader.idle, substituted)
            if substituted.data != judged.data:
                self._check_models(judged, problems)
            if config is not None:
                candidates.append(Candidate(chosen, config))
        if not candidates:
            return None
        parameters = candidates[0].config.parameters
        if candidates[0].chosen:
            ranged = {path: list(values) for path, values in row.document.data["select"]["over"].items()}
            parameters = {**parameters, **ranged}
            check_candidates(at["select"], candidates)
        return Variant(row.name, row.axes, tuple(candidates), parameters, is_of_file)

    def _check_models(self, before: Document, problems: Problems) -> None:
        """Note the faults of a replaced model's settings, such as its revision.

        The models themselves need not be on this machine.
        """
        components = Components(self.components.sources, self.components.llms, self.folder)
        scratch = Problems(self.folder)
        RunReader(components, before, scratch, draws_data=self.draws_data).config()
        problems.note(*(fault for fault in scratch.faults if fault.key.endswith(OF_ONE_MODEL)))

    def _files(
        self, section: ExperimentSection, variants: Sequence[Variant], roots: Roots
    ) -> tuple[Path, ...]:
        documents = (self.original, self.document, self.request.profile, *self.request.runs)
        configs = list(configs_of(variants))
        published = [options.file for options in (section.table.published, section.table.costs) if options]
        names = [name for given in published for name in ([given] if isinstance(given, str) else given)]
        others: list[Any] = [
            [llm.settings for llm in self._known_llms()],
            [RootedName(name, self.folder) for name in names],
        ]
        others += [audit.sheets for config in configs for audit in config.audits]
        found = named_files(documents, section.sources.values(), roots, configs, others)
        return tuple(dict.fromkeys(filter(os.path.lexists, found)))

    def _remarks(self) -> Iterator[str]:
        """Yield remarks on the profile's replacements and on an unused LLM."""
        for new in dict.fromkeys(new for _, new in self.replaced):
            replaced = ", ".join(old for old, its_new in self.replaced if its_new == new)
            yield f"--profile {self.overrides.profile}: {replaced} -> {new}"
        for llm in self._known_llms():
            if llm.name not in self.components.used_llms:
                yield f"{llm.section}: nothing uses it"

    def _check_unused(self, section: ExperimentSection) -> None:
        """Note a fault for each source, LLM and part that no row uses.

        Checks nothing after other faults, or if --profile, --variant or --set may be the cause.
        """
        changes = [
            each for each in self.overrides.assignments if not each.startswith(("runtime.", "llm.", "llms."))
        ]
        if self.problems.faults or self.overrides.variants or self.overrides.profile or changes:
            return
        for name in section.sources:
            if name not in self.components.used_sources:
                self.at["sources"][name].add("is used by no variant")
        for name in self.components.llms:
            if name not in self.components.used_llms and name != SHORT_FORM:
                self.at["llms"][name].add("no row asks it")
        for name, row in self.idle_parts.items():
            message = "is not trained on, and no other part, selection or audit uses it"
            self.problems.add(row, ("data", name), message)

    def _check_amount(self, section: ExperimentSection, variants: Sequence[Variant]) -> None:
        """Note a fault if seeds x candidates of all rows exceed MOST_TRAININGS."""
        number = len(self.overrides.seeds or section.seeds) * sum(len(each.candidates) for each in variants)
        if number > MOST_TRAININGS:
            many = f"{number:,} trainings, rows times seeds; at most {MOST_TRAININGS:,} are planned"
            self.at["seeds"].add(many)

    def _wanted(self, rows: Sequence[ExperimentRow]) -> list[ExperimentRow]:
        """Return the rows that `--variant` selects (default: all), and rows that these start from.

        Notes a fault for each unknown variant.
        """
        wanted, names = self.overrides.variants, {row.name for row in rows}
        for name in wanted if rows else ():
            if name not in names:
                message = f"no such variant in {self.file}{did_you_mean(name, names)}"
                self.problems.note(Fault("", f"--variant {name}", message))
        return with_starts(rows, wanted)


def _llms_at(at: Cursor) -> list[Cursor]:
    """Return a cursor at each LLM's section of a file."""
    only = [] if at[SHORT_FORM].value is None else [at[SHORT_FORM]]
    return [*only, *(at["llms"][name] for name in at["llms"].mapping)]


def _llms_of(file: Cursor) -> dict[str, NamedLLM | None]:
    """Return LLM's name -> LLM, None for an invalid section; note the faults of these sections."""
    found: dict[str, NamedLLM | None] = {}
    for at in _llms_at(file):
        name, settings = str(at.path[-1]), at.parse(AnyLLM)
        options = settings.options() if isinstance(settings, EndpointLLM) else ()
        locations = {option: at.document.location((*at.path, option)) for option in options}
        found[name] = None if settings is None else NamedLLM(name, settings, locations)
    return found


def _key_variables(llms: Iterable[NamedLLM]) -> Iterator[str]:
    for llm in llms:
        if isinstance(llm.settings, EndpointLLM) and llm.settings.key_variable is not None:
            yield llm.settings.key_variable


def _identities(llms: Mapping[str, NamedLLM | None]) -> dict[str, dict[str, Any] | None]:
    return {name: None if llm is None else dict(llm.settings.identity()) for name, llm in llms.items()}


def _lost(rows: Sequence[ExperimentRow]) -> Iterator[str]:
    """Yield a message on each part that silently loses its prepare steps, with the variants concerned."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        for lost in row.lost:
            names.setdefault(lost, {})[row.name] = None
    for lost, of in names.items():
        yield f"{lost} (in {', '.join(of)})"


def _optional_sources(row: ExperimentRow) -> Iterator[str]:
    """Yield a row's optional sources, whose data may be missing; skip unreadable keys."""
    for _, at in Cursor(row.document, Problems())["evaluate"].sections:
        for key in ("if_found", *(() if at["tasks"].value else LEARNING)):
            listed = at[key].value
            yield from (str(name) for name in (listed if isinstance(listed, list) else ()))
