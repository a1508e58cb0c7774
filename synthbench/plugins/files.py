"""Plug-ins in a Python file beside an experiment: `method: my_method.py:MyMethod`, without a package.

Reading such an experiment runs its code. The user therefore has to allow the file's folder: by `--allow-code`
for one command, or by SYNTHBENCH_CODE_FOLDERS in the environment. No file of an experiment can allow it.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.user_files import check_file

ALLOWED = "SYNTHBENCH_CODE_FOLDERS"
"""The environment variable with the folders whose Python files may run, separated as in PATH."""
_MODULE = "synthbench_file_"
_SUFFIX = ".py:"


def is_in_file(name: str) -> bool:
    """Return whether a component's name denotes a class in a file: "my_method.py:MyMethod"."""
    return _SUFFIX in name


def allow_code(folder: Path) -> None:
    """Allow this process and its workers to run the Python files in a folder and below it.

    Raises UserError for a folder whose path holds the separator of `ALLOWED`.
    """
    allowed = str(folder.resolve())
    if os.pathsep in allowed:
        raise UserError(
            f"{allowed}: code in a folder with '{os.pathsep}' in its path can't be allowed, since"
            f" '{os.pathsep}' separates the folders in {ALLOWED}; rename it"
        )
    os.environ[ALLOWED] = os.pathsep.join([*_allowed(), allowed])


@contextmanager
def code_allowed(folder: Path) -> Iterator[None]:
    """Allow running the Python files in a folder and below it, until the block ends."""
    before = os.environ.get(ALLOWED, "")
    allow_code(folder)
    try:
        yield
    finally:
        os.environ[ALLOWED] = before


def may_run_code() -> bool:
    """Return whether the user allows code from the files of at least one folder."""
    return bool(_allowed())


def file_of(module: str) -> Path | None:
    """Return the file of a module that was loaded as a plug-in file, None for any other module."""
    path, _, _ = module.removeprefix(_MODULE).partition("_")
    return Path(bytes.fromhex(path).decode()) if module.startswith(_MODULE) else None


@dataclass(frozen=True)
class FilePlugin:
    """A plug-in class in a Python file, loaded like an entry point; `name` is "my_method.py:MyMethod"."""

    name: str
    folder: Path
    dist: None = None

    @property
    def value(self) -> str:
        """The file's path, for messages."""
        return str(self._path)

    @property
    def _path(self) -> Path:
        return self.folder / Path(self.name.rpartition(_SUFFIX)[0] + ".py").expanduser()

    def load(self) -> Any:  # noqa: ANN401 - whatever the file holds under this name
        """Import the file and return the object with the class's name.

        Raises UserError if the file or class does not exist, or the user does not allow the file's code.
        Errors of this code are passed on.
        """
        path = self._path.resolve()
        check_file(path)
        if not is_allowed(path):
            raise UserError(
                f"{path}: not allowed to run; if you trust this code, give --allow-code, or list its folder"
                f" in {ALLOWED}"
            )
        module = importlib.import_module(_module(path))
        wanted = self.name.rpartition(_SUFFIX)[2]
        if not hasattr(module, wanted):
            raise UserError(f"{path}: defines no '{wanted}'{did_you_mean(wanted, _classes(module))}")
        return getattr(module, wanted)


def _module(path: Path) -> str:
    """Return a module name made of path and content hash: other processes import the same code or fail."""
    return f"{_MODULE}{str(path).encode().hex()}_{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def _classes(module: ModuleType) -> list[str]:
    found = vars(module).items()
    return [name for name, each in found if isinstance(each, type) and each.__module__ == module.__name__]


def _allowed() -> list[str]:
    return [folder for folder in os.environ.get(ALLOWED, "").split(os.pathsep) if folder]


def is_allowed(path: Path) -> bool:
    """Return whether the user allows code in a file's folder; `path` must be absolute, without links."""
    return any(path.is_relative_to(Path(folder).expanduser().resolve()) for folder in _allowed())


def check_code_of(model: str) -> None:
    """Raise UserError if loading a model runs code from its folder that the user has not allowed."""
    from synthbench.models.artifact import runs_code

    folder = Path(model)
    if runs_code(folder) and not is_allowed(folder.resolve()):
        raise UserError(
            f"{model}: not allowed to run the code that comes with it; if you trust it, list its folder in"
            f" {ALLOWED}"
        )


class _FreshLoader(SourceFileLoader):
    """Always compiles the file, since cached bytecode can miss an edit within the same second."""

    def get_code(self, fullname: str) -> CodeType | None:
        return self.source_to_code(self.get_data(self.path), self.path)


class _Finder(MetaPathFinder):
    """Finds plug-in files by module name, so that a worker can unpickle its driver's objects."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = file_of(fullname)
        if file is None or not is_allowed(file):
            return None
        if fullname != _module(file):
            raise UserError(f"{file}: changed while the run was under way; run the same command again")
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_FreshLoader(fullname, str(file))
        )


if not any(type(finder).__name__ == _Finder.__name__ for finder in sys.meta_path):
    sys.meta_path.append(_Finder())
