"""Register an experiment without running it."""

from pathlib import Path

from synthbench.base.durability import DamagedFileError, unseal, write_atomically
from synthbench.base.errors import UserError
from synthbench.base.home import make_store_folder
from synthbench.base.runtime import Progress
from synthbench.engine.local_executors import InProcess
from synthbench.engine.runner import Runner
from synthbench.engine.store import disk_errors
from synthbench.engine.stores import open_store
from synthbench.pipeline.hub_needs import planned
from synthbench.pipeline.invocation import Invocation
from synthbench.registration.record import Registered
from synthbench.registration.registering import Registering


def register(invocation: Invocation, progress: Progress, export: Path | None = None) -> Registered:
    """Read the test sets, register the experiment in the home's store, and write the file `export`.

    Returns the registration; if the same declaration was registered before, its first registration.

    Raises UserError if the data are invalid, if there is no test set, or if `export` can't be
    written or exists with other content.
    """
    experiment = invocation.experiment
    plan = planned(experiment)
    make_store_folder()
    store = open_store()
    store.say = progress.say
    store.prepare()
    registering = Registering(plan, store, invocation.overrides, progress.say)
    if not registering.tests:
        raise UserError(f"{experiment.file}: nothing to register: no row is scored on a test set")
    in_progress = store.locks.run(f"experiment {experiment.name}", plan.stages)
    with disk_errors(store.root), in_progress:
        report = Runner(store, InProcess(), experiment.runtime, progress).read(registering.unread)
        if report.failed:
            raise UserError(*dict.fromkeys(line for _, lines in report.failed.values() for line in lines))
        if export is not None:
            _check(export, registering)
        registered = registering.registered
        if registered is None:
            raise UserError(f"{experiment.file}: not registered: the test items are unknown")
        if export is not None:
            _write(export, registering.registrations.content(registered.hash))
    return registered


def _check(file: Path, registering: Registering) -> None:
    """Raise UserError if the file's folder is missing, if `file` is a folder, or if it has other content.

    An existing file must hold this declaration's former registration.
    """
    if not file.absolute().parent.is_dir():
        raise UserError(f"{file}: no folder '{file.parent}'; make it first")
    if file.is_dir():
        raise UserError(f"{file}: is a folder; name a file")
    former = registering.former
    if file.exists() and (former is None or file.read_bytes() != registering.registrations.content(former)):
        raise UserError(f"{file}: {_what(file)}; name another file")


def _write(file: Path, content: bytes) -> None:
    try:
        write_atomically(file, content.decode())
    except OSError as error:
        raise UserError(f"{file}: can't be written: {error.strerror or error}") from error


def _what(file: Path) -> str:
    try:
        found = unseal(file.read_bytes())
    except DamagedFileError:
        return "exists, and is no registration"
    return f"holds another registration, of '{found.get('experiment')}' at {found.get('time')}"
