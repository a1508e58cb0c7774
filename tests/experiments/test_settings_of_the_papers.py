"""Settings that the papers and their code have, as rows of the experiment files really get them."""

from collections.abc import Iterator

import pytest
from shipped_files import SHIPPED

from synthbench.config.experiment import RunConfig
from synthbench.config.load import load_experiment
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.settings import Every
from synthbench.training.simcse import SimCSE
from synthbench_augsbert import AugSBERT, ContextualSubstitution
from synthbench_augsbert.samplers import NeighbourSampler


def rows(name: str) -> Iterator[tuple[str, dict[str, str], RunConfig]]:
    """Yield name, axis values and settings of each row of an experiment file."""
    for variant in load_experiment(SHIPPED[name]).variants:
        yield variant.name, dict(variant.axes), variant.candidates[0].config


@pytest.mark.parametrize("name", ["syncse_table2", "syncse_table3", "syncse_table6", "syncse_table7"])
def test_simcse_has_the_papers_learning_rates_with_and_without_labels(name: str) -> None:
    rates = {(True, "base"): 1e-5, (True, "large"): 3e-5, (False, "base"): 5e-5, (False, "large"): 1e-5}
    found = set()
    for row, axes, config in rows(name):
        assert isinstance(config.trainer, SimCSE)
        is_unsupervised = row == "unsup-simcse"
        assert config.trainer.learning_rate == rates[is_unsupervised, axes["base"]]
        assert config.trainer.evaluations == Every(every=125 if is_unsupervised else 25)
        found.add((is_unsupervised, axes["base"]))
    assert found == rates.keys()


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("table2_ablation", "dino-x2"),
        ("dino_table1", "dino-x2"),
        ("dino_table5", "dino-x2"),
        ("syncse_table4", "dino"),
        ("released_data", "dino-x2"),
        ("released_data", "dino-x1x2-raw"),
    ],
)
def test_dino_is_scored_on_its_dev_part_every_100_steps(name: str, row: str) -> None:
    (config,) = (config for found, _, config in rows(name) if found == row)
    assert getattr(config.trainer, "evaluations", None) == Every(every=100)


def test_released_data_are_trained_with_the_settings_of_the_papers_tables() -> None:
    trainers = {name: config.trainer for name, _, config in rows("released_data")}
    simcse = next(
        config for name, axes, config in rows("syncse_table2") if (name, axes["base"]) == ("scratch", "base")
    )
    dino = next(config for name, _, config in rows("dino_table1") if name == "dino-x2")
    claif = next(
        config for name, axes, config in rows("claif_sts") if (name, axes["base"]) == ("claif", "roberta")
    )
    # The script of the authors trains BERT with CLS pooling; their RoBERTa is scored with mean pooling.
    clhaif = next(config for name, _, config in rows("clhaif_nli") if name == "clhaif").trainer
    assert clhaif is not None
    changed = {"base": simcse.trainer.base, "pooling": "mean"}
    assert trainers == {
        **dict.fromkeys(("claif", "claif-scaled"), claif.trainer),
        "clhaif": clhaif.model_copy(update=changed),
        **dict.fromkeys(("syncse-scratch", "syncse-partial"), simcse.trainer),
        **dict.fromkeys(("dino-x2", "dino-x1x2", "dino-x2-raw", "dino-x1x2-raw"), dino.trainer),
    }


def order(config: RunConfig) -> tuple[bool, bool | None]:
    """Return whether a row's model, and its labeller if it has one, read gold pairs in both orders."""
    labellers = [getattr(part.method, "cross_encoder", None) for part in config.parts if part.method]
    labeller = next((bool(settings.get("both_orders")) for settings in labellers if settings), None)
    return bool(getattr(config.trainer, "both_orders", False)), labeller


def test_augsbert_reads_gold_pairs_in_both_orders_where_the_released_examples_do() -> None:
    found = {name: order(config) for name, _, config in rows("augsbert_table5")}
    assert found == {
        **dict.fromkeys(("Baseline", "SBERT", "SBERT-lower-bound", "SBERT-NLPAug"), (False, None)),
        **dict.fromkeys(("BERT", "BERT-upper-bound"), (True, None)),
        **{f"AugSBERT-{name}": (True, True) for name in ("RS", "KDE", "BM25", "SS", "BM25-SS")},
    }
    for name, _, config in rows("augsbert_table9_10"):
        assert order(config) == (True, True), name
    for name, _, config in rows("augsbert_table6"):
        assert order(config) == (False, True if name.startswith("AugSBERT") else None), name


@pytest.mark.parametrize("name", ["augsbert_table5", "augsbert_table5_paper_k", "augsbert_table9_10"])
def test_augsberts_neighbours_are_directed_pairs_that_are_scored_in_their_own_order(name: str) -> None:
    for row, _, config in rows(name):
        for part in config.parts:
            if isinstance(part.method, AugSBERT):
                has_neighbours = isinstance(part.method.sampler, NeighbourSampler)
                assert getattr(part.method.sampler, "directed", False) == has_neighbours, row
                assert part.method.both_orders != has_neighbours, row


def test_sbert_nlpaug_inserts_at_most_ten_words() -> None:
    found = next(config for name, _, config in rows("augsbert_table5") if name == "SBERT-NLPAug")
    (method,) = (part.method for part in found.parts if part.method)
    assert isinstance(method, ContextualSubstitution)
    assert (method.action, method.max_words, method.share) == ("insert", 10, 0.3)


def test_augsbert_across_domains_has_a_row_with_the_released_loss() -> None:
    found = next(config for name, _, config in rows("augsbert_table6") if name == "AugSBERT-released-loss")
    assert isinstance(found.trainer, SimCSE)
    assert (found.trainer.learns_from, found.trainer.positives_from) == ("pair", 0.5)
    assert (found.trainer.pooling, found.trainer.temperature) == ("mean", 0.05)


def test_gpls_qgen_is_trained_and_searched_as_in_the_released_code() -> None:
    found = next(config for name, _, config in rows("gpl_scifact") if name == "qgen")
    assert isinstance(found.trainer, BiEncoder)
    settings = (found.trainer.batch_size, found.trainer.epochs, found.trainer.warmup_ratio)
    assert settings == (75, 1.0, 0.1)
    assert [each.evaluator.similarity for each in found.evaluations] == ["cosine"]


def test_multicsr_has_the_loss_of_its_code_in_all_rows_but_ours() -> None:
    for name, _, config in rows("multicsr_sts"):
        assert isinstance(config.trainer, SimCSE)
        is_ours = name in ("cross-entropy", "soft-labels")
        assert (config.trainer.loss == "binary") != is_ours, name
        if config.trainer.false_negatives:
            assert config.trainer.false_negatives.as_zero != is_ours, name
