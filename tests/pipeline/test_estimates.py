"""What a stage takes: by its model's size, then by what such stages took before; unknown is a value."""

import json
from collections import Counter
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import Data

from synthbench.base.durability import read_sealed, write_sealed
from synthbench.base.runtime import Runtime
from synthbench.data.records import RecordKind
from synthbench.engine.progress import duration
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.costs import Time
from synthbench.estimates.estimator import Estimator, Past, Timed, estimator_for, predict
from synthbench.estimates.facts import ArtifactFacts, Known, Piece, work_of
from synthbench.estimates.machine import CPU, Machine, this_machine
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work, reading, shape_of, training
from synthbench.pipeline.planning import make_plan
from synthbench.plugins.loading import component

MACHINE = Machine(CPU, 1, 50e9)
RUNTIME = Runtime(device="cpu", threads=1)


def test_a_models_size_is_told_by_its_configuration_or_by_what_was_published_of_it(tmp_path: Path) -> None:
    config = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 128}))
    (tmp_path / "model.safetensors").touch()
    shape = shape_of(str(tmp_path))
    assert shape is not None
    assert shape.layer_parameters == 2 * (4 * 64**2 + 2 * 64 * 128)
    base, multilingual = shape_of("bert-base-uncased"), shape_of("google-bert/bert-base-multilingual-cased")
    assert base is not None
    assert multilingual is not None
    assert base.layer_parameters == multilingual.layer_parameters == 84_934_656
    assert shape_of("some-org/some-model") is None


@pytest.mark.parametrize("text", ["", "[1]", '{"hidden_size": "wide"}', '{"hidden_size": 8}'])
def test_a_configuration_that_tells_no_size_makes_it_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "model.safetensors").touch()
    assert reading(Pretrained(model=str(tmp_path)), 10).operations is None


def test_a_larger_model_takes_longer_and_training_takes_three_times_as_long_as_reading() -> None:
    small, large = (
        training(Pretrained(model=name), 100, sentences_per_step=32, num_dev=0)
        for name in ("bert-base-uncased", "bert-large-uncased")
    )
    assert small.operations is not None
    assert large.operations is not None
    assert 3 < large.operations / small.operations < 4
    read = reading(Pretrained(model="bert-base-uncased"), 100 * 32).operations
    assert read is not None
    assert 3 < small.operations / read < 4.5


def test_fewer_layers_and_static_embeddings_are_less_work() -> None:
    whole = reading(Pretrained(model="bert-base-uncased"), 10).operations
    half = reading(Pretrained(model="bert-base-uncased", num_layers=6), 10)
    static = reading(Pretrained(model="bert-base-uncased", static=True), 10)
    assert half.operations == (whole or 0) / 2
    assert static.operations == 0
    assert len({half.model, static.model, "bert-base-uncased"}) == 3


def test_what_such_a_stage_took_before_counts_more_than_its_operations() -> None:
    past, key = Past(), ("train", "simcse", "m")
    assert past.seconds(key, 10.0, 5.0) is None
    past.stored[key] = [Timed(predicted=20.0, amount=10.0, seconds=60.0)]
    assert past.seconds(key, 10.0, 5.0) == 30.0
    assert past.seconds(key, None, 5.0) == 30.0
    assert past.seconds(key, None, None) == 60.0
    assert past.seconds(("train", "simcse", "other"), 10.0, 5.0) is None


def test_stages_of_this_run_count_more_than_those_of_earlier_ones_and_near_sizes_more_than_far() -> None:
    past, key = Past(), ("train", "simcse", "m")
    past.stored[key] = [Timed(1.0, 1.0, 100.0)]
    past.own[key] = [Timed(10.0, 10.0, 20.0) for _ in range(5)] + [Timed(1000.0, 1000.0, 1000.0)]
    assert past.seconds(key, 10.0, 10.0) == 20.0


def test_a_training_takes_as_many_steps_as_its_parts_weigh() -> None:
    settings = {"base": {"model": "gpt2"}, "epochs": 1, "batch_size": 10}
    plugin = component("trainers", "bi-encoder").model_validate(settings)
    inputs = {f"data:{index}": ArtifactFacts(num_records=100) for index in range(2)}
    steps = [
        work_of(Piece("train", "bi-encoder", config, plugin, inputs)).calls  # type: ignore[union-attr]
        for config in ({}, {"weights": [2.0, 0.5]})
    ]
    assert steps == [20, 25]


def test_weights_are_those_of_the_parts_by_number_and_rows_are_counted_as_they_are_drawn() -> None:
    settings = {"base": {"model": "gpt2"}, "epochs": 1, "batch_size": 1}
    plugin = component("trainers", "bi-encoder").model_validate(settings)
    # By name, data:10 comes before data:2.
    inputs = {f"data:{index}": ArtifactFacts(num_records=5) for index in (0, 1, 10, *range(2, 10))}
    work = work_of(Piece("train", "bi-encoder", {"weights": [0.3, 0.3, *[1.0] * 8, 5.0]}, plugin, inputs))
    assert work is not None
    # Of 5 records 0.3 are 2 each time (1.5, to even), then 8 x 5 and 5 x 5
    assert work.calls == 2 + 2 + 40 + 25
    unknown = {**inputs, "data:1": ArtifactFacts()}
    assert work_of(Piece("train", "bi-encoder", {}, plugin, unknown)) is None


def test_an_unknown_size_is_unknown_and_what_it_is_a_part_of_is_at_least_the_rest() -> None:
    assert predict("train", Work("m", None, 5), MACHINE) is None
    assert predict("train", None, MACHINE) is None
    assert str(Time(120.0, 3, 0, Counter({"train x: the size of m": 1}))) == "at least 2 minutes"
    assert str(Time(0.0, 2, 0, Counter({"train x: the size of m": 2}))) == "unknown"
    assert str(Time(120.0, 3, 0, Counter())) == "about 2 minutes"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (90, "90 s"), (120, "2 minutes"), (5400, "90 minutes"), (9000, "2.5 hours")],
)
def test_a_duration_is_told_in_a_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_what_an_evaluator_learns_after_encoding_is_unknown_and_not_nothing() -> None:
    encoded = ArtifactFacts(num_records=100, kind=RecordKind.SENTENCE)
    inputs = {"task": encoded, "model": ArtifactFacts(base=Pretrained(model="bert-base-uncased"))}
    sts, transfer = (
        work_of(Piece("evaluate", name, {}, component("evaluators", name)(), inputs))
        for name in ("sts", "transfer")
    )
    assert sts is not None
    assert sts.operations is not None
    assert transfer is not None
    assert (transfer.operations, transfer.calls) == (None, sts.calls)


def test_the_past_of_a_store_is_read_by_the_component_and_damage_in_it_is_passed_over(
    experiment: ExperimentFile, store: Store
) -> None:
    from test_experiment_runs import run

    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    stages = list(plan.stages.values())
    for stage in stages:
        set_seconds(store, stage, 7.0)
    again = estimator_for(stages, RUNTIME, Known(store))
    estimates = [again.estimate(stage) for stage in stages]
    assert all(each.is_from_past for each in estimates)
    assert {round(each.seconds or 0) for each in estimates} == {7}
    for stage in stages:
        (store.folder(stage.identity) / "stage.json").write_text("{")
    assert not any(estimator_for(stages, RUNTIME, Known(store)).estimate(s).is_from_past for s in stages)


def set_seconds(store: Store, stage: Stage, seconds: float) -> None:
    file = store.folder(stage.identity) / "stage.json"
    write_sealed(file, {**read_sealed(file), "seconds": seconds})


def test_another_device_has_no_past() -> None:
    past = Past()
    past.stored[("source", "pairs", "")] = [Timed(1.0, 1.0, 50.0)]
    here = Estimator(Known(Store(Path("/nowhere"))), MACHINE, past)
    gpu = here.on_a_gpu()
    assert here.estimate(Stage(Data())).is_from_past
    assert gpu is not None
    assert not gpu.estimate(Stage(Data())).is_from_past


def test_a_measurement_is_kept_where_there_is_a_store_and_makes_none(tmp_path: Path) -> None:
    there, nowhere = Store(tmp_path / "store"), Store(tmp_path / "nowhere")
    there.root.mkdir()
    machine = this_machine(RUNTIME, there)
    assert this_machine(RUNTIME, nowhere).is_measured
    assert not nowhere.root.exists()
    (file,) = (there.root / "machines").iterdir()
    file.write_text(json.dumps({"operations_per_second": 1e9}))
    assert this_machine(RUNTIME, there).rate == 1e9
    for damaged in ("{", "[]", '{"operations_per_second": "fast"}', '{"operations_per_second": -1}'):
        file.write_text(damaged)
        assert this_machine(RUNTIME, there).rate == machine.rate
