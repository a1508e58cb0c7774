from pathlib import Path

import pytest
from pydantic import ValidationError
from toy_training import context_in, toy_pairs
from wording import refused

from synthbench.models.artifact import load
from synthbench.models.building import build_cross_encoder
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.pretrained import Pretrained
from synthbench.training.untrained import ReadyCrossEncoder, Untrained


def test_the_pretrained_model_is_returned_unchanged(bert: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    context = context_in(tmp_path)
    summary = Untrained(base={"model": str(bert)}).train([], context)
    assert (summary.num_steps, summary.num_records, summary.history) == (0, 0, ())
    encoder = load(context.output, context.runtime)
    assert isinstance(encoder, Encoder)
    sentences = ["fish0 fish1", "ship3"]
    expected = SentenceTransformer(str(bert), device="cpu").encode(sentences)
    assert encoder.encode(sentences) == pytest.approx(expected, abs=1e-5)


def test_an_untrained_model_refuses_data(bert: Path, tmp_path: Path) -> None:
    with refused("3"):
        Untrained(base={"model": str(bert)}).train([toy_pairs(3)], context_in(tmp_path))


def test_the_identity_includes_the_content_of_the_base(bert: Path) -> None:
    revisions = Untrained(base={"model": str(bert)}).revisions()
    assert list(revisions) == [str(bert)]
    assert len(revisions[str(bert)]) == 64


def test_a_setting_of_other_trainers_is_refused(bert: Path) -> None:
    with refused("inputs", kind=ValidationError):
        Untrained(base={"model": str(bert)}, epochs=1)


def test_a_pretrained_cross_encoder_is_returned_unchanged(bert: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    model = build_cross_encoder(Pretrained(model=str(bert)), 3, "cpu")
    model.save(str(ready))
    context = context_in(tmp_path)
    ReadyCrossEncoder(base={"model": str(ready)}).train([], context)
    scorer = load(context.output, context.runtime)
    assert isinstance(scorer, PairScorer)
    pairs = [("fish0 fish1", "ship3"), ("ship3", "ship3")]
    assert scorer.score(pairs) == pytest.approx(model.predict(pairs), abs=1e-5)


def test_a_model_without_a_head_is_no_cross_encoder(bert: Path, tmp_path: Path) -> None:
    with refused("no head that scores pairs", "`cross-encoder` trains one"):
        ReadyCrossEncoder(base={"model": str(bert)}).train([], context_in(tmp_path))
    with refused("static", kind=ValidationError):
        ReadyCrossEncoder(base={"model": str(bert), "static": True})
    with refused("none-cross-encoder", "3"):
        ReadyCrossEncoder(base={"model": str(bert)}).train([toy_pairs(3)], context_in(tmp_path))
