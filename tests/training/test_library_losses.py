"""Losses of sentence-transformers by name: their training records, and the library's values."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experiment_files import ExperimentFile
from pydantic import ValidationError
from toy_training import context_in, toy_pairs
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, Triplet
from synthbench.models.artifact import load
from synthbench.models.building import build_encoder
from synthbench.models.interfaces import Encoder
from synthbench.models.pretrained import Pretrained
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.library_losses import LibraryLoss
from synthbench.training.objectives import training_table


def loss(**fields: Any) -> LibraryLoss:
    return LibraryLoss.model_validate(fields)


def triplets(number: int) -> SyntheticDataset:
    words = ["fish", "ship", "star", "moon", "tree", "leaf", "rain"]
    return SyntheticDataset.create(
        RecordKind.TRIPLET,
        [
            Triplet(
                id=str(row),
                anchor=f"{words[row % 7]} {words[row % 5]}",
                positive=f"{words[row % 7]} {words[row % 3]}",
                negative=f"{words[(row + 3) % 7]} {words[row % 2]}",
            )
            for row in range(number)
        ],
    )


def trained(bert: Path, folder: Path, data: SyntheticDataset, **fields: Any) -> np.ndarray[Any, Any]:
    torch.set_num_threads(1)
    settings = {
        "base": {"model": str(bert)},
        "max_steps": 4,
        "batch_size": 6,
        "learning_rate": 1e-2,
        **fields,
    }
    context = context_in(folder)
    BiEncoder.model_validate({**settings, **fields}).train([data], context)
    model = load(context.output, context.runtime)
    assert isinstance(model, Encoder)
    return model.encode(["fish ship", "moon"])


ALL: dict[str, dict[str, Any]] = {
    "cosine": {},
    "cosent": {"temperature": 0.1},
    "angle": {},
    "multiple-negatives": {"learns_from": "triplet"},
    "cached-multiple-negatives": {"chunk_size": 2},
    "gist": {"guide": "bert"},
    "cached-gist": {"guide": "bert", "chunk_size": 2},
    "margin-mse": {"teacher": "bert"},
    "distillation": {"teacher": "bert"},
}


def data_for(name: str) -> SyntheticDataset:
    return toy_pairs(12) if name in ("cosine", "cosent", "angle") else triplets(12)


@pytest.mark.parametrize("name", ALL)
def test_each_loss_trains_an_encoder_reproducibly(bert: Path, tmp_path: Path, name: str) -> None:
    fields = {key: {"model": str(bert)} if value == "bert" else value for key, value in ALL[name].items()}
    made = [trained(bert, tmp_path / turn, data_for(name), loss={"name": name, **fields}) for turn in "ab"]
    assert np.isfinite(made[0]).all()
    assert np.array_equal(*made)
    untouched = build_encoder(Pretrained(model=str(bert)), 1, "cpu").encode(["fish ship", "moon"])
    assert not np.allclose(made[0], untouched, atol=1e-4) or name == "distillation"


def test_the_loss_cosine_equals_the_default_loss(bert: Path, tmp_path: Path) -> None:
    plain = trained(bert, tmp_path / "a", toy_pairs(12))
    assert np.array_equal(plain, trained(bert, tmp_path / "b", toy_pairs(12), loss={"name": "cosine"}))


def test_the_dimensions_of_matryoshka_have_the_librarys_effect(bert: Path, tmp_path: Path) -> None:
    nested = {"name": "multiple-negatives", "dimensions": (16, 8)}
    assert np.isfinite(trained(bert, tmp_path / "a", triplets(12), loss=nested)).all()


def test_more_dimensions_than_the_models_are_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"loss\.dimensions: 99999 is more than the model's 16"):
        trained(bert, tmp_path, toy_pairs(12), loss={"name": "cosine", "dimensions": [8, 99_999]})


def test_the_librarys_loss_gets_the_columns_in_order(bert: Path, tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    context = context_in(tmp_path)
    named = loss(name="cosent", temperature=0.1)
    objective = named.objective(context)
    table = training_table([toy_pairs(6)], objective)
    assert table.column_names == ["sentence1", "sentence2", "score"]
    model = build_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()
    made = objective.loss(model)
    assert type(made) is CoSENTLoss
    scores = torch.tensor(table["score"].to_pylist())
    features = [model.preprocess(table[name].to_pylist()) for name in ("sentence1", "sentence2")]
    with torch.no_grad():
        found = made(features, scores).item()
    first, second = (
        torch.nn.functional.normalize(torch.tensor(model.encode(table[name].to_pylist())))
        for name in ("sentence1", "sentence2")
    )
    cosines = (first * second).sum(1) / 0.1
    # Su 2022: log(1 + sum of exp(cosine i - cosine j) over all i, j where j has the higher score).
    wrong = [(cosines[i] - cosines[j]).exp() for i in range(6) for j in range(6) if scores[i] < scores[j]]
    assert found == pytest.approx(float(torch.log(1 + sum(wrong))), rel=1e-5)


def test_a_teachers_margins_and_vectors_are_the_labels(bert: Path, tmp_path: Path) -> None:
    from synthbench.models.building import build_cross_encoder

    context = context_in(tmp_path)
    named = loss(name="margin-mse", teacher={"model": str(bert)})
    table = named.labelled(training_table([triplets(3)], named.objective(context)), context)
    teacher = build_cross_encoder(Pretrained(model=str(bert)), 0, "cpu")
    rows = list(triplets(3))
    expected = [
        float(
            teacher.predict([(one.anchor, one.positive)])[0]
            - teacher.predict([(one.anchor, one.negative)])[0]
        )
        for one in rows
    ]
    assert table["label"].to_pylist() == pytest.approx(expected, abs=1e-5)
    named = loss(name="distillation", teacher={"model": str(bert)})
    table = named.labelled(training_table([triplets(1)], named.objective(context)), context)
    vector = build_encoder(Pretrained(model=str(bert)), 0, "cpu").encode(table["sentence"].to_pylist()[0])
    assert table["label"].to_pylist()[0] == pytest.approx(vector.tolist(), abs=1e-5)


def with_scores(data: SyntheticDataset) -> SyntheticDataset:
    return data.with_records(
        [
            replace(one, scores=tuple(float(row - 3 * column) for column in range(1 + len(one.negatives))))
            for row, one in enumerate(data)
        ]
    )


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
@pytest.mark.parametrize("further", [(), ("moon rain", "leaf")])
def test_margin_mse_of_scored_triplets_is_the_mean_squared_difference_of_margins(
    bert: Path, tmp_path: Path, similarity: str, further: tuple[str, ...]
) -> None:
    data = with_scores(several(4, further))
    named = loss(name="margin-mse", similarity=similarity)
    context = context_in(tmp_path)
    objective = named.objective(context)
    table = named.labelled(training_table([data], objective), context)
    assert table.column_names[:3] == ["anchor", "positive", "negative"]
    assert table.column_names[-1] == "label"
    model = build_encoder(Pretrained(model=str(bert)), 0, "cpu").eval()
    module = objective.loss(model)
    columns = [
        torch.tensor(model.encode(table[name].to_pylist()), dtype=torch.float64)
        for name in table.column_names[:-1]
    ]
    found = module.compute_loss_from_embeddings(columns, torch.tensor(table["label"].to_pylist())).item()

    def near(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
        norms = 1.0 if similarity == "dot" else np.linalg.norm(one) * np.linalg.norm(other)
        return float(np.dot(one, other) / norms)

    anchors, positives, *negatives = (column.numpy() for column in columns)
    squares = [
        (near(anchors[row], positives[row]) - near(anchors[row], texts[row]) - 3 * (1 + number)) ** 2
        for number, texts in enumerate(negatives)
        for row in range(4)
    ]
    assert found == pytest.approx(float(np.mean(squares)), rel=1e-6)


def test_margin_mse_trains_on_scores_without_a_teacher(bert: Path, tmp_path: Path) -> None:
    made = trained(bert, tmp_path, with_scores(triplets(12)), loss={"name": "margin-mse"})
    assert np.isfinite(made).all()


def test_triplets_without_scores_and_no_teacher_are_refused_with_the_step_that_scores(
    bert: Path, tmp_path: Path
) -> None:
    mixed = triplets(3).with_records([*list(triplets(3))[1:], *list(with_scores(triplets(1)))])
    with refused("2 of 3 triplets", "score-triplets", "teacher"):
        trained(bert, tmp_path, mixed, loss={"name": "margin-mse"})


def several(number: int, further: tuple[str, ...] = ("moon rain",)) -> SyntheticDataset:
    data = triplets(number)
    return data.with_records([replace(one, further_negatives=further) for one in data])


@pytest.mark.parametrize("name", ["multiple-negatives", "margin-mse"])
def test_the_loss_uses_all_negatives_of_a_record(bert: Path, tmp_path: Path, name: str) -> None:
    fields: dict[str, Any] = {"learns_from": "triplet"}
    if name == "margin-mse":
        fields = {"teacher": {"model": str(bert)}}
    one, two = (
        trained(bert, tmp_path / turn, data, loss={"name": name, **fields})
        for turn, data in (("one", triplets(12)), ("two", several(12)))
    )
    assert not np.allclose(one, two, atol=1e-6)


def test_a_teachers_margins_to_several_negatives_are_a_list(bert: Path, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    named = loss(name="margin-mse", teacher={"model": str(bert)})
    objective = named.objective(context)
    table = named.labelled(training_table([several(3)], objective), context)
    one = named.labelled(training_table([triplets(3)], objective), context)
    assert table.column_names == ["anchor", "positive", "negative", "negative2", "label"]
    assert [margins[0] for margins in table["label"].to_pylist()] == pytest.approx(one["label"].to_pylist())


def test_records_with_different_numbers_of_negatives_are_refused(bert: Path, tmp_path: Path) -> None:
    data = triplets(4)
    mixed = data.with_records([*several(1), *list(data)[1:]])
    with refused("loss multiple-negatives", "1 to 2", "simcse"):
        trained(bert, tmp_path, mixed, loss={"name": "multiple-negatives", "learns_from": "triplet"})


def test_a_parts_temperature_divides_the_cosines_of_its_anchors(bert: Path, tmp_path: Path) -> None:
    named = loss(name="multiple-negatives", temperature=0.5)
    context = replace(context_in(tmp_path), temperatures=(1.0, None))
    made = named.objective(context).loss(build_encoder(Pretrained(model=str(bert)), 0, "cpu"))
    # The cosine of an anchor is 1 with its own positive and 0 with the other: a row's loss is
    # log(1 + exp(-1 / temperature)), with temperatures 1 and, of the loss itself, 1/2.
    unit = torch.eye(2)
    found = made.compute_loss_from_embeddings([unit, unit], torch.tensor([1.0, math.nan])).item()
    assert found == pytest.approx((0.313262 + 0.126928) / 2, abs=1e-5)
    assert made.scale == 2.0, "the loss's own is as it was"


@pytest.mark.parametrize("extra", [{}, {"learns_from": "triplet"}, {"dimensions": (16, 8)}])
def test_temperatures_of_parts_reach_the_librarys_loss(
    bert: Path, tmp_path: Path, extra: dict[str, Any]
) -> None:
    torch.set_num_threads(1)
    settings = {"base": {"model": str(bert)}, "max_steps": 3, "batch_size": 6, "learning_rate": 1e-2}
    trainer = BiEncoder.model_validate(
        {**settings, "loss": {"name": "multiple-negatives", "temperature": 0.05, **extra}}
    )
    assert trainer.takes_temperatures
    made = {}
    for name, temperatures in {"none": (), "same": (0.05, None), "other": (1.0, None)}.items():
        context = replace(context_in(tmp_path / name), temperatures=temperatures)
        trainer.train([triplets(12), triplets(7)], context)
        model = load(context.output, context.runtime)
        assert isinstance(model, Encoder)
        made[name] = model.encode(["fish ship", "moon"])
    assert np.allclose(made["none"], made["same"], atol=1e-5)
    assert not np.allclose(made["none"], made["other"], atol=1e-4)


def test_other_losses_accept_no_part_temperature() -> None:
    base = {"model": "m"}
    assert not BiEncoder(base=base).takes_temperatures
    assert not BiEncoder(base=base, loss={"name": "cosent"}).takes_temperatures


def test_both_orders_needs_scored_pairs() -> None:
    with pytest.raises(ValidationError, match="both_orders needs scored pairs; loss multiple-negatives"):
        BiEncoder.model_validate(
            {"base": {"model": "m"}, "both_orders": True, "loss": {"name": "multiple-negatives"}}
        )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "gist"}, "loss gist needs `guide`"),
        ({"name": "distillation"}, "loss distillation needs `teacher`"),
        ({"name": "cosine", "similarity": "cosine"}, "loss cosine takes no `similarity`"),
        ({"name": "cosent", "guide": {"model": "m"}}, "loss cosent takes no `guide`"),
        ({"name": "gist", "guide": {"model": "m", "prompts": {"query": "q: "}}}, "leave out guide.prompts"),
        ({"name": "cosine", "temperature": 0.1}, "loss cosine takes no `temperature`"),
        ({"name": "angle", "learns_from": "triplet"}, "learns from scored_pair records"),
        ({"name": "cached-gist", "guide": {"model": "m"}, "dimensions": (8,)}, "takes no `dimensions`"),
        ({"name": "cosine", "dimensions": (8, 0)}, r"dimensions\.1\n.*greater than or equal to 1"),
    ],
)
def test_conflicting_options_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        loss(**fields)


def test_a_loss_that_does_not_fit_the_records_names_the_losses_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = loss(name="margin-mse", teacher={"model": "m"}).obstacle(RecordKind.PAIR)
    assert "losses that fit pair records: cosine, cosent, angle, multiple-negatives" in found
    assert "margin-mse" not in found.split("records: ")[1]
    assert loss(name="cosent").obstacle(RecordKind.SCORED_PAIR) == ""


def test_a_file_with_an_unsuitable_loss_is_refused_with_the_parts_line(tmp_path: Path) -> None:
    experiment = ExperimentFile(tmp_path)
    experiment.change("trainer: fake", "trainer: bi-encoder\n    loss: {name: multiple-negatives}")
    experiment.change("    strength: 0.5\n", "").change(
        "gold: {file: gold.tsv, kind: scored_pair}", "gold: {file: gold.txt}"
    )
    (tmp_path / "gold.txt").write_text("A dog.\n")
    faults = [fault for fault in experiment.faults() if "multiple-negatives" in fault]
    worded(faults, "data.gold", "sentence", "distillation")
