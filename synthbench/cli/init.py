"""`synthbench init`: write files to start from into a new folder."""

import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.listing import counted
from synthbench.base.patterns import linear_pattern
from synthbench.cli.own_study import OwnData, own_study
from synthbench.config.problems import NAME_PATTERN
from synthbench.worlds import NAME

if TYPE_CHECKING:
    from synthbench.cli.shipped_experiments import ShippedExperiment

STARTER = Path(__file__).parents[1] / "starter"
NAME_IN_STARTER = "my_study"
FIRST = "study.yaml"
_NAME = linear_pattern(NAME_PATTERN)
WIDTH, MOST_LINES = 100, 10
PASSAGES_HELP = "Your passages to search in, or a folder of documents: .md, .txt, .pdf."
Content = Mapping[PurePath, bytes]


def init(
    folder: Annotated[
        Path | None, typer.Argument(help="A new or empty folder [for a paper: its name].")
    ] = None,
    paper: Annotated[
        str | None, typer.Option(metavar="NAME", help="Write this paper's experiments and published tables.")
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write this experiment of synthbench, such as quickstart."),
    ] = None,
    sentences: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your sentences: .csv, .tsv, .jsonl, .parquet or .txt."),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your pairs with scores or classes.")
    ] = None,
    passages: Annotated[Path | None, typer.Option(metavar="PATH", help=PASSAGES_HELP)] = None,
    llm: Annotated[
        str | None, typer.Option(metavar="NAME", help="The LLM to ask, such as openai/gpt-5-mini.")
    ] = None,
    base: Annotated[str | None, typer.Option(metavar="NAME", help="The model to train.")] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Dollars for the LLM and machine hours.")
    ] = None,
) -> None:
    """Write files to start from: a study on your data or a paper's experiments; without arguments, list all.

    With --sentences, --gold or --passages, reads your files and writes a short study.yaml that names them.
    """
    from synthbench.cli.shipped_experiments import papers, shipped_experiments, tables_of

    files = {"gold": gold, "sentences": sentences, "passages": passages}
    data = OwnData({role: file for role, file in files.items() if file is not None}, llm, base, budget)
    if sum((paper is not None, experiment is not None, data != OwnData({}))) > 1:
        raise UserError("--paper, --experiment and your own data (--gold, --sentences ...): give one of them")
    if data != OwnData({}):
        _write_own(folder, data)
        return
    if paper is not None:
        if paper not in papers():
            raise UserError(f"--paper {paper}: no such paper{did_you_mean(paper, papers())}")
        content = {file: (root / file).read_bytes() for root, file in tables_of(paper)}
        chosen = papers()[paper]
        _write_experiments(folder or Path(paper), chosen, content)
    elif experiment is not None:
        known = shipped_experiments()
        if experiment not in known:
            raise UserError(f"--experiment {experiment}: no such experiment{did_you_mean(experiment, known)}")
        _write_experiments(folder or Path(experiment), (known[experiment],), {})
    elif folder is not None:
        _write(folder, _starter(folder.resolve().name))
        _print_next(folder, PurePath(FIRST))
    else:
        _print_list()


def _write_own(folder: Path | None, data: OwnData) -> None:
    if folder is None or not data.sources:
        raise UserError("init on your own data: name a folder, and --gold, --sentences or --passages")
    from synthbench.config.load import load_experiment

    name = folder.resolve().name
    text, findings = own_study(name if _NAME.match(name) else NAME_IN_STARTER, folder, data)
    _write(folder, {PurePath(FIRST): text.encode()})
    for finding in findings:
        print(finding)
    try:
        load_experiment(folder / FIRST)
    except UserError as error:
        raise UserError(
            *(f"{message} (the file is written; mend it there)" for message in error.messages)
        ) from None
    missing = [key for key in ("llm", "budget") if getattr(data, key) is None]
    if data.has_passages_alone and missing:
        print(
            "passages alone have no test set: recommend lets an LLM write one; add"
            f" `{'` and `'.join(missing)}` to {FIRST} first"
        )
    _print_next(folder, PurePath(FIRST), command=data.command)


def _write_experiments(folder: Path, experiments: "tuple[ShippedExperiment, ...]", content: Content) -> None:
    read = {file: each.root / file for each in experiments for file in each.files()}
    _write(folder, {**content, **{file: path.read_bytes() for file, path in read.items()}})
    _print_next(folder, *(each.file for each in experiments))


def _print_next(folder: Path, *files: PurePath, command: str = "run") -> None:
    print(f"wrote {folder}; next:")
    for file in files:
        print(f"  synthbench {command} {shlex.quote(str(folder / file))} --profile {NAME}")


def _starter(name: str) -> Content:
    """Return the files of a first experiment; its name is `name`, or the default if `name` is invalid."""
    files = [file for file in STARTER.iterdir() if file.is_file()]
    content = {PurePath(file.name): file.read_bytes() for file in sorted(files)}
    if not _NAME.match(name):
        return content
    return {
        file: text.replace(NAME_IN_STARTER.encode(), name.encode()) if file.suffix == ".yaml" else text
        for file, text in content.items()
    }


def _write(folder: Path, content: Content) -> None:
    """Write files into a new or empty folder, all or none; raises UserError for any other folder."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; init writes into a new or empty folder")
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise UserError(f"{folder}: not empty; init writes into a new or empty folder")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".init-", dir=folder) as unfinished:
            for file, text in content.items():
                target = Path(unfinished) / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
            for entry in sorted(Path(unfinished).iterdir()):
                shutil.move(entry, folder / entry.name)
    except OSError as error:
        raise UserError(f"{folder}: can't be written: {error.strerror or error}") from error


def _print_list() -> None:
    from synthbench.cli.shipped_experiments import papers, shipped_experiments

    print("synthbench init FOLDER --gold FILE --sentences FILE: a study on your own data")
    print("synthbench init FOLDER: an example of one, with two methods beside it")
    print("synthbench init --paper NAME: a paper's experiments, with its published tables:")
    for paper, experiments in papers().items():
        print(f"  {paper}: {counted(len(experiments), 'experiment')}")
    of_papers = {each.name for experiments in papers().values() for each in experiments}
    names = [name for name in shipped_experiments() if name not in of_papers]
    print("synthbench init --experiment NAME: one experiment, with what it reads, of a paper or one of:")
    shown = textwrap.wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")
    print("\n".join([*shown[:MOST_LINES], *(["  ..."] if len(shown) > MOST_LINES else [])]))
    print("synthbench list experiments: all of them, each with its description")
