"""Estimates of stages: by model size, then by measured times; may be unknown."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import Data
from fakes import Lines

from synthbench.base.durability import read_sealed, write_sealed
from synthbench.base.runtime import Runtime
from synthbench.config.llm import EndpointLLM, NamedLLM
from synthbench.data.records import Record, RecordKind
from synthbench.engine.local_executors import InProcess
from synthbench.engine.monitor import duration
from synthbench.engine.runner import Runner
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates import costs
from synthbench.estimates.facts import ArtifactFacts, StageFacts, StageView, work_of
from synthbench.estimates.figures import (
    DATA_SHEETS,
    Estimator,
    Total,
    arithmetic,
    by_similar,
    cpu,
    estimator_for,
    this_device,
)
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.prices import Price
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work, reading, shape_of, training
from synthbench.pipeline.planning import make_plan
from synthbench.plugins.contracts import Records, Step, StepContext
from synthbench.plugins.loading import component

RUNTIME = Runtime(device="cpu", threads=1)


def test_a_models_size_is_from_its_configuration_or_publication(tmp_path: Path) -> None:
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
def test_a_configuration_without_sizes_has_an_unknown_model_size(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "model.safetensors").touch()
    assert reading(Pretrained(model=str(tmp_path)), 10).operations is None


def test_larger_models_take_longer_and_training_takes_three_times_as_long_as_reading() -> None:
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


def test_fewer_layers_and_static_embeddings_reduce_the_work() -> None:
    whole = reading(Pretrained(model="bert-base-uncased"), 10).operations
    half = reading(Pretrained(model="bert-base-uncased", num_layers=6), 10)
    static = reading(Pretrained(model="bert-base-uncased", static=True), 10)
    assert half.operations == (whole or 0) / 2
    assert static.operations == 0
    assert len({half.model, static.model, "bert-base-uncased"}) == 3


def test_a_stage_takes_the_time_of_past_stages_of_similar_size() -> None:
    assert by_similar([(20.0, 60.0)], 10.0) == 30.0
    assert by_similar([(20.0, 60.0)], None) == 60.0
    assert by_similar([(None, 60.0)], 10.0) == 60.0
    assert by_similar([(1000.0, 1000.0), *[(10.0, 20.0)] * 5], 10.0) == 20.0


def test_this_runs_stages_outweigh_earlier_runs_and_both_outweigh_arithmetic() -> None:
    stage, known = Stage(Data()), StageFacts(Store(Path("/nowhere")))
    assert not Estimator(known, cpu(1)).estimate(stage).is_from_past
    here = Estimator(known, cpu(1), {("source", "pairs", ""): [(None, 50.0)]})
    assert (here.seconds(stage), here.estimate(stage).is_from_past) == (50.0, True)
    here.learn(stage, 7.0)
    assert here.seconds(stage) == pytest.approx(7.0)


def test_the_steps_of_a_training_depend_on_its_parts_weights() -> None:
    settings = {"base": {"model": "gpt2"}, "epochs": 1, "batch_size": 10}
    plugin = component("trainers", "bi-encoder").model_validate(settings)
    inputs = {f"data:{index}": ArtifactFacts(num_records=100) for index in range(2)}
    steps = [
        work_of(StageView("train", "bi-encoder", config, plugin, inputs)).calls  # type: ignore[union-attr]
        for config in ({}, {"weights": [2.0, 0.5]})
    ]
    assert steps == [20, 25]


def test_weights_belong_to_parts_by_number_and_set_the_rows_drawn() -> None:
    settings = {"base": {"model": "gpt2"}, "epochs": 1, "batch_size": 1}
    plugin = component("trainers", "bi-encoder").model_validate(settings)
    # By name, data:10 comes before data:2.
    inputs = {f"data:{index}": ArtifactFacts(num_records=5) for index in (0, 1, 10, *range(2, 10))}
    work = work_of(StageView("train", "bi-encoder", {"weights": [0.3, 0.3, *[1.0] * 8, 5.0]}, plugin, inputs))
    assert work is not None
    # Weight 0.3 of 5 records gives 2, twice (1.5 rounds to even); then 8 x 5, and 5 x 5
    assert work.calls == 2 + 2 + 40 + 25
    unknown = {**inputs, "data:1": ArtifactFacts()}
    assert work_of(StageView("train", "bi-encoder", {}, plugin, unknown)) is None


def test_a_total_with_an_unknown_size_is_a_lower_bound() -> None:
    assert arithmetic("train", Work("m", None, 5), cpu(1)) is None
    assert arithmetic("train", None, cpu(1)) is None
    assert str(Total(120.0, 3, 0, Counter({"train x: the size of m": 1}))) == "at least 2 minutes"
    assert str(Total(0.0, 2, 0, Counter({"train x: the size of m": 2}))) == "unknown"
    assert str(Total(120.0, 3, 0, Counter())) == "about 2 minutes"


@pytest.mark.parametrize(
    ("dollars", "total"),
    [
        ((None, None), ""),
        ((0.0, None), ""),
        ((2.0, None), "money of all LLMs: at least 2.00 US dollars"),
        ((2.0, 0.0), "money of all LLMs: about 2.00 US dollars"),
        ((0.0, 0.0), "money of all LLMs: about 0.00 US dollars"),
    ],
)
def test_dollars_of_all_llms_are_shown_if_any_are_known(
    store: Store, monkeypatch: pytest.MonkeyPatch, dollars: tuple[float | None, ...], total: str
) -> None:
    asked = []
    for number, usd in enumerate(dollars):
        price = None if usd is None else Price(input=usd, output=usd, date="2026-01-01")
        settings = EndpointLLM(name=f"own{number}", base_url="https://own/v1", model="own", price=price)
        asked.append((NamedLLM(f"own{number}", settings), ChatAmount(10, 500_000, 500_000)))
    monkeypatch.setattr(costs, "_asked_by_llm", lambda *_: (asked, Counter()))
    lines = list(costs.llm_totals([], StageFacts(store)))
    assert [line for line in lines if "all LLMs" in line] == ([total] if total else [])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (90, "90 s"), (120, "2 minutes"), (5400, "90 minutes"), (9000, "2.5 hours")],
)
def test_a_duration_is_shown_in_a_suitable_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_evaluators_work_after_encoding_is_unknown_not_zero() -> None:
    encoded = ArtifactFacts(num_records=100, kind=RecordKind.SENTENCE)
    inputs = {"task": encoded, "model": ArtifactFacts(base=Pretrained(model="bert-base-uncased"))}
    sts, transfer = (
        work_of(StageView("evaluate", name, {}, component("evaluators", name)(), inputs))
        for name in ("sts", "transfer")
    )
    assert sts is not None
    assert sts.operations is not None
    assert transfer is not None
    assert (transfer.operations, transfer.calls) == (None, sts.calls)


def test_past_times_are_read_by_component_and_damaged_records_skipped(
    experiment: ExperimentFile, store: Store
) -> None:
    plan = make_plan(experiment.load("seeds=[0]"))
    Runner(store, InProcess(), RUNTIME, Lines()).run(plan)
    stages = list(plan.stages.values())
    for stage in stages:
        set_seconds(store, stage, 7.0)
    again = estimator_for(stages, RUNTIME, StageFacts(store))
    estimates = [again.estimate(stage) for stage in stages]
    assert all(each.is_from_past for each in estimates)
    assert {round(each.value or 0) for each in estimates} == {7}
    for stage in stages:
        (store.folder(stage.identity) / "stage.json").write_text("{")
    assert not any(estimator_for(stages, RUNTIME, StageFacts(store)).estimate(s).is_from_past for s in stages)


def set_seconds(store: Store, stage: Stage, seconds: float) -> None:
    file = store.folder(stage.identity) / "stage.json"
    write_sealed(file, {**read_sealed(file), "seconds": seconds})


class WithFormerHook(Step):
    """A third party's step that still states its work, as steps once did."""

    version = 1

    def work(self, num_records: int) -> Work:
        raise AssertionError(num_records)

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        return records


def test_a_step_with_the_former_hook_runs_and_its_models_determine_its_work() -> None:
    inputs = {"data": ArtifactFacts(num_records=10, kind=RecordKind.TRIPLET)}
    base = ArtifactFacts(base=Pretrained(model="bert-base-uncased"))
    alone, with_model = (
        work_of(StageView("prepare", "former", {}, WithFormerHook(), {**inputs, **more}))
        for more in ({}, {"need:encoder": base})
    )
    assert alone == Work("", 0.0, 10)
    assert with_model == reading(Pretrained(model="bert-base-uncased"), 10, sentences=3)


def test_this_device_is_measured_and_more_threads_are_faster() -> None:
    one, two = this_device(RUNTIME), cpu(2)
    assert one.title.startswith("CPU, 1 thread, ")
    assert one.title.endswith(" measured")
    assert one.fp32 < two.fp32 < 2 * one.fp32
    assert DATA_SHEETS["h100"].title.endswith("not measured)")


@pytest.mark.parametrize("both_orders", [True, False])
def test_a_labeller_reads_the_pairs_of_a_method_or_step_in_each_order(both_orders: bool) -> None:
    labeller = {"cross_encoder": {"base": {"model": "bert-base-uncased"}}, "both_orders": both_orders}
    base = ArtifactFacts(base=Pretrained(model="bert-base-uncased"))
    data = ArtifactFacts(num_records=10, kind=RecordKind.SCORED_PAIR)
    relabel = component("methods", "relabel").model_validate({"labeller": labeller})
    step = component("steps", "keep-consistent").model_validate(
        {"labeller": labeller, "sources": {"gold": "gold"}}
    )
    for piece in (
        StageView("generate", "relabel", {}, relabel, {"source:pairs": data, "need:labeller": base}),
        StageView("prepare", "keep-consistent", {}, step, {"data": data, "need:labeller": base}),
    ):
        assert work_of(piece) == reading(Pretrained(model="bert-base-uncased"), 10 * (1 + both_orders), 2)
