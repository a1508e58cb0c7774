import json
from pathlib import Path

import pytest
from hub_cache import SENTENCES
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.models import artifact
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.pretrained import Pretrained

RUNTIME = Runtime(device="cpu")
TEXTS = list(SENTENCES[:6])
PAIRS = list(zip(TEXTS[:3], TEXTS[3:], strict=True))


@pytest.mark.parametrize("changes", [{"pooling": "cls"}, {"static": True}, {"num_layers": 1}], ids=str)
def test_a_saved_encoder_loads_unchanged(bert: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    model = build_encoder(Pretrained.model_validate({"model": str(bert), **changes}), 3, "cpu")
    artifact.save_model(model, tmp_path)
    loaded = artifact.load(tmp_path, RUNTIME)
    assert isinstance(loaded, Encoder)
    assert artifact.model_kind(tmp_path) is ModelKind.ENCODER
    assert loaded.encode(TEXTS) == pytest.approx(model.encode(TEXTS), abs=1e-5)


def test_a_saved_encoder_is_an_ordinary_sentence_transformer(bert: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = build_encoder(Pretrained(model=str(bert), pooling="cls"), 3, "cpu")
    artifact.save_model(model, tmp_path)
    again = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert again.encode(TEXTS) == pytest.approx(model.encode(TEXTS), abs=1e-6)


def test_a_saved_cross_encoder_loads_unchanged(bert: Path, tmp_path: Path) -> None:
    model = build_cross_encoder(Pretrained(model=str(bert)), 3, "cpu")
    artifact.save_model(model, tmp_path)
    loaded = artifact.load(tmp_path, RUNTIME)
    assert isinstance(loaded, PairScorer)
    assert loaded.score(PAIRS) == pytest.approx(model.predict(PAIRS), abs=1e-5)


def test_an_untrained_model_is_stored_only_as_a_reference(bert: Path, tmp_path: Path) -> None:
    base = Pretrained(model=str(bert), static=True, static_dimension=8)
    artifact.save_untrained(base, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    loaded = artifact.load(tmp_path, RUNTIME)
    assert isinstance(loaded, Encoder)
    assert (loaded.encode(TEXTS) == build_encoder(base, 0, "cpu").encode(TEXTS)).all()
    assert artifact.fingerprint(tmp_path) == base.fingerprint()


def test_the_description_states_kind_and_origin(bert: Path, tmp_path: Path) -> None:
    artifact.save_untrained(Pretrained(model=str(bert)), tmp_path, ModelKind.PAIR_SCORER)
    described = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert described["kind"] == "pair_scorer"
    assert described["pretrained"]["model"] == str(bert)


def test_an_ordinary_folder_is_no_artifact(tmp_path: Path) -> None:
    with refused("model.json"):
        artifact.load(tmp_path, RUNTIME)


def test_an_artifact_without_weights_is_refused(bert: Path, tmp_path: Path) -> None:
    artifact.save_model(build_encoder(Pretrained(model=str(bert)), 0, "cpu"), tmp_path)
    (tmp_path / "model" / "model.safetensors").unlink()
    with refused("weights"):
        artifact.load(tmp_path, RUNTIME)


def test_an_unknown_device_is_a_user_error(bert: Path, tmp_path: Path) -> None:
    artifact.save_untrained(Pretrained(model=str(bert)), tmp_path)
    with refused("'gpu'"):
        artifact.load(tmp_path, Runtime(device="gpu"))
