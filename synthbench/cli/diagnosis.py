"""Check this machine for runs: packages, plug-ins, devices, folders and the tracking server.

Changes nothing and contacts only the user's tracking server. `run` itself checks the LLM before it computes
anything.
"""

import os
import platform
import shutil
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.user_files import IS_FOLDER, NO_FILE, why_no_file, why_no_folder
from synthbench.plugins.loading import GROUPS, component, installed
from synthbench.tracking.mlflow_tracker import MlflowTracker
from synthbench.tracking.outbox import Outbox
from synthbench.tracking.redaction import mask_password_of

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE = "synthbench"
REINSTALL = "install synthbench anew: pip install -c constraints.txt -e ."
SHOWN = ("torch", "transformers", "sentence-transformers", "datasets", "mlflow")
GB, GIB = 10**9, 2**30
SCARCE_SPACE, LEAST_SPACE = 10 * GB, 1 * GB


class Level(StrEnum):
    """The severity: a note is a limitation, a problem will end a run."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One result of `doctor`: severity, what was checked, its state, and advice, if any."""

    level: Level
    subject: str
    text: str
    advice: str = ""


fine = partial(DoctorFinding, Level.OK)
note = partial(DoctorFinding, Level.NOTE)
problem = partial(DoctorFinding, Level.PROBLEM)


def diagnose(home: Path) -> Iterator[DoctorFinding]:
    """Yield each finding as soon as it is known; `home` is the folder of store and tracking database."""
    yield from packages()
    yield from bytecode()
    yield from plugins()
    yield from devices()
    yield from home_folder(home)
    yield from hub()
    yield data()
    yield tracking(home)


def packages() -> Iterator[DoctorFinding]:
    """Compare the installed packages with the versions that synthbench requires."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(text) for text in requires(PACKAGE) or []]
    except PackageNotFoundError:
        yield problem("packages", "synthbench itself is not installed", REINSTALL)
        return
    needed = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    misfits = [misfit for misfit in map(_misfit, needed) if misfit]
    for misfit in misfits:
        yield problem("packages", misfit, REINSTALL)
    if not misfits:
        shown = ", ".join(f"{name} {version(name)}" for name in SHOWN)
        yield fine("packages", f"Python {platform.python_version()}; all {len(needed)} fit: {shown}")


def bytecode() -> Iterator[DoctorFinding]:
    """Yield a note if libraries have no bytecode and Python can't write it: every process compiles them."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return
    libraries, cached = Path(spec.origin).parents[1], Path(cache_from_source(spec.origin))
    if not cached.exists() and (sys.dont_write_bytecode or not os.access(libraries, os.W_OK)):
        missing = "the libraries have none, and Python may not write it: each process compiles them anew"
        yield note("bytecode", missing, f"python -m compileall -q -j 0 {libraries}")


def _misfit(requirement: "Requirement") -> str:
    """Return what is wrong with an installed package, "" if nothing is."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is missing; needed: {requirement}"
    if requirement.specifier.contains(found, prereleases=True):
        return ""
    return f"{requirement.name} {found} does not fit; needed: {requirement}"


def plugins() -> Iterator[DoctorFinding]:
    """Load every installed plug-in; yield a problem for each that fails, and a list of the usable ones."""
    for group in GROUPS:
        names = sorted(installed(group))
        faults = {name: fault for name in names if (fault := _loading_fault(group, name))}
        for name, fault in faults.items():
            yield problem(group, fault, f"mend or uninstall the package that offers '{name}'")
        if usable := [name for name in names if name not in faults]:
            yield fine(group, ", ".join(usable))
        elif not names:
            yield note(group, "none are installed", REINSTALL)


def _loading_fault(group: str, name: str) -> str:
    """Return why a plug-in can't be loaded, "" if it can."""
    try:
        component(group, name)
    except UserError as error:
        return str(error)
    return ""


def devices() -> Iterator[DoctorFinding]:
    """Count torch's CPU threads, and test that each accelerator can add two numbers."""
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
    if not accelerators and torch.version.cuda is None and shutil.which("nvidia-smi"):
        text = "this machine has NVIDIA's driver, but torch is built without CUDA"
        yield note("CUDA", text, "install a build of torch with CUDA, if its GPU is to be used")
    elif not accelerators:
        yield fine("accelerator", "none: models compute on the CPU")


def _threads(num_threads: int) -> DoctorFinding:
    affinity = getattr(os, "sched_getaffinity", None)
    num_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    text = f"torch computes with {num_threads} of {num_cores} cores"
    limit = os.environ.get("OMP_NUM_THREADS")
    if num_threads < num_cores and limit:
        return note("CPU", f"{text}: OMP_NUM_THREADS={limit}", "unset it, unless the machine is shared")
    return fine("CPU", text)


def _accelerator(name: str) -> DoctorFinding:
    import torch

    advice = "use another device or build of torch; device: cpu always works"
    try:
        if torch.ones(2, device=name).sum().item() != 2.0:
            return problem(name, "can't compute: 1 + 1 is not 2", advice)
    except RuntimeError as error:
        return problem(name, f"can't compute: {in_one_line(error)}", advice)
    if not name.startswith("cuda"):
        return fine(name, "computes")
    properties = torch.cuda.get_device_properties(torch.device(name))
    return fine(name, f"{properties.name}, {properties.total_memory / GIB:.0f} GiB, computes")


def home_folder(home: Path) -> Iterator[DoctorFinding]:
    """Check that the home folder can be written to and that its disk has enough free space."""
    folder = _existing(home)
    if reason := _obstacle(folder):
        advice = "set SYNTHBENCH_HOME to a folder that can be written to"
        yield problem("home", f"{home}: {folder} {reason}", advice)
        return
    made = "" if home.is_dir() else "; made by the first run"
    yield fine("home", f"{home.absolute()}{made}")
    free = shutil.disk_usage(folder).free
    if free >= SCARCE_SPACE:
        yield fine("disk", f"{free / GB:.1f} GB free")
    else:
        finding = problem if free < LEAST_SPACE else note
        advice = "make room (`synthbench clean` says what it can give back)"
        yield finding("disk", f"only {free / GB:.1f} GB free", advice)


def hub() -> Iterator[DoctorFinding]:
    """Check that the Hugging Face hub's cache can be written to; yield a note in offline mode."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    if _obstacle(_existing(cache)):
        yield note("hub cache", f"{cache} can't be written to", "set HF_HOME to a folder that can be")
    else:
        yield fine("hub cache", str(cache))
    if constants.HF_HUB_OFFLINE:
        text = "offline mode: only what is in the cache is used"
        yield note("hub", text, "unset HF_HUB_OFFLINE to download models")


def _existing(path: Path) -> Path:
    """Return the path, or its nearest existing parent."""
    absolute = path.absolute()
    return next(each for each in (absolute, *absolute.parents) if why_no_file(each) != NO_FILE)


def _obstacle(folder: Path) -> str:
    """Return why a folder can't be written to, "" if it can."""
    wrong = why_no_file(folder)
    if wrong != IS_FOLDER:
        return wrong or "is no folder"
    return "" if os.access(folder, os.W_OK | os.X_OK) else "can't be written to"


def data() -> DoctorFinding:
    """Check that the folder in SYNTHBENCH_DATA can be read; `validate` and `run` look for test sets."""
    named = os.environ.get("SYNTHBENCH_DATA", "")
    advice = "point SYNTHBENCH_DATA (or --data) at a folder that holds SentEval's STS and SICK"
    if not named:
        return note(
            "data", "SYNTHBENCH_DATA is not set: tasks are found with --data or on the hub only", advice
        )
    if wrong := why_no_folder(Path(named)):
        return problem("data", f"SYNTHBENCH_DATA={named}: {wrong}", advice)
    return fine("data", named)


def tracking(home: Path) -> DoctorFinding:
    """Query the user's tracking server as a run would; count the results waiting in the outbox.

    A tracking database is not opened, since MLflow would create it if it is missing.
    """
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    found, outbox = _tracking(home), Outbox(home, uri)
    waiting = len(outbox.waiting()) if uri else 0
    if not waiting:
        return found
    text = f"{found.text}; results that wait in {outbox.folder}: {waiting}"
    if found.level is Level.PROBLEM:
        return replace(found, text=text)
    advice = "the next run, report or dashboard records them; of one that stays run the experiment again"
    return note(found.subject, text, advice)


def _tracking(home: Path) -> DoctorFinding:
    tracker = MlflowTracker(home)
    shown = mask_password_of(tracker.uri, tracker.uri).partition("?")[0]
    if not tracker.is_web:
        return fine("tracking", f"{shown}; not tried")
    try:
        tracker.check(PACKAGE)
    except UserError as error:
        advice = "start the server, or mend MLFLOW_TRACKING_URI, MLFLOW_TRACKING_USERNAME and ..._PASSWORD"
        return problem("tracking", str(error), advice)
    return fine("tracking", f"{shown} answers")
