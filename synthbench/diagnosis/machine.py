"""Check the installation, the devices and the folders of this machine."""

import os
import platform
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.errors import UserError, in_one_line
from synthbench.plugin_loading import GROUPS, component, installed
from synthbench.sources.folders import task_files
from synthbench.sources.tasks import TASKS

if TYPE_CHECKING:
    import torch
    from packaging.requirements import Requirement


class Level(StrEnum):
    """How bad it is: a note limits something, a problem will end a run."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do about it (if anything)."""

    level: Level
    subject: str
    text: str
    advice: str = ""


def fine(subject: str, text: str) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, subject, text)


def note(subject: str, text: str, advice: str) -> Finding:
    """Return what limits something."""
    return Finding(Level.NOTE, subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    """Return what will end a run."""
    return Finding(Level.PROBLEM, subject, text, advice)


PACKAGE = "synthbench"
REINSTALL = "install synthbench anew: pip install -c constraints.txt -e ."
SHOWN = ("torch", "transformers", "sentence-transformers", "datasets", "mlflow")


def python() -> Finding:
    """Look at Python's version."""
    from packaging.specifiers import SpecifierSet

    found = platform.python_version()
    try:
        wanted = metadata(PACKAGE)["Requires-Python"]
    except PackageNotFoundError:
        return problem("Python", f"{found}, but synthbench itself is not installed", REINSTALL)
    if SpecifierSet(wanted).contains(found, prereleases=True):
        return fine("Python", found)
    return problem("Python", f"{found}, synthbench needs {wanted}", "make an environment with such a Python")


def packages() -> Iterator[Finding]:
    """Compare the versions of the packages with what the installed synthbench asks for."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(text) for text in requires(PACKAGE) or []]
    except PackageNotFoundError:
        return
    needed = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    misfits = [misfit for misfit in map(_misfit, needed) if misfit]
    for misfit in misfits:
        yield problem("packages", misfit, REINSTALL)
    if not misfits:
        shown = ", ".join(f"{name} {version(name)}" for name in SHOWN)
        yield fine("packages", f"all {len(needed)} fit: {shown}")


def plugins() -> Iterator[Finding]:
    """Load every installed method, trainer and evaluator."""
    for group in GROUPS:
        names = sorted(installed(group))
        faults = {name: fault for name in names if (fault := _loading_fault(group, name))}
        for name, fault in faults.items():
            yield problem(group, fault, f"mend or uninstall the package that offers '{name}'")
        if usable := [name for name in names if name not in faults]:
            yield fine(group, ", ".join(usable))
        elif not names:
            yield note(group, "none are installed", REINSTALL)


def _misfit(requirement: "Requirement") -> str:
    """Return what is wrong with a required package, "" if nothing is."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is missing; needed: {requirement}"
    if requirement.specifier.contains(found, prereleases=True):
        return ""
    return f"{requirement.name} {found} does not fit; needed: {requirement}"


def _loading_fault(group: str, name: str) -> str:
    """Return why a plug-in can't be loaded, "" if it can."""
    try:
        component(group, name)
    except UserError as error:
        return str(error)
    return ""


def checkpoints() -> Finding:
    """Look whether the models that ship with the package are as they were built."""
    from synthbench.sandbox import shipped

    try:
        names = shipped.names()
        for name in names:
            shipped.folder(name)
    except UserError as error:
        return problem("sandbox", str(error), REINSTALL)
    return fine("sandbox", f"{', '.join(names)} are whole")


GIB = 2**30


def devices() -> Iterator[Finding]:
    """Look at the threads of the CPU and at accelerators; each accelerator has to add two numbers."""
    try:
        import torch
    except (ImportError, OSError) as error:
        yield problem(
            "torch", f"can't be imported: {in_one_line(error)}", "install torch for this machine anew"
        )
        return
    yield _threads(torch.get_num_threads())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        has_cuda = torch.cuda.is_available()
    if caught and not has_cuda:
        advice = "match NVIDIA's driver and the build of torch, or compute on the CPU"
        yield problem("CUDA", str(caught[0].message).strip().splitlines()[0], advice)
    accelerators = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if has_cuda else []
    accelerators += ["mps"] if torch.backends.mps.is_available() else []
    yield from map(_accelerator, accelerators)
    if not accelerators:
        yield _no_accelerator(torch.version.cuda)


def _threads(num_threads: int) -> Finding:
    affinity = getattr(os, "sched_getaffinity", None)
    num_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    text = f"torch computes with {num_threads} of {num_cores} cores"
    limit = os.environ.get("OMP_NUM_THREADS")
    if num_threads < num_cores and limit:
        return note("CPU", f"{text}: OMP_NUM_THREADS={limit}", "unset it, unless the machine is shared")
    return fine("CPU", text)


def _accelerator(name: str) -> Finding:
    import torch

    try:
        is_right = torch.ones(2, device=name).sum().item() == 2.0
        reason = "" if is_right else "1 + 1 is not 2"
    except RuntimeError as error:
        reason = in_one_line(error)
    if reason:
        return problem(
            name, f"can't compute: {reason}", "use another device or build of torch; device: cpu always works"
        )
    return fine(name, _description(torch.device(name)))


def _description(device: "torch.device") -> str:
    import torch

    if device.type != "cuda":
        return "computes"
    properties = torch.cuda.get_device_properties(device)
    return f"{properties.name}, {properties.total_memory / GIB:.0f} GiB, computes"


def _no_accelerator(cuda_version: str | None) -> Finding:
    if cuda_version is None and shutil.which("nvidia-smi"):
        return note(
            "CUDA",
            "this machine has NVIDIA's driver, but torch is built without CUDA",
            "install a build of torch with CUDA, if its GPU is to be used",
        )
    return fine("accelerator", "none: models compute on the CPU")


GB = 10**9
SCARCE_SPACE = 10 * GB
LEAST_SPACE = 1 * GB


def home_folder(home: Path) -> Iterator[Finding]:
    """Look whether the home can be written to, and at the space on its disk."""
    folder = _existing(home)
    elsewhere = "set SYNTHBENCH_HOME to a folder that can be written to"
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        reason = "is no folder" if not folder.is_dir() else "can't be written to"
        yield problem("home", f"{home}: {folder} {reason}", elsewhere)
        return
    made = "" if home.is_dir() else "; made by the first run"
    yield fine("home", f"{home.absolute()}{made}")
    free = shutil.disk_usage(folder).free
    if free >= SCARCE_SPACE:
        yield fine("disk", f"{_gigabytes(free)} free")
    else:
        finding = problem if free < LEAST_SPACE else note
        yield finding(
            "disk",
            f"only {_gigabytes(free)} free",
            "make room (`synthbench clean` says what it can give back)",
        )


def store(home: Path) -> Finding:
    """Say how much the store holds."""
    folder = home / "store"
    if not folder.is_dir():
        return fine("store", "empty")
    sizes = [size for path in folder.rglob("*") if (size := _size(path)) is not None]
    return fine("store", f"{_gigabytes(sum(sizes))} in {len(sizes):,} files; `synthbench clean` lists them")


def hub() -> Iterator[Finding]:
    """Look at the cache of the Hugging Face hub, and whether downloading is switched off."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    folder = _existing(cache)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield note("hub cache", f"{cache} can't be written to", "set HF_HOME to a folder that can be")
    else:
        num_models = sum(1 for _ in cache.glob("models--*"))
        yield fine("hub cache", f"{cache}, {num_models} {'model' if num_models == 1 else 'models'}")
    if constants.HF_HUB_OFFLINE:
        yield note(
            "hub",
            "offline mode: only what is in the cache is used",
            "unset HF_HUB_OFFLINE to download models",
        )


def data() -> Finding:
    """Say which standard test sets are in the data folder; their content is read by `validate` and runs."""
    named = os.environ.get("SYNTHBENCH_DATA", "")
    advice = "point SYNTHBENCH_DATA (or --data) at a folder that holds SentEval's STS and SICK"
    if not named:
        return note(
            "data", "SYNTHBENCH_DATA is not set: tasks are found with --data or on the hub only", advice
        )
    if not Path(named).is_dir():
        return problem("data", f"SYNTHBENCH_DATA={named}: no such folder", advice)
    found = [name for name in TASKS if _has_task(name, Path(named))]
    absent = [name for name in TASKS if name not in found]
    if not found:
        return note("data", f"{named} holds none of {', '.join(TASKS)}", advice)
    if absent:
        return note("data", f"{named} holds {', '.join(found)}; not {', '.join(absent)}", advice)
    return fine("data", f"{named} holds {', '.join(found)}")


def _has_task(name: str, folder: Path) -> bool:
    task = TASKS[name]
    split = "test" if "test" in task.parts else next(iter(task.parts))
    try:
        task_files(task, split, folder)
    except UserError:
        return False
    return True


def _existing(path: Path) -> Path:
    """Return the path, or the nearest one above it that exists."""
    absolute = path.absolute()
    return next(each for each in (absolute, *absolute.parents) if each.exists())


def _size(path: Path) -> int | None:
    """Return the bytes of a file; None for folders, and what is gone meanwhile."""
    try:
        return path.lstat().st_size if path.is_file() else None
    except OSError:
        return None


def _gigabytes(size: int) -> str:
    return f"{size / GB:.1f} GB"
