import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_training import (
    TRAINERS,
    RecordedProgress,
    context_in,
    largest_difference,
    spearman,
    toy_pairs,
    weights,
)
from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.models.building import build_encoder
from synthbench.models.interfaces import PairScorer
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training import loop
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.settings import TrainingSettings

DEV = toy_pairs(30, seed=1)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trainer(kind: str, bert: Path, **fields: Any) -> TrainingSettings:
    settings = {"base": {"model": str(bert)}, "learning_rate": 1e-3, "batch_size": 8, **fields}
    made = TRAINERS[kind](**settings)
    assert isinstance(made, TrainingSettings)
    return made


def static(bert: Path, **fields: Any) -> TrainingSettings:
    base = {"model": str(bert), "static": True}
    return trainer("bi-encoder", bert, **{"base": base, "learning_rate": 1e-2, **fields})


def losses(summary: TrainingSummary) -> list[float]:
    return [value for _, name, value in summary.history if name == "loss"]


def dev_scores(summary: TrainingSummary) -> dict[int, float]:
    return {step: value for step, name, value in summary.history if name == "dev_score"}


class Peak:
    """A selection with predetermined scores."""

    def __init__(self, *scores: float) -> None:
        self.scores = iter(scores)

    def __call__(self, scorer: PairScorer) -> float:
        return next(self.scores)


def test_an_encoder_learns_and_its_dev_score_rises(bert: Path, tmp_path: Path) -> None:
    context = context_in(tmp_path, select=lambda scorer: spearman(scorer, DEV))
    summary = static(bert, epochs=6).train([toy_pairs(100)], context)
    assert statistics.mean(losses(summary)[-10:]) < 0.2 * statistics.mean(losses(summary)[:3])
    assert summary.dev_score is not None
    assert summary.dev_score > 0.9


def test_a_cross_encoder_learns(bert: Path, tmp_path: Path) -> None:
    pairs = [
        ScoredPair(
            id=f"{topic}-{word}", sentence1=f"{topic}{word % 6}", sentence2=f"star{word % 5}", score=score
        )
        for word in range(30)
        for topic, score in {"fish": 1.0, "ship": 0.0}.items()
    ]
    data = SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)
    summary = trainer("cross-encoder", bert, epochs=8, learning_rate=5e-3).train([data], context_in(tmp_path))
    assert losses(summary)[0] == pytest.approx(math.log(2), abs=0.05)
    assert statistics.mean(losses(summary)[-10:]) < 0.55


def test_the_summary_holds_the_curves_of_the_training(bert: Path, tmp_path: Path) -> None:
    context = context_in(tmp_path, select=Peak(0.1, 0.2))
    summary = static(bert, max_steps=10, evaluations=2).train([toy_pairs(20), toy_pairs(4, seed=1)], context)
    assert (summary.num_steps, summary.num_records) == (10, 24)
    assert dev_scores(summary) == {5: 0.1, 10: 0.2}
    assert [step for step, name, _ in summary.history if name == "loss"] == list(range(1, 11))
    assert isinstance(context.progress, RecordedProgress)
    assert (context.progress.total, context.progress.done) == (10, 10)


@pytest.mark.parametrize("kind", ["bi-encoder", "cross-encoder"])
def test_an_epoch_in_both_orders_contains_each_gold_pair_twice(kind: str, bert: Path, tmp_path: Path) -> None:
    settings = trainer(kind, bert, both_orders=True)
    data = [toy_pairs(16), toy_pairs(8, seed=1, method="augsbert")]
    assert settings.train(data, context_in(tmp_path)).num_steps == (16 + 16 + 8) / 8


def test_without_a_selection_no_evaluation_runs(bert: Path, tmp_path: Path) -> None:
    summary = static(bert, max_steps=4).train([toy_pairs(20)], context_in(tmp_path))
    assert (summary.best_step, summary.dev_score, dev_scores(summary)) == (None, None, {})


def test_training_prints_nothing(bert: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    static(bert, max_steps=4).train([toy_pairs(20)], context_in(tmp_path, select=Peak(*range(4))))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_seed_determines_the_model(kind: str, bert: Path, tmp_path: Path) -> None:
    settings, data = trainer(kind, bert, max_steps=6), [toy_pairs(40)]
    for name, seed in {"first": 7, "again": 7, "other": 8}.items():
        settings.train(data, context_in(tmp_path / name, seed=seed))
    assert largest_difference(tmp_path / "first", tmp_path / "again") == 0
    assert largest_difference(tmp_path / "first", tmp_path / "other") > 1e-4


def test_training_neither_uses_nor_changes_the_global_random_state(bert: Path, tmp_path: Path) -> None:
    settings, data = trainer("bi-encoder", bert, max_steps=3), [toy_pairs(40)]
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.rand(), torch.rand(1).item()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    settings.train(data, context_in(tmp_path / "first"))
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
    settings.train(data, context_in(tmp_path / "second"))
    assert largest_difference(tmp_path / "first", tmp_path / "second") == 0


def test_evaluating_does_not_change_the_training(bert: Path, tmp_path: Path) -> None:
    def waste_random_numbers(scorer: PairScorer) -> float:
        torch.rand(10), np.random.rand(10)
        return spearman(scorer, DEV)

    data = [toy_pairs(40)]
    settings = trainer("bi-encoder", bert, max_steps=6, evaluations=1, max_length=4)
    settings.train(data, context_in(tmp_path / "watched", select=waste_random_numbers))
    often = settings.model_copy(update={"evaluations": 6})
    often.train(data, context_in(tmp_path / "often", select=Peak(1, 2, 3, 4, 5, 6)))
    settings.train(data, context_in(tmp_path / "alone"))
    assert largest_difference(tmp_path / "watched", tmp_path / "alone") == 0
    assert largest_difference(tmp_path / "often", tmp_path / "alone") == 0


@pytest.mark.parametrize(
    ("scores", "best"), [((0.1, 0.9, 0.3, 0.9), 4), ((0.1, float("nan"), 0.3, 0.2), 6), ((1, 2, 3, 4), 8)]
)
def test_the_best_checkpoint_is_retained_and_the_first_one_in_a_tie(
    scores: tuple[float, ...], best: int, bert: Path, tmp_path: Path
) -> None:
    settings, data = trainer("bi-encoder", bert, max_steps=8, evaluations=4), [toy_pairs(40)]
    summary = settings.train(data, context_in(tmp_path / "selected", select=Peak(*scores)))
    assert (summary.best_step, summary.dev_score) == (best, scores[best // 2 - 1])
    stopped = settings.model_copy(update={"max_steps": best})
    stopped.train(data, context_in(tmp_path / "stopped"))
    assert largest_difference(tmp_path / "selected", tmp_path / "stopped") == 0


def test_an_always_undefined_dev_score_selects_no_checkpoint(bert: Path, tmp_path: Path) -> None:
    settings = static(bert, max_steps=2, evaluations=2)
    summary = settings.train([toy_pairs(20)], context_in(tmp_path, select=Peak(float("nan"), float("nan"))))
    assert (summary.best_step, summary.dev_score) == (None, None)


def test_old_checkpoints_are_deleted_but_not_the_best(bert: Path, tmp_path: Path) -> None:
    settings = static(bert, max_steps=8, evaluations=4)
    settings.train([toy_pairs(20)], context_in(tmp_path, select=Peak(0.1, 0.9, 0.3, 0.2)))
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"checkpoint-4", "checkpoint-8"}


def test_a_loss_that_is_not_finite_ends_the_training(bert: Path, tmp_path: Path) -> None:
    settings = static(bert, max_steps=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            torch.nn.MSELoss, "forward", lambda _, cosine, score: (cosine - score).sum() * torch.nan
        )
        with refused("1"):
            settings.train([toy_pairs(20)], context_in(tmp_path))


def test_inputs_are_truncated_in_training_only(bert: Path, tmp_path: Path) -> None:
    lengths = []

    def select(scorer: PairScorer) -> float:
        lengths.append(scorer._encoder.model.max_seq_length)  # type: ignore[attr-defined]
        return 0.0

    settings = trainer("bi-encoder", bert, max_steps=3, max_length=3)
    settings.train([toy_pairs(40)], context_in(tmp_path / "short", select=select))
    assert set(lengths) == {32}
    for name, max_length in {"full": None, "0 for full": 0, "too long for the base": 1000}.items():
        longer = settings.model_copy(update={"max_length": max_length})
        longer.train([toy_pairs(40)], context_in(tmp_path / name))
    assert largest_difference(tmp_path / "full", tmp_path / "0 for full") == 0
    assert largest_difference(tmp_path / "full", tmp_path / "too long for the base") == 0
    assert largest_difference(tmp_path / "full", tmp_path / "short") > 1e-5


def test_the_saved_encoder_loads_and_is_the_evaluated_one(bert: Path, tmp_path: Path) -> None:
    from synthbench.models.artifact import load

    context = context_in(tmp_path, select=lambda scorer: spearman(scorer, DEV))
    summary = trainer("bi-encoder", bert, max_steps=12).train([toy_pairs(100)], context)
    from synthbench.models.interfaces import Encoder
    from synthbench.models.pair_scorer import CosineScorer

    encoder = load(context.output, context.runtime)
    assert isinstance(encoder, Encoder)
    assert spearman(CosineScorer(encoder), DEV) == pytest.approx(summary.dev_score, abs=1e-6)


@pytest.mark.parametrize("settings", [{}, {"hidden_size": 7}])
def test_the_saved_cross_encoder_loads_and_is_the_evaluated_one(
    settings: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    from synthbench.models.artifact import load

    context = context_in(tmp_path, select=lambda scorer: spearman(scorer, DEV))
    summary = trainer("cross-encoder", bert, max_steps=12, **settings).train([toy_pairs(100)], context)
    scorer = load(context.output, context.runtime)
    assert isinstance(scorer, PairScorer)
    assert spearman(scorer, DEV) == pytest.approx(summary.dev_score, abs=1e-6)


def test_bf16_training_stores_weights_in_fp32(bert: Path, tmp_path: Path) -> None:
    for precision in ("fp32", "bf16"):
        settings = trainer("bi-encoder", bert, max_steps=4, precision=precision)
        settings.train([toy_pairs(40)], context_in(tmp_path / precision))
    assert {tensor.dtype for tensor in weights(tmp_path / "bf16").values()} == {torch.float32}
    assert 0 < largest_difference(tmp_path / "fp32", tmp_path / "bf16") < 0.1


def test_an_unknown_device_is_a_clear_error(bert: Path, tmp_path: Path) -> None:
    context = context_in(tmp_path, runtime={"device": "cuda:99"})
    with refused("'cuda:99'"):
        static(bert).train([toy_pairs(4)], context)


def test_the_learning_rate_schedule_is_the_configured_one(bert: Path, tmp_path: Path) -> None:
    from synthbench.training.objectives import COSINE_SIMILARITY, training_table

    rates: dict[str, list[float]] = {}
    for scheduler in ("constant", "linear"):
        settings = static(bert, max_steps=8, learning_rate=0.01, scheduler=scheduler, warmup_ratio=0.5)
        model = build_encoder(settings.base, 0, "cpu")
        job = loop.TrainingJob(
            model,
            COSINE_SIMILARITY.loss(model),
            training_table([toy_pairs(20)], COSINE_SIMILARITY),
        )
        rates[scheduler] = recorded_rates(job, settings, context_in(tmp_path / scheduler))
    assert rates["constant"] == pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01, 0.01])
    assert rates["linear"] == pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01, 0.0075, 0.005, 0.0025])


def recorded_rates(
    job: loop.TrainingJob, settings: TrainingSettings, context: TrainingContext
) -> list[float]:
    """Return the learning rate that the optimiser used in each step."""
    used: list[float] = []
    step = torch.optim.AdamW.step

    def recording_step(self: torch.optim.AdamW, *arguments: Any, **keywords: Any) -> Any:
        used.append(float(self.param_groups[0]["lr"]))
        return step(self, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", recording_step)
        loop.fit(job, settings, context)
    return used


def test_the_entry_point_loads_the_bi_encoder() -> None:
    from synthbench.plugins.loading import component

    assert component("trainers", "bi-encoder") is BiEncoder
