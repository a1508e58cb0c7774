"""LLMs that a run serves: their commands, and refused settings."""

import json
import shutil
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from wording import worded

from synthbench.config.llm import WorldLLM
from synthbench.config.permissions import what_runs
from synthbench.config.served_llm import ServedLLM
from synthbench.hub.repositories import HubRepository
from synthbench.llm.endpoint import Served
from synthbench.plugins.files import ALLOWED

COMMIT = "0123456789abcdef0123456789abcdef01234567"
COMMAND = "server --port {port} -m {model}"


@pytest.fixture
def asking(experiment: ExperimentFile, monkeypatch: pytest.MonkeyPatch) -> ExperimentFile:
    """An experiment whose LLM is a command's."""
    monkeypatch.setenv(ALLOWED, str(experiment.folder))
    experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")
    return experiment.append(f"llm:\n  serve: {COMMAND}\n  model: any\n")


def served(llm: ServedLLM) -> Served:
    found = llm.at(llm.address()).served
    assert found is not None
    return found


def test_vllm_gets_folder_port_and_name_but_no_sampling_defaults_of_the_checkpoint(chat_model: Path) -> None:
    found = served(ServedLLM(serve="vllm", model=str(chat_model), start_timeout_s=9.0))
    assert found.command == (
        *("vllm", "serve", str(chat_model), "--host", "127.0.0.1", "--port", "{port}"),
        *("--served-model-name", chat_model.name, "--generation-config", "vllm"),
    )
    assert (found.model_id, found.start_timeout_s) == (chat_model.name, 9.0)


def test_a_model_of_the_hub_is_served_at_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = served(ServedLLM(serve="vllm", model="org/chat", revision=COMMIT))
    assert hub.command[9:13] == ("--revision", COMMIT, "--tokenizer-revision", COMMIT)
    assert hub.model_id == "org/chat"
    monkeypatch.setattr(HubRepository, "commit", lambda self: COMMIT)
    main = ServedLLM(serve="transformers", model="org/chat")
    assert served(main).command == (
        *("transformers", "serve", f"org/chat@{COMMIT}", "--host", "127.0.0.1", "--port", "{port}"),
    )
    assert served(main).model_id == f"org/chat@{COMMIT}"
    assert main.revisions() == {"org/chat": COMMIT}
    assert main.at(main.address()).name == f"transformers (revision={COMMIT})"


def test_a_text_or_list_command_gets_the_models_name_or_path(tmp_path: Path) -> None:
    assert served(ServedLLM(serve=COMMAND, model="llama3.2")).command == (
        *("server", "--port", "{port}", "-m", "llama3.2"),
    )
    file = tmp_path / "a model.gguf"
    file.touch()
    listed = ServedLLM(serve=("server", "-m={model}", "{port}"), model=str(file))
    assert served(listed).command == ("server", f"-m={file}", "{port}")
    assert listed.address().model == "a model.gguf"


def test_answers_are_not_shared_between_different_weights_programs_or_commands(
    chat_model: Path, tmp_path: Path
) -> None:
    changed = shutil.copytree(chat_model, tmp_path / chat_model.name)
    (changed / "config.json").write_text((changed / "config.json").read_text(encoding="utf-8") + "\n")
    llms = (
        ServedLLM(serve="vllm", model=str(chat_model)),
        ServedLLM(serve="vllm", model=str(changed)),
        ServedLLM(serve="transformers", model=str(chat_model)),
        ServedLLM(serve=COMMAND, model=str(chat_model)),
        ServedLLM(serve=f"{COMMAND} --quantize", model=str(chat_model)),
    )
    assert len({llm.at(llm.address()).name for llm in llms}) == len(llms)
    moved = ServedLLM(serve=f"/opt/bin/{COMMAND}", model=str(shutil.copytree(chat_model, tmp_path / "moved")))
    assert moved.at(moved.address()).name == llms[3].at(llms[3].address()).name


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ("serve=vlm", ("llm.serve", "vllm or transformers", "{port}", "did you mean 'vllm'")),
        ("serve=server --port {prot}", ("llm.serve", "{prot}", "{port}", "{model}")),
        ("serve=server -m {model}", ("llm.serve", "{port}")),
        ("serve='server \"--port {port}'", ("llm.serve", "list")),
        ("serve=[]", ("llm.serve", "program")),
        ("servr=vllm", ("llm.servr", "unknown key", "'serve'")),
        ("base_url=http://localhost:8000/v1", ("llm.base_url", "other keys")),
        (f"revision={COMMIT}", ("revision", "command")),
        ("budget_usd=1", ("budget_usd", "price")),
        ("start_timeout_s=0", ("llm.start_timeout_s", "0")),
        ("model=./nowhere.gguf", ("llm.model", "no such file")),
    ],
)
def test_a_fault_is_reported_in_one_line_with_its_key(
    asking: ExperimentFile, change: str, facts: tuple[str, ...]
) -> None:
    (fault,) = asking.faults(f"llm.{change}")
    worded(fault, *facts)


def test_a_folder_without_a_chat_template_is_refused_with_its_line(
    asking: ExperimentFile, chat_model: Path, tmp_path: Path
) -> None:
    changed = shutil.copytree(chat_model, tmp_path / "changed")
    (changed / "chat_template.jinja").unlink()
    asking.change(COMMAND, "vllm").change("model: any", f"model: {changed}")
    (fault,) = asking.faults()
    worded(fault, f"study.yaml:{asking.line('model: /')}", "llm.model", "chat_template.jinja")


def test_a_folder_name_that_transformers_reads_as_a_revision_is_refused(
    asking: ExperimentFile, chat_model: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(chat_model, tmp_path / "chat@2")
    (fault,) = asking.faults(f"llm={{serve: transformers, model: {folder}}}")
    worded(fault, "llm.model", "chat@2", "revision")


def test_a_files_command_runs_only_with_permission(
    asking: ExperimentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = what_runs(asking.load())
    assert line.startswith("runs command: server --port ")
    monkeypatch.delenv(ALLOWED)
    (fault,) = asking.faults()
    worded(fault, f"study.yaml:{asking.line('serve:')}", "llm.serve", "--allow-code", ALLOWED)
    assert asking.faults(f"llm.serve={COMMAND} --more") == []
    assert asking.faults("llm={serve: vllm, model: org/chat}") == []


def test_the_sandbox_profile_replaces_a_served_llm(asking: ExperimentFile) -> None:
    asking.profile("laptop", "substitute: {llm: sandbox}\n")
    assert isinstance(asking.load(profile="laptop").llms["llm"].settings, WorldLLM)


def test_transformers_samples_by_the_requests_settings_one_request_at_a_time(chat_model: Path) -> None:
    alone = ServedLLM(serve="transformers", model=str(chat_model))
    assert json.loads(served(alone).body["generation_config"])["do_sample"] is True
    assert alone.at(alone.address()).pacing.concurrency == 1
    together = ServedLLM(serve="transformers", model=str(chat_model), concurrency=4)
    assert together.at(together.address()).pacing.concurrency == 4


def test_an_option_that_the_program_ignores_is_refused(asking: ExperimentFile, chat_model: Path) -> None:
    for program, num_faults in (("transformers", 1), ("vllm", 0)):
        faults = asking.faults(f"llm={{serve: {program}, model: {chat_model}, reasoning_effort: low}}")
        assert len(faults) == num_faults
        if faults:
            worded(faults, "reasoning_effort", "transformers")
