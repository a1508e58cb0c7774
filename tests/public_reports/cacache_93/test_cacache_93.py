"""zkat/cacache #93: a file manager's .DS_Store in every folder of a cache makes each look-up fail.

Here what has no artifact's name is passed over, in the local store as in a shared one.
"""

from pathlib import Path

from synthbench.engine.cleaning import take_inventory
from synthbench.engine.objects import FolderObjects
from synthbench.engine.patience import PatientObjects
from synthbench.engine.store import Shared, Store

IDENTITY = "ab" * 32


def test_a_file_managers_files_in_every_folder_are_harmless(tmp_path: Path) -> None:
    objects = PatientObjects(FolderObjects(tmp_path / "network"))
    shared = Store(tmp_path / "cache", Shared(objects, tmp_path, 60))
    for store, root in ((Store(tmp_path / "store"), tmp_path / "store"), (shared, tmp_path / "network")):
        (store.workspace(IDENTITY) / "output" / "data").write_bytes(b"x")
        assert store.commit(IDENTITY, {"spec": {"kind": "train"}})
        for folder in [path for path in root.rglob("*") if path.is_dir()]:
            (folder / ".DS_Store").write_bytes(b"Bud1")
        with store.listed():
            assert store.find() == store.newest(9) == [IDENTITY]
        store.verify(IDENTITY)
        assert [holding.kind for holding in take_inventory(store).holdings] == ["train"]
