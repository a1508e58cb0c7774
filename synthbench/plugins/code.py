"""A plug-in's code in identities: name and version of a release, otherwise a hash of the files.

The code of components that ship with synthbench is in no identity, so that stores survive a refactoring.
Tests of their output ensure that their `version` is raised when results change.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError
from synthbench.plugins.contracts import Component
from synthbench.plugins.files import file_of

_Code = Mapping[str, Mapping[str, str]]
CONTENT = "sha256:"
_OURS = "synthbench"


def code_of(plugins: Iterable[tuple[str, Component]]) -> dict[str, dict[str, str]]:
    """Return component name -> package -> "distribution version" or content hash.

    Packages of synthbench, and components with no other package, are left out. Raises UserError for a package
    without a file, or with a file that can't be read.
    """
    found: dict[str, dict[str, str]] = {}
    for name, plugin in plugins:
        found.setdefault(name, {}).update(_code(type(plugin)))
    return {name: code for name, code in found.items() if code}


def code_changes(old: _Code, new: _Code) -> Iterator[str]:
    """Yield a line on each component in both `old` and `new` whose code changed.

    The line is "echo 1.0 -> 1.1" for releases, otherwise "code of 'echo' changed". If `old` is empty, each
    component of `new` gets the line "code of 'echo' was not recorded".
    """
    for name in sorted(old.keys() & new.keys() if old else new):
        before, after = old.get(name, {}), new[name]
        packages = [each for each in sorted({*before, *after}) if before.get(each) != after.get(each)]
        values = [code.get(each, CONTENT) for each in packages for code in (before, after)]
        if not before:
            yield f"code of '{name}' was not recorded"
        elif any(value.startswith(CONTENT) for value in values):
            yield f"code of '{name}' changed"
        else:
            yield from (_upgrade(before[each], after[each]) for each in packages)


def _upgrade(before: str, after: str) -> str:
    (name, old), (new_name, new) = before.split(" "), after.split(" ")
    return f"{name} {old} -> {new}" if name == new_name else f"{before} -> {after}"


@cache
def _code(plugin: type[Component]) -> Mapping[str, str]:
    """Return package -> release or content hash, for the packages of a class and its base classes."""
    inherited = [each for each in plugin.__mro__ if each not in Component.__mro__]
    modules = {each.__module__ for each in inherited}
    known = {*_own_packages(), *sys.stdlib_module_names}
    foreign = sorted({_package(name) for name in modules if name.partition(".")[0] not in known})
    return {_package_name(name): _release(name) or CONTENT + _content(name) for name in foreign}


def _package_name(package: str) -> str:
    """Return a package's name; for a file beside an experiment, the file's name without its folder."""
    file = file_of(package)
    return package if file is None else file.name


def content_of_synthbench() -> str:
    """Return a hash of all code that ships with synthbench: machines that share work must have the same."""
    digest = hashlib.sha256()
    for name in sorted(_own_packages()):
        import_module(name)
        digest.update(_content(name).encode())
    return digest.hexdigest()


@cache
def _own_packages() -> frozenset[str]:
    """Return the top-level packages that ship with synthbench."""
    try:
        points = distribution(_OURS).entry_points
    except PackageNotFoundError:
        return frozenset({_OURS})
    plugins = {point.module.partition(".")[0] for point in points if point.group.startswith(f"{_OURS}.")}
    return frozenset({_OURS, *plugins})


def _package(module: str) -> str:
    """Return a module's outermost package that has a file (namespace packages have none), else the module."""
    parts = module.split(".")
    names = (".".join(parts[:number]) for number in range(1, len(parts)))
    return next((name for name in names if getattr(sys.modules.get(name), "__file__", None)), module)


def _file(package: str) -> Path:
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None:
        raise UserError(f"{package}: has no file, so a change of it would go unseen")
    return Path(file)


def _release(package: str) -> str | None:
    """Return name and version of the release that installed a package, or None.

    None if the content may change while the version stays. This is so if pip wrote a direct_url.json
    (installed from a folder, repository or file), or if no RECORD beside the package lists its files
    (editable, or on PYTHONPATH).
    """
    from packaging.utils import canonicalize_name

    file = _file(package)
    depth = package.count(".") + hasattr(sys.modules[package], "__path__")
    root = file.parents[depth]
    line = f"\n{file.relative_to(root).as_posix()},"
    for candidate in distributions(path=[str(root)]):
        if line in f"\n{candidate.read_text('RECORD') or ''}":
            is_release = candidate.read_text("direct_url.json") is None
            return f"{canonicalize_name(candidate.name)} {candidate.version}" if is_release else None
    return None


def _content(package: str) -> str:
    """Return a hash of the names and contents of a package's files; hidden and compiled ones do not count."""
    file = _file(package)
    is_folder = hasattr(sys.modules[package], "__path__") and file.is_file()
    # A module in an archive has no file of its own.
    file = next(path for path in (file, *file.parents) if path.exists())
    root = file.parent
    files = sorted(_files(root)) if is_folder else [file]
    digest = hashlib.sha256()
    for each in files:
        try:
            digest.update(f"{each.relative_to(root).as_posix()}\0{file_hash(each)}\n".encode())
        except OSError as error:
            raise UserError(f"{each}: can't be read: {error.strerror}") from error
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that are neither hidden nor compiled."""
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        files = (Path(where, name) for name in names if not name.startswith("."))
        yield from (file for file in files if file.is_file())
