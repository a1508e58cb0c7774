"""`synthbench fetch`: download everything that an experiment file names on the hub."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import PLAIN, print_table
from synthbench.cli.options import Given, opening, taking

if TYPE_CHECKING:
    from synthbench.engine.stage import Stage
    from synthbench.pipeline.hub_needs import Found


@taking(Given)
def fetch(
    given: Given,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list names, commits and sizes.")] = False,
) -> None:
    """Download the models and data that an experiment file names on the hub, at their commits.

    Then checks the data's columns in the first rows. Afterwards `HF_HUB_OFFLINE=1 synthbench run FILE` needs
    no network for models and data.
    """
    from synthbench.config.load import load_experiment
    from synthbench.pipeline.hub_needs import (
        check_room,
        download,
        files_on_hub,
        look_up,
        own_code,
        sources_of,
    )
    from synthbench.pipeline.planning import make_sketch

    experiment = load_experiment(given.file, given.overrides())
    for line in opening(experiment):
        print(line)
    # Local data may lie elsewhere, such as on the machine that will run the file.
    stages = list(make_sketch(experiment).stages.values())
    found = look_up(files_on_hub(stages), experiment)
    needed, free, folder = check_room(found)
    print_table(("what", "commit", "files", "size", "to download"), [*_lines(found)], **PLAIN)
    _print_sums(found, needed, free, str(folder))
    if dry_run:
        return
    for each in found:
        download(each)
    for each in look_up(own_code(stages), experiment):
        download(each)
    for source, roots in sources_of(stages):
        source.check_first_rows(roots)
    _read_own_tasks(stages)
    print(f"fetched: HF_HUB_OFFLINE=1 synthbench run {given.file} needs no network for models and data")


def _lines(found: "list[Found]") -> Iterator[tuple[str, str, str, str, str]]:
    from synthbench.hub.repositories import WORDS
    from synthbench.pipeline.hub_needs import in_bytes

    for each in found:
        size, lacking = sum(each.sizes.values()), each.lacking
        yield (
            f"{WORDS[each.repository.kind]} {each.repository.name}",
            each.commit[:7],
            str(len(each.sizes)),
            in_bytes(size),
            in_bytes(lacking) if lacking else "cached",
        )


def _print_sums(found: "list[Found]", needed: int, free: int, folder: str) -> None:
    from synthbench.pipeline.hub_needs import in_bytes

    total = in_bytes(sum(sum(each.sizes.values()) for each in found))
    print(f"{in_bytes(needed)} of {total} to download to {folder}, whose disk has {in_bytes(free)} free")


def _read_own_tasks(stages: "list[Stage]") -> None:
    """Let evaluators download the data of their own tasks."""
    from synthbench.stages.data import ReadOwnTask

    for stage in stages:
        if isinstance(stage.operation, ReadOwnTask):
            print(f"reading {stage.operation.task}")
            stage.operation.plugin.read_task(stage.operation.task)
