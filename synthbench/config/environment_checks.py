"""Check an experiment's local inputs before anything is computed."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.user_files import why_no_folder
from synthbench.config.experiment import Experiment
from synthbench.config.problems import Cursor, Fault
from synthbench.config.schema import Corpora
from synthbench.llm.endpoint import key_of
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource, Source, TaskSource, WorldSource

IN_FILE = "corpora.folder"
"""The key that names the data folder."""


def find_roots(file: Path, corpora: Corpora, data: Path | None) -> tuple[Roots, str]:
    """Return the folders in which sources are looked up, and the setting that names the data folder.

    The option --data (`data`) overrides the file's corpora.folder, which overrides $SYNTHBENCH_DATA.
    """
    folder, given_by = data, "--data"
    if folder is None and corpora.folder is not None:
        folder, given_by = file.parent / corpora.folder, IN_FILE
    if folder is None and os.environ.get("SYNTHBENCH_DATA"):
        folder, given_by = Path(os.environ["SYNTHBENCH_DATA"]), "SYNTHBENCH_DATA"
    return Roots(data=folder, origin=corpora.origin, base=file.parent), given_by


def missing_keys(experiment: Experiment) -> Mapping[str, str]:
    """Return LLM's name -> a message, for each LLM that rows use and whose API key is not set."""
    found: dict[str, str] = {}
    for name in sorted(experiment.used_llms):
        llm = experiment.llms[name]
        endpoint = llm.endpoint()
        try:
            _ = endpoint.pacing.offline or key_of(endpoint)
        except UserError as error:
            found[name] = str(Fault(experiment.document.location(llm.path), llm.section, str(error)))
    return found


def is_folder_needed(sources: Mapping[str, Source | None], roots: Roots) -> bool:
    """Return whether a source is read from the data folder."""
    return any(source.needs_data_folder(roots) for source in sources.values() if source is not None)


def check_data_folder(file: Cursor, roots: Roots, given_by: str) -> None:
    """Note a fault if the configured data folder is missing or can't be read."""
    wrong = "" if roots.data is None else why_no_folder(roots.data)
    if not wrong:
        return
    location = file.document.location(tuple(IN_FILE.split("."))) if given_by == IN_FILE else ""
    file.problems.note(Fault(location, given_by, f"{wrong}: {roots.data}"))


def look_into_sources(
    at: Cursor, sources: Mapping[str, Source | None], if_found: Collection[str], roots: Roots
) -> Iterator[str]:
    """Read every local source, noting missing and faulty files; works offline.

    `if_found`: sources whose data may be missing. Yields a note on each source that was not read.
    """
    unread: dict[str, list[str]] = {}
    reported: set[str] = set()
    for name, source in sources.items():
        reason = _reason_not_to_read(source, roots)
        if reason:
            unread.setdefault(reason, []).append(name)
        elif source is not None and not isinstance(source, WorldSource):
            if name in if_found and not _is_found(source, roots):
                yield f"{name}: no data found, left out"
                continue
            try:
                source.read(roots)
            except UserError as error:
                # Two parts of one file share its faults.
                for message in (each for each in error.messages if each not in reported):
                    at[name].add(message)
                reported.update(error.messages)
    for reason, names in unread.items():
        yield f"not looked at: {', '.join(names)} ({reason})"


def _reason_not_to_read(source: Source | None, roots: Roots) -> str:
    if isinstance(source, TaskSource | FileSource | CorpusSource) and source.is_on_hub(roots):
        return "on the hub"
    if source is None or not source.needs_data_folder(roots):
        return ""
    if roots.data is None:
        return "no data folder: give --data or set SYNTHBENCH_DATA"
    return "the data folder is missing" if why_no_folder(roots.data) else ""


def _is_found(source: Source, roots: Roots) -> bool:
    with suppress(UserError):
        source.fingerprint(roots)
        return True
    return False
