"""Runs whose LLM is a local chat model: what they read, ask and never load."""

import shutil
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fakes import Lines
from test_chat_runs import generated, run
from wording import worded

from synthbench.config.llm import LocalLLM, WorldLLM
from synthbench.engine.artifacts import read_dataset
from synthbench.engine.plan import statuses
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs
from synthbench.generation.language_model import LanguageModel
from synthbench.llm.ledger import entries
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.stages.generation import Generate


@pytest.fixture
def asking(experiment: ExperimentFile, chat_model: Path) -> ExperimentFile:
    experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")
    return experiment.append(f"llm: {{local: {chat_model}, cut_off: take}}\n")


def test_a_run_asks_the_model_and_counts_its_tokens(
    asking: ExperimentFile, store: Store, chat_model: Path
) -> None:
    plan = make_plan(asking.load())
    report, said = run(plan, store)
    assert not report.failed
    assert len(read_dataset(store.folder(generated(plan).identity))) == 4
    (entry,) = entries(store.answers, "study")
    assert (entry.model, entry.answered.num_attempts, entry.answered.usd) == (chat_model.name, 4, 0.0)
    assert entry.answered.completion_tokens <= 4 * 40
    assert str(entry) in said


def test_tables_say_that_answers_in_half_precision_depend_on_batch_and_device(asking: ExperimentFile) -> None:
    def told(dtype: str) -> tuple[str, ...]:
        operation = generated(make_plan(asking.load(f"llm.dtype={dtype}"))).operation
        assert isinstance(operation, Generate)
        return operation.table_notes()

    assert told("fp32") == ()
    for dtype in ("bf16", "fp16"):
        (note,) = told(dtype)
        assert note.startswith(
            f"The LLM's answers were written in {dtype}. Its rounding depends on batch size"
        )


def test_weights_precision_and_length_are_in_the_identity_and_nothing_else(
    asking: ExperimentFile, chat_model: Path, tmp_path: Path
) -> None:
    def identity(*assignments: str) -> str:
        return generated(make_plan(asking.load(*assignments))).identity

    plain = identity()
    for same in ("batch_size=2", "max_failure_rate=1", "offline=true"):
        assert identity(f"llm.{same}") == plain
    assert identity("runtime.device=cpu", "runtime.threads=2") == plain
    others = [identity("llm.dtype=bf16"), identity("llm.max_new_tokens=9")]
    config = shutil.copytree(chat_model, tmp_path / "other") / "config.json"
    config.write_text(config.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert len({plain, *others, identity(f"llm.local={tmp_path / 'other'}")}) == 4


def test_a_plan_loads_no_model_and_says_that_it_costs_nothing(
    asking: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(make_plan(asking.load()), store)
    monkeypatch.setattr(LanguageModel, "load", None)
    plan = make_plan(asking.load("llm.max_new_tokens=9"))
    with llms_on_demand(Lines()) as llm:
        assert llm(plan.experiment.llms["llm"]) is not None
    ((_, (requests, money)),) = costs(statuses(plan, store), store)
    assert "): about 4 requests, 400,000 tokens of prompts" in requests
    assert money == "money: none, the model runs locally"


def test_another_llm_takes_the_place_of_the_whole_section(asking: ExperimentFile, chat_model: Path) -> None:
    def llm(*assignments: str) -> object:
        return asking.load(*assignments).llms["llm"].settings

    local = LocalLLM(local=str(chat_model))
    asking.change(f"{chat_model}, cut_off: take}}", f"{chat_model}, cut_off: take, dtype: bf16}}")
    assert isinstance(llm("llm=sandbox"), WorldLLM)
    asking.change(
        f"llm: {{local: {chat_model}, cut_off: take, dtype: bf16}}", "llm: {endpoint: sandbox, noise: 0.1}"
    )
    assert llm(f"llm.local={chat_model}") == local


def test_what_a_local_model_lacks_is_told_with_its_line(asking: ExperimentFile, tmp_path: Path) -> None:
    (missing,) = asking.faults(f"llm.local={tmp_path / 'nowhere'}")
    worded(missing, "--set", "llm.local=nowhere", "llm.local")
    (unknown,) = asking.faults("llm.dtpye=bf16")
    assert unknown.endswith("llm.dtpye: unknown key; did you mean 'dtype'?")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "model.safetensors").touch()
    (unusable,) = asking.faults(f"llm.local={empty}")
    worded(unusable, "--set", "llm.local=empty", "llm.local", "config.json")
