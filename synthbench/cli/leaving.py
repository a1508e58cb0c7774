"""What the exports of models and data sets share: their options, and the folder."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synthbench.cli.options import Given

if TYPE_CHECKING:
    from synthbench.exporting.model import Statements
    from synthbench.exporting.subject import Subject

Kind = Literal["model", "dataset"]
Row = Annotated[
    str,
    typer.Argument(
        metavar="VARIANT",
        show_default=False,
        help="The row; one of several axes is named as 'bm25 [base=static]'.",
    ),
]
To = Annotated[Path, typer.Option("--to", metavar="DIR", help="The new folder to write.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier export.")]
License = Annotated[
    str,
    typer.Option(
        "--license", metavar="ID", help="The licence you give, by the hub's id, such as apache-2.0."
    ),
]
Language = Annotated[
    str,
    typer.Option(metavar="CODE", help="The texts' language, such as de; not needed where it is known."),
]
Repo = Annotated[
    str,
    typer.Option(
        metavar="OWNER/NAME", help="The hub's repository that it will be in: the card's code names it."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Export(Given):
    """What is exported, and the folder that it goes to.

    Its fields but `kind` are options of both commands.
    """

    kind: Kind
    row: Row
    to: To
    repo: Repo = ""
    force: Force = False
    license_id: License = ""
    language: Language = ""

    def subject(self, seed: str) -> "Subject":
        """Return the row's run with a seed.

        Raises UserError if folder, row or seed can't be, or the experiment was not run.
        """
        from synthbench.engine.stores import open_store
        from synthbench.exporting.folders import check_new_folder
        from synthbench.exporting.subject import find_subject
        from synthbench.exporting.tracked import tracked

        check_new_folder(self.to, force=self.force)
        return find_subject(*tracked(self.file, self.overrides()), self.row, seed, open_store())

    def statements(self) -> "Statements":
        """Return what the card says on the user's word."""
        from synthbench.exporting.model import Statements

        address = {"address": self.repo} if self.repo else {}
        return Statements(self.license_id, self.language, **address)

    def fill(self, write: Callable[[Path], None]) -> None:
        """Let `write` fill the folder, and say what is in it and how it gets to the hub.

        Raises UserError if the folder can't be written.
        """
        from synthbench.exporting.folders import new_folder

        with new_folder(self.to, force=self.force) as folder:
            write(folder)
        sizes = {file: file.stat().st_size for file in sorted(self.to.rglob("*")) if file.is_file()}
        for file, size in sizes.items():
            print(f"{size:>14,} bytes  {file.relative_to(self.to).as_posix()}")
        print(f"{sum(sizes.values()):>14,} bytes in {len(sizes)} files")
        send = shlex.join(("hf", "upload", self.repo or "OWNER/NAME", str(self.to), "."))
        print(f"{self.to}: written; to the hub: {send} --repo-type {self.kind} --private")
