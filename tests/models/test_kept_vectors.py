"""Interrupted encodings: stored vectors are reused; mismatching ones are dropped and encoded again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import Lines
from hub_cache import SENTENCES

from synthbench.models import encoder as encoder_module
from synthbench.models.batching import TokenisedTexts
from synthbench.models.building import build_encoder
from synthbench.models.encoder import LengthBatchedEncoder, StoredVectors
from synthbench.models.pretrained import Pretrained

TEXTS = [*SENTENCES[:40:3], *(" ".join(["the dog"] * number) for number in range(1, 20))]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that are encoded, each of which is written at once."""
    sizes: list[int] = []
    features = TokenisedTexts.features

    def counted(texts: TokenisedTexts, indices: Sequence[int], *arguments: Any) -> Any:
        sizes.append(len(indices))
        return features(texts, indices, *arguments)

    monkeypatch.setattr(TokenisedTexts, "features", counted)
    monkeypatch.setattr(encoder_module, "SECONDS_BETWEEN_FILES", 0.0)
    return sizes


@pytest.fixture
def encoder(bert: Path) -> LengthBatchedEncoder:
    return LengthBatchedEncoder(build_encoder(Pretrained(model=str(bert)), 0, "cpu"), batch_tokens=64)


def test_only_missing_vectors_are_encoded_and_batches_stay_the_same(
    encoder: LengthBatchedEncoder, asked: list[int], tmp_path: Path
) -> None:
    whole = encoder.encode(TEXTS)
    batches = asked.copy()
    encoder.with_stored(StoredVectors(tmp_path, "model")).encode(TEXTS)
    files = sorted(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert len(files) == len(batches) > 4
    for file in files[2:]:
        file.unlink()
    asked.clear()
    lines = Lines()
    encoder = LengthBatchedEncoder(encoder.model, 64, lines, StoredVectors(tmp_path, "model"))
    resumed = encoder.encode(TEXTS)
    assert asked == batches[2:]
    assert lines.said == [f"{sum(batches[:2])} of {len(TEXTS)} sentences were encoded earlier"]
    assert lines.counts["encode"].total == lines.counts["encode"].done == sum(asked)
    assert resumed.tobytes() == whole.tobytes()


def test_a_damaged_file_is_reported_dropped_and_rebuilt(
    encoder: LengthBatchedEncoder, asked: list[int], tmp_path: Path
) -> None:
    whole = encoder.with_stored(StoredVectors(tmp_path, "model")).encode(TEXTS)
    flipped, torn = sorted(tmp_path.iterdir())[:2]
    content = bytearray(flipped.read_bytes())
    content[-200] ^= 1
    flipped.write_bytes(content)
    torn.write_bytes(torn.read_bytes()[:100])
    (tmp_path / "killed.partial").write_bytes(b"half a fi")
    asked.clear()
    lines = Lines()
    again = encoder.with_stored(StoredVectors(tmp_path, "model", progress=lines)).encode(TEXTS)
    assert again.tobytes() == whole.tobytes()
    assert len(asked) == 2
    assert lines.said == [f"{file} is damaged: its sentences are encoded again" for file in (flipped, torn)]


@pytest.mark.usefixtures("asked")
def test_files_that_another_process_deletes_are_passed_over(
    encoder: LengthBatchedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder.with_stored(StoredVectors(tmp_path, "model")).encode(TEXTS)
    first, *others = sorted(tmp_path.iterdir())
    first.write_bytes(b"damaged")
    (tmp_path / "gone.npz").symlink_to(tmp_path / "nothing")
    read = Path.read_bytes

    def read_then_deleted(file: Path) -> bytes:
        content = read(file)
        if file == first:
            file.unlink()
        return content

    monkeypatch.setattr(Path, "read_bytes", read_then_deleted)
    rows, _ = StoredVectors(tmp_path, "model").find(TEXTS)
    assert 0 < len(rows) < len(TEXTS)
    assert all(file.exists() for file in others)


def test_vectors_of_another_model_are_not_used(
    encoder: LengthBatchedEncoder, asked: list[int], tmp_path: Path
) -> None:
    encoder.with_stored(StoredVectors(tmp_path, "model")).encode(TEXTS)
    asked.clear()
    encoder.with_stored(StoredVectors(tmp_path, "another model")).encode(TEXTS)
    assert sum(asked) == len(TEXTS)


def test_vector_files_of_other_folders_are_read_only(
    encoder: LengthBatchedEncoder, asked: list[int], tmp_path: Path
) -> None:
    encoder.with_stored(StoredVectors(tmp_path / "one", "model")).encode(TEXTS[:10])
    before = sorted((tmp_path / "one").iterdir())
    asked.clear()
    kept = StoredVectors(tmp_path / "other", "model", [tmp_path / "one", tmp_path / "none"])
    encoder.with_stored(kept).encode(TEXTS)
    assert sum(asked) == len(TEXTS) - 10
    assert sorted((tmp_path / "one").iterdir()) == before


def test_encoding_with_a_static_model_can_be_resumed(bert: Path, tmp_path: Path) -> None:
    base = Pretrained(model=str(bert), static=True)
    encoder = LengthBatchedEncoder(build_encoder(base, 0, "cpu"))
    whole = encoder.with_stored(StoredVectors(tmp_path, "model")).encode(TEXTS)
    assert whole == pytest.approx(encoder.model.encode(TEXTS), abs=1e-5)
    encoder.model.encode = None
    assert encoder.with_stored(StoredVectors(tmp_path, "model")).encode(TEXTS).tobytes() == whole.tobytes()
    assert np.isfinite(whole).all()
