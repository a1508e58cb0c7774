"""The experiment files of synthbench and other packages, and the files that each of them reads.

A root folder is a clone of synthbench, `synthbench/project` in the wheel, or the package of another method.
Its subfolders are `experiments/` and `reports/published/`, which holds published tables (*.csv).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path, PurePath

PACKAGE = Path(__file__).parents[1]
EXPERIMENTS, PUBLISHED = PurePath("experiments"), PurePath("reports/published")
PAPERS = EXPERIMENTS / "papers"
_NO_EXPERIMENTS = ("shared", "profiles", "prompts")
_TABLE = re.compile(r"published/(([a-z0-9]+)_\w+\.csv)")
_PROMPTS = re.compile(r"\bprompts/\w+\.yaml")


@dataclass(frozen=True)
class ShippedExperiment:
    """An experiment file; `file` is relative to the folder `root`."""

    root: Path
    file: PurePath

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.file.stem

    @property
    def description(self) -> str:
        """The experiment's description, one line."""
        from synthbench.config.documents import parse_document

        text = (self.root / self.file).read_text(encoding="utf-8")
        return " ".join(str(parse_document(text, self.file.name).data.get("description", "")).split())

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """Published table -> paper, for the tables that the file names: "dino_table1.csv" -> "dino"."""
        return dict(_TABLE.findall((self.root / self.file).read_text(encoding="utf-8")))

    def is_of(self, paper: str) -> bool:
        """Return whether the experiment's name, its folder or one of its published tables names the paper."""
        return (
            self.name.partition("_")[0] == paper
            or self.file.parent == PAPERS / paper
            or paper in self.tables.values()
        )

    def files(self) -> Iterator[PurePath]:
        """Yield the experiment file, its includes, prompts and published tables, and `root`'s profiles."""
        included = tuple(_with_included(self.root, self.file))
        yield from included
        texts = [(self.root / file).read_text(encoding="utf-8") for file in included]
        for file, text in zip(included, texts, strict=True):
            yield from (file.parent / name for name in _PROMPTS.findall(text))
        yield from (
            PUBLISHED / name
            for name, _ in _TABLE.findall("".join(texts))
            if (self.root / PUBLISHED / name).is_file()
        )
        yield from _found(self.root, EXPERIMENTS / "profiles", "*.yaml")


def shipped_experiments() -> Mapping[str, ShippedExperiment]:
    """Return all experiments by name."""
    return {
        file.stem: ShippedExperiment(root, file)
        for root in _roots()
        for file in sorted(_found(root, EXPERIMENTS, "**/*.yaml"), key=attrgetter("name"))
        if file.parent.name not in _NO_EXPERIMENTS
    }


def papers() -> Mapping[str, tuple[ShippedExperiment, ...]]:
    """Return paper -> experiments, for papers with published tables or a folder in `experiments/papers`."""
    known = {file.stem.partition("_")[0] for root in _roots() for file in _found(root, PUBLISHED, "*.csv")}
    every = shipped_experiments().values()
    known |= {each.file.parent.name for each in every if each.file.parent.parent == PAPERS}
    found = {paper: tuple(each for each in every if each.is_of(paper)) for paper in sorted(known)}
    return {paper: experiments for paper, experiments in found.items() if experiments}


def tables_of(paper: str) -> Iterator[tuple[Path, PurePath]]:
    """Yield (root, file) of a paper's published tables and of the files that explain their columns."""
    for root in _roots():
        tables = _found(root, PUBLISHED, f"{paper}_*.csv")
        yield from (
            (root, file) for file in (*tables, *(_found(root, PUBLISHED, "README.md") if tables else ()))
        )


def _roots() -> Iterable[Path]:
    """Return the root folders: the one of the wheel or clone, then the packages of other methods."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    packages = sorted({point.module.partition(".")[0] for point in entry_points(group="synthbench.methods")})
    specs = (find_spec(package) for package in packages)
    others = (Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ())
    folders = (PACKAGE / "project", PACKAGE.parent, *others)
    return [folder for folder in folders if (folder / EXPERIMENTS).is_dir()]


def _found(root: Path, folder: PurePath, pattern: str) -> list[PurePath]:
    return [file.relative_to(root) for file in sorted((root / folder).glob(pattern))]


def _with_included(root: Path, file: PurePath) -> Iterator[PurePath]:
    from synthbench.base.user_files import PACKAGE_PREFIX
    from synthbench.config.documents import parse_document

    yield file
    text = (root / file).read_text(encoding="utf-8")
    for name in parse_document(text, file.name).data.get("include", []):
        if not name.startswith(PACKAGE_PREFIX):
            yield from _with_included(root, file.parent / name)
