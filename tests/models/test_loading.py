import json
import shutil
from pathlib import Path

import pytest
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.models import artifact
from synthbench.models.building import build_cross_encoder
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.pretrained import Pretrained

RUNTIME = Runtime(device="cpu")


def test_a_plain_checkpoint_and_a_sentence_transformer_are_encoders(
    bert: Path, sentence_encoder: Path
) -> None:
    assert artifact.checkpoint_kind(bert) is ModelKind.ENCODER
    assert isinstance(artifact.open_model(str(sentence_encoder), None, RUNTIME), Encoder)


def test_a_cross_encoder_folder_is_a_pair_scorer(bert: Path, tmp_path: Path) -> None:
    build_cross_encoder(Pretrained(model=str(bert)), 0, "cpu").save(str(tmp_path))
    assert isinstance(artifact.open_model(str(tmp_path), None, RUNTIME), PairScorer)


def test_a_checkpoint_with_a_head_of_one_output_is_a_pair_scorer(bert: Path, tmp_path: Path) -> None:
    model = build_cross_encoder(Pretrained(model=str(bert)), 0, "cpu")
    assert model.model is not None
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    assert isinstance(artifact.open_model(str(tmp_path), None, RUNTIME), PairScorer)


def test_a_classifier_is_refused_instead_of_getting_a_new_head(bert: Path, tmp_path: Path) -> None:
    build_cross_encoder(Pretrained(model=str(bert)), 0, "cpu", num_labels=3).save(str(tmp_path))
    with refused("3"):
        artifact.open_model(str(tmp_path), None, RUNTIME)


def test_an_artifact_is_loaded_and_identified_by_its_checkpoint(bert: Path, tmp_path: Path) -> None:
    artifact.save_untrained(Pretrained(model=str(bert), static=True), tmp_path)
    assert isinstance(artifact.open_model(str(tmp_path), None, RUNTIME), Encoder)
    assert artifact.model_fingerprint(str(tmp_path), None) == artifact.model_fingerprint(str(bert), None)


@pytest.mark.parametrize("architectures", [{"a": 1}, 7], ids=str)
def test_a_configuration_whose_architectures_are_no_list_is_refused(
    bert: Path, tmp_path: Path, architectures: object
) -> None:
    shutil.copytree(bert, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "architectures": architectures}))
    with refused(str(file), "`architectures`"):
        artifact.open_model(str(tmp_path), None, RUNTIME)
