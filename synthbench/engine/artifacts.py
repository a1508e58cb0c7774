"""Write and read the files in artifacts; `Artifacts` reads them for results and checks their hashes."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from synthbench.base.durability import PASSING, NotNowError, not_now, open_file
from synthbench.base.errors import UserError, first_fault
from synthbench.base.user_files import MOST_BYTES_OF_JSON
from synthbench.data.dataset import SyntheticDataset, check_dataset
from synthbench.data.manifest import MANIFEST_FILE, Manifest, read_manifest
from synthbench.engine.records import ArtifactDamagedError, Identity
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace

DATASET_FOLDER = "dataset"
CHOICE_FILE = "choice.json"


def write_json(file: Path, value: Any) -> None:  # noqa: ANN401
    """Write a value as indented JSON."""
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class Choice(BaseModel):
    """A select stage's choice: the winner's input name, identity and settings, and all candidates' scores."""

    model_config = ConfigDict(extra="forbid", strict=True)

    winner: str
    identity: Identity
    chosen: dict[str, Any]
    scores: list[float]


def read_json(file: Path, shape: type[BaseModel] | None = None) -> Any:  # noqa: ANN401
    """Return the content of an artifact's JSON file, as parsed.

    Raises NotNowError if a later attempt to read the file may succeed, UserError if the file is missing,
    unreadable, not JSON, or does not match `shape`.
    """
    try:
        with open_file(file) as stream:
            found = json.loads(stream.read(MOST_BYTES_OF_JSON))
        if shape is not None:
            shape.model_validate(found)
        return found
    except ValidationError as error:
        raise UserError(f"{file.name} is not what such a stage writes: {first_fault(error)}") from None
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, OSError) and error.errno in PASSING:
            raise not_now(file, error) from error
        raise UserError(f"{file.name} is not JSON") from None


def read_dataset(artifact: Path) -> SyntheticDataset:
    """Read the data set of a source, exclude, join, prepare or generate stage."""
    return SyntheticDataset.read(artifact / DATASET_FOLDER)


def write_dataset(dataset: SyntheticDataset, work: Workspace) -> None:
    """Write a data set as the stage's artifact."""
    dataset.write(dataset_folder(work))


def dataset_folder(work: Workspace) -> Path:
    """Create and return the data set's folder in the stage's output."""
    folder = work.output / DATASET_FOLDER
    folder.mkdir()
    return folder


def model_folder(artifact: Path) -> Path:
    """Return the folder of a train stage's model, or of the model that a select stage chose."""
    if not (artifact / CHOICE_FILE).is_file():
        return artifact
    identity = str(read_json(artifact / CHOICE_FILE, Choice)["identity"])
    return artifact.parent.parent / identity[:2] / identity


def fetch(store: Store, identity: str) -> Path:
    """Fetch an artifact to this machine and return its folder; raises ArtifactDamagedError.

    Also fetches the model that a select stage chose.
    """
    artifact = store.fetch(identity)
    if (artifact / CHOICE_FILE).is_file():
        with _foreign(identity):
            chosen = read_json(artifact / CHOICE_FILE, Choice)["identity"]
        store.fetch(chosen)
    return artifact


def fetch_checked(store: Store, stage: Stage) -> Path:
    """Fetch an artifact, validate its content, and return its folder.

    Raises ArtifactDamagedError, or NotNowError if a file can't be read now.

    Checksums alone prove nothing, since another program may have written the artifact.
    """
    artifact = fetch(store, stage.identity)
    try:
        if (artifact / DATASET_FOLDER).is_dir():
            check_dataset(artifact / DATASET_FOLDER)
        stage.operation.check_artifact(artifact, stage)
    except NotNowError:
        raise
    except UserError as error:
        raise ArtifactDamagedError(stage.identity, error.messages[0]) from error
    return artifact


def chosen_by(choice: Mapping[str, Any], stage: Stage) -> Stage:
    """Return the input that a select stage's choice names; raises UserError if there is no such input."""
    winner = stage.inputs.get(choice["winner"])
    if winner is None or winner.identity != choice["identity"]:
        raise UserError(f"{CHOICE_FILE} names a value that is no candidate")
    return winner


@contextmanager
def _foreign(identity: str) -> Iterator[None]:
    """Re-raise UserErrors of the block, except NotNowError, as ArtifactDamagedError with `is_foreign`."""
    try:
        yield
    except NotNowError:
        raise
    except UserError as error:
        raise ArtifactDamagedError(identity, error.messages[0], is_foreign=True) from error


class Artifacts:
    """Reads artifacts, and compares each file with its recorded hash before the first use.

    Methods raise ArtifactDamagedError for a damaged file. Artifacts that no run needs may be missing.
    `say` reports damage outside artifacts.
    """

    def __init__(self, store: Store, say: Callable[[str], None] = lambda _: None) -> None:
        self.root = store.root
        self.say = say
        self._store = store
        self._records: dict[str, dict[str, Any]] = {}
        self._whole: dict[tuple[str, str], Path] = {}

    @cached_property
    def answers(self) -> Path:
        """The folder of LLM answers and costs, including what other machines have added so far."""
        self._store.ledger.receive()
        return self._store.answers

    def has(self, identity: str) -> bool:
        """Return whether the stage's artifact exists, whole or damaged."""
        return self._store.has(identity)

    def record(self, identity: str) -> dict[str, Any]:
        """Return the artifact's record (spec, label, seconds, files), {} if the artifact is gone."""
        if identity not in self._records:
            self._records[identity] = self._store.record(identity) if self.has(identity) else {}
        return self._records[identity]

    def path_in_home(self, identity: str, name: str = "") -> str:
        """Return an artifact's or file's path as "store/artifacts/...": results hide the store's location."""
        return (self._store.folder(identity) / name).relative_to(self.root.parent).as_posix()

    def file(self, identity: str, name: str) -> Path | None:
        """Return a file's path, None if the artifact has no such file or is gone."""
        if name not in self.record(identity).get("files", {}):
            return None
        file = self._whole.get((identity, name))
        if file is None or not file.exists():
            file = self._whole[identity, name] = self._store.file(identity, name)
        return file

    def json(self, identity: str, name: str, shape: type[BaseModel] | None = None) -> Any:  # noqa: ANN401
        """Return the content of a JSON file, validated by `shape`; None if the file is missing."""
        file = self.file(identity, name)
        with _foreign(identity):
            return None if file is None else read_json(file, shape)

    def has_dataset(self, identity: str) -> bool:
        """Return whether the artifact exists and holds a data set."""
        return f"{DATASET_FOLDER}/{MANIFEST_FILE}" in self.record(identity).get("files", {})

    def manifest(self, identity: str) -> Manifest:
        """Return the manifest of a data set; raises UserError if it is gone."""
        file = self.file(identity, f"{DATASET_FOLDER}/{MANIFEST_FILE}")
        if file is None:
            raise self._gone(identity)
        with _foreign(identity):
            return read_manifest(file.parent)

    def dataset(self, identity: str) -> Path:
        """Return the folder of a data set; raises UserError if it is gone."""
        names = [
            name for name in self.record(identity).get("files", {}) if name.startswith(f"{DATASET_FOLDER}/")
        ]
        if not names:
            raise self._gone(identity)
        is_known = all((identity, name) in self._whole for name in names)
        for name in names:
            self.file(identity, name)
        folder = self._store.folder(identity) / DATASET_FOLDER
        if not is_known:
            with _foreign(identity):
                check_dataset(folder)
        return folder

    def chosen_input(self, stage: Stage) -> Stage | None:
        """Return the input that a select stage chose; None for unfinished stages and other kinds."""
        choice = self.json(stage.identity, CHOICE_FILE, Choice)
        with _foreign(stage.identity):
            return None if choice is None else chosen_by(choice, stage)

    def _gone(self, identity: str) -> UserError:
        return UserError(f"{self.path_in_home(identity, DATASET_FOLDER)}: no longer in the store")
