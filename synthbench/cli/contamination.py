"""`synthbench data contamination`: find test sentences in training data."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from synthbench.base.errors import UserError, did_you_mean
from synthbench.cli.console import print_table
from synthbench.cli.dataset import (
    Dataset,
    JsonFile,
    SplitterName,
    check_json,
    encoder_name,
    found,
    loaded_encoder,
    write_json,
)
from synthbench.suites.known import SUITES, Origin, by_reason, find_tasks

if TYPE_CHECKING:
    from synthbench.data.contamination import Findings, Row, TestOverlap

LEARNING = ("train", "dev")
HEADINGS = (
    "test set", "check", "data's sentences", "its sentences", "items with one", "with all", "as pairs"
)  # fmt: skip


def contamination(
    dataset: Dataset,
    against: Annotated[
        list[str],
        typer.Option(
            metavar="TESTS",
            help=f"A suite ({', '.join(SUITES)}), a task such as STSb or STSb/dev, or an experiment file; "
            "repeatable.",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="SYNTHBENCH_DATA", help="Folder of the standard test sets."),
    ] = None,
    origin: Annotated[Origin, typer.Option(help="Where suites and tasks are read from.")] = "folder",
    near: Annotated[
        float, typer.Option(min=0.5, max=1.0, help="Least Jaccard similarity of near-duplicates' 5-grams.")
    ] = 0.8,
    embedding: Annotated[
        bool, typer.Option("--embedding", help="Also find sentences with similar embeddings; slower.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help=f"Encoder for --embedding [{encoder_name(None)}]."),
    ] = None,
    cosine: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Cosine from which embeddings are similar.")
    ] = 0.95,
    words: SplitterName | None = None,
    json_file: JsonFile = None,
) -> None:
    """Show which test sentences and pairs are in training data.

    A test sentence is found if a training sentence is equal; is equal without case, punctuation and white
    space; shares 13 successive words with it (all words, if the test sentence has fewer); or is a
    near-duplicate by MinHash. DATASET may also be a .txt file with one sentence per line. A data set's folder
    may be larger than memory.
    """
    from synthbench.data.contamination import TestIndex, search
    from synthbench.data.streaming import text_batches
    from synthbench.words import lack_spaces

    path, title = found(dataset)
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    check_json(json_file)
    tests = _tests(against, data, origin)
    if not tests:
        raise UserError(f"--against {', '.join(against)}: none of the test sets is there")
    encode = loaded_encoder(encoder).encode if embedding or encoder else None
    index = TestIndex(tests, near=near, words=words, encode=encode, similar=cosine)
    if words is None and lack_spaces(index.sentences):
        print(
            "13-gram: the texts have no spaces between words, so only whole sentences are found; give --words"
        )
    findings = search(text_batches(path), index)
    overlaps = findings.overlaps(index)
    write_json(json_file, _figures(title, findings, overlaps))
    _print(title, findings, overlaps)


def _print(title: str, findings: "Findings", overlaps: "Sequence[TestOverlap]") -> None:
    lines: list[Sequence[str] | None] = []
    for overlap in overlaps:
        for number, (check, counts) in enumerate(overlap.checks.items()):
            is_first = number == 0
            line = (
                overlap.name if is_first else "",
                str(check),
                f"{counts.training_sentences:,}",
                f"{counts.sentences:,} of {overlap.num_sentences:,}",
                f"{counts.items:,} of {overlap.num_items:,}",
                f"{counts.whole_items:,}",
                f"{overlap.items_as_pairs:,}" if is_first else "",
            )
            lines.append(line)
        lines.append(None)
    caption = (
        "items: pairs, queries or sentences of the test set, of which one or all sentences were found; "
        "as pairs: both in one record, normalised, in either order"
    )
    found = f"{title}: {findings.num_records:,} records"
    print_table(HEADINGS, lines, words=(0, 1), title=found, caption=caption)
    for check, number in findings.anywhere.items():
        print(f"{check}: {number:,} distinct sentences of the data are in a test set")


def _tests(against: Sequence[str], data: Path | None, origin: Origin) -> "dict[str, Iterable[Row]]":
    """Return the texts of all test sets by name; a name that is taken follows what gave the test set."""
    tests: dict[str, Iterable[Row]] = {}
    for name in dict.fromkeys(against):
        for task, rows in _tests_of(name, data, origin):
            tests[f"{name}: {task}" if task in tests else task] = rows
    return tests


def _tests_of(name: str, data: Path | None, origin: Origin) -> "Iterator[tuple[str, Iterable[Row]]]":
    if name in SUITES:
        yield from _suite(name, data, origin)
    elif Path(name).suffix in (".yaml", ".yml") or Path(name).exists():
        yield from _experiment(Path(name), data)
    else:
        yield name, _task(name, data, origin)


def _suite(name: str, data: Path | None, origin: Origin) -> "Iterator[tuple[str, Iterable[Row]]]":
    tasks, missing = find_tasks(name, data, origin)
    for reason in by_reason(missing):
        typer.echo(f"not looked for: {reason}", err=True)
    for task, content in tasks.items():
        yield task, (record.texts() for record in content if record.split not in LEARNING)


def _experiment(file: Path, data: Path | None) -> "Iterator[tuple[str, Iterable[Row]]]":
    from synthbench.config.load import load_experiment
    from synthbench.config.overrides import Overrides

    experiment = load_experiment(file, Overrides(data=data))
    if not experiment.tasks:
        raise UserError(f"{file}: the experiment has no test sets")
    for task, provider in experiment.provided_tasks.items():
        yield task, provider.read_task(task).text_rows()
    for task in experiment.tasks:
        if task in experiment.provided_tasks:
            continue
        source = experiment.sources[task]
        try:
            source.fingerprint(experiment.roots)
        except UserError as error:
            typer.echo(f"not looked for: {task}: {error}", err=True)
            continue
        yield task, source.load(experiment.roots).text_rows()


def _task(name: str, data: Path | None, origin: Origin) -> "Iterable[Row]":
    from pydantic import ValidationError

    from synthbench.sources.description import Roots
    from synthbench.sources.models import TaskSource
    from synthbench.sources.tasks import TASKS, Split

    task, _, split = name.partition("/")
    known = (*SUITES, *TASKS)
    if task not in TASKS:
        raise UserError(
            f"--against {name}: neither a suite, a task nor an experiment file{did_you_mean(task, known)}"
        )
    if split and split not in get_args(Split):
        raise UserError(f"--against {name}: the split is one of {', '.join(get_args(Split))}")
    try:
        source = TaskSource.model_validate({"task": task, "split": split or "test"})
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UserError(f"--against {name}: {reason}") from None
    return source.load(Roots(data=data, origin=origin, base=Path.cwd())).text_rows()


def _figures(title: str, findings: "Findings", overlaps: "Sequence[TestOverlap]") -> dict[str, object]:
    return {
        "data": title,
        "num_records": findings.num_records,
        "training_sentences_in_any": dict(findings.anywhere),
        "tests": [overlap.model_dump(mode="json") for overlap in overlaps],
    }
