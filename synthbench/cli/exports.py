"""Shared parts of the commands that export: options, folder, and upload to the hub."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synthbench.base.errors import UserError
from synthbench.cli.options import Given

if TYPE_CHECKING:
    from synthbench.exporting.cards import Statements
    from synthbench.exporting.push import Repository
    from synthbench.exporting.subject import Subject

Kind = Literal["model", "dataset"]
Row = Annotated[
    str,
    typer.Argument(
        metavar="VARIANT",
        show_default=False,
        help="The row; with several axes, such as 'bm25 [base=static]'.",
    ),
]
To = Annotated[Path, typer.Option("--to", metavar="DIR", help="The new folder to write.")]
Force = Annotated[bool | None, typer.Option("--force", help="Replace an earlier export.")]
License = Annotated[
    str,
    typer.Option(
        "--license", metavar="ID", help="The licence you give, as the hub's id, such as apache-2.0."
    ),
]
Language = Annotated[
    str,
    typer.Option(metavar="CODE", help="The texts' language, such as de [the sources']."),
]
Push = Annotated[
    str, typer.Option("--push", metavar="OWNER/NAME", help="Also upload it to this repository on the hub.")
]
Public = Annotated[bool, typer.Option("--public", help="Make a new repository public, not private.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be written and sent; write and send nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Upload without asking.")]


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where an export goes: a new folder, and optionally a repository on the hub.

    `force` is None if the command has no option --force.
    """

    kind: Kind
    to: To
    push: Push = ""
    public: Public = False
    dry_run: DryRun = False
    yes: Yes = False
    force: Force = False

    def check(self) -> None:
        """Raise UserError for an unusable folder or repository, before any work."""
        from synthbench.exporting.folders import check_new_folder

        if self.public and not self.push:
            raise UserError("--public: is about a repository; give --push OWNER/NAME, too")
        check_new_folder(self.to, force=self.force)
        if self._repository is None:
            return
        if self.dry_run:
            self._repository.check_name()
            return
        self._repository.check()
        if not (self.yes or sys.stdin.isatty()):
            raise UserError("--push: nobody is there to be asked; give --yes to send without asking")

    def fill(self, write: Callable[[Path], None]) -> None:
        """Let `write` fill the folder, print a list of its files, and upload the folder if requested.

        Raises UserError if the folder can't be written or the hub rejects the upload.
        """
        from synthbench.exporting.folders import new_folder

        if self.dry_run:
            with tempfile.TemporaryDirectory() as name:
                write(Path(name))
                _print_files(Path(name))
            print(f"dry run: nothing was written to {self.to}")
            if self._repository is not None:
                new = "public" if self.public else "private"
                print(f"dry run: nothing was sent to {self.push} ({self.kind}, {new} if it is new)")
            return
        with new_folder(self.to, force=self.force) as folder:
            write(folder)
        _print_files(self.to)
        print(f"{self.to}: written")
        if self._repository is not None:
            self._send(self._repository)

    @property
    def _repository(self) -> "Repository | None":
        from synthbench.exporting.push import Repository

        return Repository(self.push, self.kind, self.public) if self.push else None

    def _send(self, repository: "Repository") -> None:
        what = f"{self.kind} {repository.name} ({repository.visibility()})"
        if not self.yes and not typer.confirm(f"Send these files to {what}?"):
            print(f"not sent; the folder is {self.to}")
            return
        address, revision = repository.upload(self.to)
        print(f"sent to {what}: {address}, revision {revision}")


@dataclass(frozen=True, kw_only=True)
class Export(Destination, Given):
    """An export of an experiment's row; all fields except `kind` are options of the export command."""

    row: Row
    license_id: License = ""
    language: Language = ""

    def subject(self, seed: str) -> "Subject":
        """Return the row's run with this seed: a number, "best-on-dev", "any" or "".

        "any": the first run. "": the best on dev, or the lowest seed if dev scores are missing.

        Raises UserError if folder, repository, row or seed is invalid, or if the experiment was not run.
        """
        from synthbench.engine.stores import open_store
        from synthbench.exporting.subject import find_subject
        from synthbench.exporting.tracked import tracked

        self.check()
        return find_subject(*tracked(self.file, self.overrides()), self.row, seed, open_store())

    def statements(self) -> "Statements":
        """Return what only the user can state on the card: licence, language and repository."""
        from synthbench.exporting.cards import Statements

        address = {"address": self.push} if self.push else {}
        return Statements(self.license_id, self.language, **address)


def _print_files(folder: Path) -> None:
    from synthbench.exporting.push import listed

    files = list(listed(folder))
    for name, size in files:
        print(f"{size:>14,} bytes  {name}")
    print(f"{sum(size for _, size in files):>14,} bytes in {len(files)} files")
