"""The short form of an experiment file, with `base:`, and the long form that it expands to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from synthbench.base.user_files import RootedName, path_of
from synthbench.config.documents import (
    Document,
    KeyPath,
    expand_dotted,
    merge,
    texts_in,
    without_nulls,
)
from synthbench.config.problems import Cursor, Problems
from synthbench.config.profiles import substituted_model
from synthbench.config.providers import LLM, LLMS, PROVIDERS, with_providers
from synthbench.config.recipes import RECIPE, Recipe, located, recipe, recipes, without_recipe
from synthbench.config.schema import AnySource, SubstituteSection
from synthbench.config.short_section import ShortSection, SizedBase, StudyBudget
from synthbench.data.records import RecordKind
from synthbench.models.cards import languages_of
from synthbench.models.sizes import Size, check_known, size_of
from synthbench.sources.description import IN_DATA_FOLDER
from synthbench.sources.guessing import OF_SENTENCES, Role, guess, shares_of_gold
from synthbench.sources.looking import check_language
from synthbench.worlds import NAME

SEEDS = [0, 1, 2, 3, 4]
OWN_KEYS = ("base", "budget")
"""Keys of the short form alone."""
GOLD, DEV, TEST, SENTENCES, PASSAGES = "gold", "dev", "test", "sentences", "passages"
EXPANDED = (*OWN_KEYS, LLM, "sources", "variants")
"""Keys with another value in the long form."""
_EXPANDED_PATHS = [(key,) for key in EXPANDED]
ROLES = get_args(Role)
EVALUATORS = {RecordKind.RANKING: "reranking", RecordKind.RETRIEVAL: "retrieval"}
"""Evaluators of test sets that have no scored pairs."""
GOLD_ONLY, UNTRAINED = CONTROLS = "gold-only", "untrained"
STANDARD: Mapping[str, Any] = {"task": "STSb", "split": "test"}
"""The test set of a file that has none."""
UNTESTED = "no gold pairs and no test set"
KEPT = ("base", "batch_size", "learning_rate")
"""Keys of `train` that a row keeps from its recipe if its patch sets another trainer."""


@dataclass(frozen=True)
class Expanded:
    """The long form of an experiment file, with findings and notes for the user."""

    document: Document
    findings: tuple[str, ...] = ()
    """Sentences on what the data files hold."""
    notes: tuple[str, ...] = ()
    """Sentences on added rows, recipes left out, unused sources, and the default test set."""
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    """The recipe of each row that has one."""
    size: Size | None = None
    """The size of the base, or of the profile's replacement for it."""
    budget: StudyBudget = field(default_factory=StudyBudget)
    dev: Mapping[str, Any] | None = None
    """The dev source, even if no row uses it; None: there is none."""


def expand_short(document: Document, folder: Path, substitute: SubstituteSection | None = None) -> Expanded:
    """Return the long form of a short file; in a long file, only expand each `llm: PROVIDER/MODEL`.

    Relative paths start from `folder`. Values have the locations of the keys that they come from. If
    `substitute` replaces the base, the learning rates are those for the replacement's size.

    Raises one UserError with every fault found.
    """
    document = with_providers(document, folder)
    if "base" not in document.data:
        return Expanded(document)
    return _Expansion(document, folder, substitute or SubstituteSection()).expanded()


@dataclass(frozen=True)
class _Row:
    """A row of a short file: its recipe (None: the patch gives the data), its patch, and the patch's path."""

    name: str
    recipe: Recipe | None
    patch: Document
    path: KeyPath


def _is_free(llm: Mapping[str, Any]) -> bool:
    """Return whether an LLM costs no dollars: it runs on this machine and has no price."""
    is_local = any(llm.get("base_url") == PROVIDERS[name].base_url for name in ("ollama", "vllm"))
    return ("serve" in llm or is_local) and "price" not in llm


class _Expansion:
    def __init__(self, document: Document, folder: Path, substitute: SubstituteSection) -> None:
        self.document = document
        self.folder = folder
        self.substitute = substitute
        self.problems = Problems(folder)
        self.at = Cursor(document, self.problems)
        self.long = Document({})
        self.findings: list[str] = []
        self.notes: list[str] = []
        self.is_binary = False
        self.languages: dict[str, str] = {}
        """Source -> language of its texts, if the detection is sure."""

    def expanded(self) -> Expanded:
        """Return the long form; raises one UserError with every fault found."""
        own = {key: value for key, value in self.document.data.items() if key in ShortSection.model_fields}
        section: ShortSection | None = self.at.parse(ShortSection, own)
        self.problems.raise_if_any()
        assert section is not None, "a section that does not parse has problems"
        self.section = section
        self.base = SizedBase(model=section.base) if isinstance(section.base, str) else section.base
        self._put_rest()
        self._put_llm()
        self._put_sources()
        self.problems.raise_if_any()
        size = self._size()
        rows = self._rows(size)
        self.problems.raise_if_any()
        self._put_tests()
        for row in rows:
            self._put_row(row, rows, size)
        self._put_table(rows)
        dev = self.long.mapping("sources").get(DEV)
        self._drop_unused_sources()
        named = {row.name: row.recipe for row in rows if row.recipe is not None}
        notes = (tuple(self.findings), tuple(self.notes))
        return Expanded(self.long, *notes, named, size, section.budget, dev)

    def _put(self, path: Sequence[str], value: object, at: KeyPath) -> None:
        """Set a value of the long form; it gets the location of `at`, a key of the short form.

        Does nothing if a key above `path` is no mapping: the schema reports it.
        """
        above = (self.long.at(tuple(path[:length])) for length in range(1, len(path)))
        if not all(each is None or isinstance(each, dict) for each in above):
            return
        for key in reversed(path):
            value = {key: value}
        self.long = merge(self.long, located(value, self.document.location(at)), keep_nulls=True)

    def _put_rest(self) -> None:
        """Copy the keys that both forms share; add the default seeds."""
        rest = {key: value for key, value in self.document.data.items() if key not in EXPANDED}
        locations = {
            path: at for path, at in self.document.locations.items() if path[:1] not in _EXPANDED_PATHS
        }
        self.long = Document(rest, locations)
        if "seeds" not in rest:
            self._put(["seeds"], SEEDS, ("base",))

    def _put_llm(self) -> None:
        given, budget = self.document.data.get(LLM), self.section.budget
        limits = {"usd": budget.usd, "tokens": budget.tokens}
        if given is None:
            for unit, most in limits.items() if LLMS in self.document.data else ():
                if most is not None:
                    self.at["budget"][unit].add(f"with several LLMs, give each its `budget_{unit}`")
            return
        settings = {"endpoint": given} if given == NAME else given
        if isinstance(settings, dict):
            is_free = _is_free(settings)
            for unit, most in limits.items():
                if most is not None and not (unit == "usd" and is_free):
                    settings = {f"budget_{unit}": most, **settings}
        self._put([LLM], settings, (LLM,))

    def _put_sources(self) -> None:
        """Write the sources; detect what files hold, and split gold pairs if test or dev is missing."""
        found: dict[str, dict[str, Any]] = {}
        for name in self.section.sources:
            settings = self._source(name)
            if settings is not None:
                found[name] = settings
        gold = found.get(GOLD)
        missing = [part for part in (DEV, TEST) if part not in found]
        if gold is not None and missing and "part" not in gold:
            shares = shares_of_gold(found)
            for part in missing:
                whole = {key: value for key, value in gold.items() if key != "sample"}
                found[part] = {**whole, "part": {"take": part, "shares": shares, "by": "sentence"}}
            found[GOLD] = {**gold, "part": {"take": "train", "shares": shares, "by": "sentence"}}
        elif gold is None and TEST not in found:
            found[TEST] = dict(STANDARD)
            told = ", which says nothing about search" if PASSAGES in found else ""
            self.notes.append(f"{UNTESTED}: the rows are tested on STSb{told}")
        for name, settings in found.items():
            at = name if name in self.section.sources else GOLD
            self._put(["sources", name], settings, ("sources", at))

    def _source(self, name: str) -> dict[str, Any] | None:
        """Return a source's section in the long form; if there is a fault, note it and return None."""
        at, given = self.at["sources"][name], self.section.sources[name]
        settings = {"file": given} if isinstance(given, str) else without_nulls(given)
        file = settings.get("file")
        is_guessed = name in ROLES and isinstance(file, str) and not {"hub", "format"} & settings.keys()
        if isinstance(given, str) and (not is_guessed or given.startswith(IN_DATA_FOLDER)):
            at.add(
                f"a file's name alone is enough for {', '.join(ROLES)}, in this folder; write its settings"
            )
            return None
        usual = RecordKind.SENTENCE if name in OF_SENTENCES else RecordKind.SCORED_PAIR
        written = {"kind": usual.value, **settings} if is_guessed else settings
        if isinstance(given, dict) and at.parse(AnySource, written) is None:
            return None
        if not is_guessed or str(file).startswith(IN_DATA_FOLDER):
            return settings
        with at.noting():
            rest = {key: value for key, value in settings.items() if key != "file"}
            path = path_of(RootedName(str(file), self.folder))
            found = guess(path, name, rest, others=self.section.sources, name=str(file))
            self.findings += [f"{name}: {finding}" for finding in found.findings]
            self.is_binary |= found.is_binary and name in (GOLD, TEST)
            base = self.base.model
            if substituted_model(base, self.substitute) is None:
                check_language(found, name, base, languages_of(base))
            self.languages |= {name: found.language} if found.language else {}
            key = next(each for each in ("corpus", "documents", "file") if each in found.settings)
            return {**found.settings, key: file}
        return None

    def _size(self) -> Size | None:
        """Return the size of the base, or of the profile's replacement; if unknown, note a fault."""
        given = self.base
        replaced = substituted_model(given.model, self.substitute)
        if replaced is None and given.size is not None:
            return given.size
        size = size_of(given if replaced is None else given.model_copy(update={"model": replaced}))
        if size is None and (replaced is not None or self.at["base"].passes(lambda: check_known(given))):
            shown = ", ".join(get_args(Size))
            self.at["base"].add(
                f"the size of '{given.model}' is not known; write `base: {{model: {given.model}, size: ...}}`"
                f" with one of {shown}"
            )
        return size

    def _base(self) -> dict[str, Any]:
        base = self.document.data["base"]
        if isinstance(base, str):
            return {"model": base}
        return {key: value for key, value in base.items() if key != "size"}

    def _is_of_search(self) -> bool:
        """Return whether the file is for search: it has passages, but neither sentences nor gold pairs."""
        return PASSAGES in self.section.sources and not {SENTENCES, GOLD} & self.section.sources.keys()

    def _available(self) -> set[str]:
        has_llm = bool(self.document.data.get(LLM) or self.document.data.get("llms"))
        return {*self.long.mapping("sources"), *([LLM] if has_llm else [])}

    def _rows(self, size: Size | None) -> list[_Row]:
        """Return the rows, and missing first stages before them; for `all`, note why recipes are left out."""
        available, given = self._available(), self.section.variants
        rows: list[_Row] = []
        if isinstance(given, str):
            candidates = [each for each in recipes().values() if not each.is_of_paper]
            for each in sorted(candidates, key=lambda each: each.name not in CONTROLS):
                why = self._why_not(each, available, size)
                if not why and self._is_of_search() and "retrieval" not in each.tasks:
                    why = f"it is for {' and '.join(each.tasks)}, and passages are for search"
                if why:
                    self.notes.append(f"{each.name} is left out: {why}")
                else:
                    rows.append(_Row(each.name, each, Document({}), ("variants",)))
            return list(self._with_first_stages(rows))
        for index, name in enumerate(given):
            path: KeyPath = ("variants", name if isinstance(given, dict) else index)
            patch = expand_dotted(self.document.section(*path))
            is_recipe = name.partition("@")[0] in recipes() or not patch.data
            row = self._row(name, patch.data.get(RECIPE, name if is_recipe else None), patch, path)
            if row is None:
                continue
            aliases = patch.mapping("aliases")
            why = "" if row.recipe is None else self._why_not(row.recipe, {*available, *aliases}, size, patch)
            if why:
                Cursor(self.document, self.problems, path).add(
                    f"recipe '{row.recipe and row.recipe.name}' can't be had: {why}"
                )
            rows.append(row)
        rows = list(self._with_first_stages(rows))
        for index, row in enumerate(rows):
            if row.name in [each.name for each in rows[:index]]:
                message = f"two rows are called '{row.name}'; name one yourself: NAME: {{recipe: {row.name}}}"
                Cursor(self.document, self.problems, row.path).add(message)
        return rows

    def _row(self, name: str, named: object, patch: Document, path: KeyPath) -> _Row | None:
        at = Cursor(self.document, self.problems, path)
        with at.noting():
            own = name.partition("@")[0] if named == name else name
            return _Row(own, None if named is None else recipe(str(named)), patch, path)
        return None

    def _why_not(
        self, wanted: Recipe, available: set[str], size: Size | None, patch: Document | None = None
    ) -> str:
        """Return why a recipe is impossible here (source, language, size), "" if it is possible."""
        lacks = wanted.lacks(available)
        if lacks:
            keys = (LLM if need == LLM else f"sources.{need}" for need in lacks)
            return f"it needs {' and '.join(f'`{key}`' for key in keys)}"
        for name, language in self.languages.items():
            if name in wanted.needs and wanted.languages and language not in wanted.languages:
                return f"it is for texts in {', '.join(wanted.languages)}; sources.{name} is in {language}"
        has_rate = patch is not None and "learning_rate" in patch.mapping("train")
        if wanted.rates and size is not None and size not in wanted.rates and not has_rate:
            return f"it has no rates for bases of size {size}; set train.learning_rate"
        return ""

    def _with_first_stages(self, rows: list[_Row]) -> Iterator[_Row]:
        """Yield the rows; insert each missing first stage before the first row that starts from it."""
        there = {row.recipe.name for row in rows if row.recipe is not None}
        for row in rows:
            first = row.recipe.starts_from if row.recipe is not None else None
            if first is not None and first not in there:
                there.add(first)
                self.notes.append(f"row {first} is added: {row.name} starts from its model")
                yield _Row(first, recipe(first), Document({}), row.path)
            yield row

    def _put_row(self, row: _Row, rows: Sequence[_Row], size: Size | None) -> None:
        run = self._run_of(row, size)
        first = row.recipe.starts_from if row.recipe is not None else None
        if first is not None:
            names = [each.name for each in rows if each.recipe is not None and each.recipe.name == first]
            run["train"] = {**run["train"], "starts_from": first if first in names else names[0]}
        patch, trained = row.patch, run.get("train", {})
        if "trainer" in patch.mapping("train") and patch.data["train"]["trainer"] != trained.get("trainer"):
            kept = {key: trained[key] for key in KEPT if key in trained}
            patch = patch.replaced(("train",), {**kept, **patch.data["train"]})
        whole = merge(located(run, self.document.location(row.path)), without_recipe(patch))
        inner = {("variants", row.name, *path): location for path, location in whole.locations.items()}
        nested = {"variants": {row.name: without_nulls(whole.data)}}
        self.long = merge(self.long, Document(nested, inner), keep_nulls=True)

    def _run_of(self, row: _Row, size: Size | None) -> dict[str, Any]:
        """Return a row's run before its patch: the recipe with the file's base and `size`'s learning rate."""
        found = recipe(GOLD_ONLY) if row.recipe is None else row.recipe
        rates = found.rates.get(size) if size is not None else None
        run = Document(dict(found.run))
        if rates is not None:
            run = merge(run, expand_dotted(Document(dict(rates.run))))
        for path in found.bases:
            section = path.rpartition(".")[0]
            patch: dict[str, Any] = {path: self._base()}
            if rates is not None:
                patch[f"{section}.learning_rate"] = rates.use
            run = merge(run, expand_dotted(Document(patch)))
        if row.recipe is None and GOLD not in self.long.mapping("sources"):
            run = merge(run, Document({"data": {GOLD: None}, "train": {"selection": None}}))
        return dict(without_nulls(run.data))

    def _put_tests(self) -> None:
        """Write `evaluate` if `defaults` has none: the test set, with the evaluator for its record kind."""
        if expand_dotted(self.long.section("defaults")).mapping("evaluate"):
            return
        source = Cursor(self.long, Problems(self.folder))["sources"][TEST].parse(AnySource)
        kind = RecordKind.SCORED_PAIR if source is None else source.record_kind
        evaluate: dict[str, Any] = {"evaluator": EVALUATORS.get(kind, "sts"), "tasks": [TEST]}
        if kind == RecordKind.SCORED_PAIR and self.is_binary:
            dev = [DEV] if DEV in self.long.mapping("sources") else []
            # Without a dev set there is nothing to choose a threshold on.
            rest: dict[str, Any] = {"dev": dev} if dev else {"measure": "average_precision"}
            evaluate = {"evaluator": "pairs", "tasks": [TEST], **rest}
        at = TEST if TEST in self.section.sources else GOLD
        self._put(["defaults", "evaluate", "test"], evaluate, ("sources", at))

    def _put_table(self, rows: Sequence[_Row]) -> None:
        """Add the baseline (gold-only, else untrained); if computing has a price, add the cost figure."""
        names = {row.recipe.name: row.name for row in reversed(rows) if row.recipe is not None}
        first = names.get(GOLD_ONLY) or names.get(UNTRAINED)
        others = [row.name for row in rows if row.name != first]
        if first is not None and others and "compare_to" not in self.long.mapping("table"):
            self._put(["table", "compare_to"], {first: others}, ("variants",))
        price = self.section.budget.machine_hour_usd
        if price is not None and "frontier" not in self.long.mapping("table", "figures"):
            frontier = {"costs": ["total"], "hour_usd": price}
            self._put(["table", "figures", "frontier"], frontier, ("budget", "machine_hour_usd"))

    def _drop_unused_sources(self) -> None:
        """Leave out sources that no row names; note those that the file lists.

        With `budget.usd` there is no note on dev.
        """
        runs = [self.long.mapping(key) for key in ("defaults", "grid", "variants")]
        named = {text for run in runs for _, text in texts_in(run)}
        compared_on = {DEV} if self.section.budget.usd is not None else set()
        unused = [name for name in self.long.mapping("sources") if name not in named | compared_on]
        kept = {name: each for name, each in self.long.mapping("sources").items() if name in named}
        self.long = self.long.replaced(("sources",), kept)
        self.notes += [f"no row uses sources.{name}" for name in unused if name in self.section.sources]
