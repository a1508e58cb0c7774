"""Python, the packages that we build on, and plug-ins."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import TYPE_CHECKING

from synthbench.diagnosis.finding import Finding, fine, note, problem
from synthbench.errors import UserError
from synthbench.plugins import GROUPS, component, installed

if TYPE_CHECKING:
    from packaging.requirements import Requirement

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
