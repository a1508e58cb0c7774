"""The repositories and files that stages need from the hub, and those that this machine lacks."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from synthbench.base.errors import NotAvailableError, UserError
from synthbench.base.frozen import sections
from synthbench.base.grouping import grouped
from synthbench.config.experiment import Experiment
from synthbench.config.served_llm import ServedLLM
from synthbench.engine.plan import Plan
from synthbench.engine.stage import Operation, Stage
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.hub.repositories import WORDS, HubFiles, HubRepository, is_reachable
from synthbench.models import reference
from synthbench.models.checkpoint_files import ModelFiles
from synthbench.models.loading import check_tokenizer_reader
from synthbench.models.pretrained import Pretrained
from synthbench.pipeline.planning import make_outline, make_plan
from synthbench.sources.description import Roots, SourceBase
from synthbench.stages.data import ReadSource
from synthbench.worlds import NAME

Files = ModelFiles | HubFiles
_HALF = 0.5


def files_on_hub(stages: Iterable[Stage]) -> list[Files]:
    """Return the files on the hub that the stages read, cached files too, each once."""
    return list(dict.fromkeys(each for stage in stages for each in _files(stage.operation)))


def sources_of(stages: Iterable[Stage]) -> list[tuple[SourceBase, Roots]]:
    """Return the sources on the hub that the stages read, each with its roots."""
    read = (stage.operation for stage in stages)
    found = ((each.source, each.roots) for each in read if isinstance(each, ReadSource))
    return [(source, roots) for source, roots in found if source.hub_files(roots)]


def _files(operation: Operation) -> Iterator[Files]:
    if isinstance(operation, ReadSource):
        yield from operation.source.hub_files(operation.roots)
        return
    for model in sections(operation):
        if isinstance(model, Pretrained | NamedLanguageModel | ServedLLM) and _is_on_hub(model):
            yield ModelFiles(HubRepository("model", str(model.model), model.revision))


def _is_on_hub(model: Pretrained | NamedLanguageModel | ServedLLM) -> bool:
    if (isinstance(model, Pretrained) and model.is_word_vectors) or (
        isinstance(model, ServedLLM) and model.command
    ):
        return False
    try:
        return reference.local(model.model) is None
    except UserError:
        # Planning reports a folder that is missing.
        return False


def own_code(stages: Iterable[Stage]) -> list[HubFiles]:
    """Return the Python code that trusted models (`trust_remote_code`) load from other repositories.

    Reads the models' configurations from the local cache.
    """
    models = (model for stage in stages for model in stage.operation.trusted)
    named = (names for model in models if isinstance(model, Pretrained) for names in _auto_map(model))
    return [HubFiles(HubRepository("model", name), (("*.py",),)) for name in dict.fromkeys(named)]


def _auto_map(model: Pretrained) -> Iterator[str]:
    """Yield the repositories of a configuration's classes: "org/name" of "org/name--module.Class"."""
    facts = model.facts()
    given = None if facts is None else facts.config.get("auto_map")
    for value in given.values() if isinstance(given, dict) else ():
        for text in value if isinstance(value, list) else [value]:
            name, mark, _ = str(text).partition("--")
            if mark:
                yield name


def missing(needs: Iterable[Files]) -> list[Files]:
    """Return the needs that are not completely in the local cache; sends no request."""
    return [files for files in needs if not _is_cached(files)]


def _is_cached(files: Files) -> bool:
    here = files.repository.cached_files()
    try:
        return {*files.chosen(files.repository.listed_files() or here)} <= {*here}
    except UserError:
        return False


@dataclass(frozen=True)
class Found:
    """A repository on the hub: its commit, and the needed files with their sizes in bytes."""

    repository: HubRepository
    commit: str
    sizes: Mapping[str, int]
    needs: tuple[Files, ...]

    @property
    def lacking(self) -> int:
        """Bytes that the local cache lacks."""
        here = replace(self.repository, revision=self.commit).cached_files()
        return sum(size for name, size in self.sizes.items() if name not in here)


def look_up(needs: Iterable[Files], experiment: Experiment) -> list[Found]:
    """Ask the hub for each repository's commit and the sizes of the needed files.

    Raises one UserError with a line for each repository that does not exist, is gated, or lacks needed files;
    the line gives the location in the experiment file. Raises NotAvailableError, with ways out, if the hub
    does not answer.
    """
    wanted = grouped((files.repository, files) for files in needs)
    if not wanted:
        return []
    if not is_reachable(anew=True):
        raise NotAvailableError(_without_hub(wanted))
    found, messages = list[Found](), dict[str, None]()
    for repository, its in wanted.items():
        try:
            listing = repository.listing()
            names = {name for files in its for name in files.chosen([*listing.sizes])}
        except UserError as error:
            messages |= dict.fromkeys(map(experiment.located, error.messages))
        else:
            sizes = {name: listing.sizes[name] for name in sorted(names)}
            found.append(Found(repository, listing.commit, sizes, tuple(its)))
    if messages:
        raise UserError(*messages)
    return found


def _without_hub(repositories: Iterable[HubRepository]) -> str:
    from huggingface_hub import is_offline_mode

    of_kind = grouped((each.kind, each.name) for each in repositories)
    names = "; ".join(
        f"{WORDS[kind]}{'s' * (len(its) > 1)} {', '.join(its)}" for kind, its in of_kind.items()
    )
    why = "HF_HUB_OFFLINE is set" if is_offline_mode() else "the hub does not answer"
    return (
        f"{why}, and this machine lacks {names}. Three ways out: `synthbench fetch FILE` where there is a"
        " network, with the same HF_HOME; folders instead of names (--data for tasks); or --profile"
        f" {NAME}, which downloads nothing"
    )


def planned(experiment: Experiment) -> Plan:
    """Return the plan of an experiment.

    If the hub is needed and can't be reached, one NotAvailableError names all that is missing. Otherwise
    raises UserError as `look_up` and `make_plan`.
    """
    outline = make_outline(experiment)
    if not outline.not_at_hand:
        return outline
    look_up(missing(files_on_hub(outline.stages.values())), experiment)
    return make_plan(experiment)


def check_room(found: Iterable[Found]) -> tuple[int, int, Path]:
    """Return the bytes to download, the free bytes on the disk of the hub's cache, and the cache's folder.

    Raises UserError if the download doesn't fit.
    """
    from huggingface_hub import constants

    needed = sum(each.lacking for each in found)
    folder = Path(constants.HF_HUB_CACHE)
    free = shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free
    if needed > free:
        raise UserError(
            f"{folder}: {in_bytes(needed)} to download, but its disk has {in_bytes(free)} free; HF_HOME sets"
            " another folder; no weights or data were downloaded"
        )
    return needed, free, folder


def in_bytes(number: float) -> str:
    """Return a number of bytes in the hub's format, such as 6.4 GB."""
    for unit in ("bytes", "kB", "MB"):
        if number < 1000 - _HALF:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:,.1f} GB"


def download(found: Found) -> None:
    """Download a repository's needed files that the local cache lacks.

    Raises UserError for what `look_up` refuses, for a full disk, and for a missing tokenizer library.
    """
    for files in found.needs:
        if isinstance(files, ModelFiles):
            check_tokenizer_reader(found.repository.name, files.download())
        else:
            files.resolve()
