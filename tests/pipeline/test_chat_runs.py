"""Methods that ask through the context's client: endpoints by address, one cache, one ledger."""

import json
from collections.abc import Iterator

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from wording import worded

from synthbench.base.errors import UserError
from synthbench.config.llm import EndpointLLM, WorldLLM
from synthbench.engine.artifacts import read_dataset
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs
from synthbench.llm.ledger import entries
from synthbench.pipeline.experiment_run import llms_on_demand
from synthbench.pipeline.planning import make_plan
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.llm.process import SandboxServer, running_server

VARIABLE = "SYNTHBENCH_TEST_LLM_API_KEY"
KEY = "sk-very-private-4711"


class GenerationOnly(Plan):
    """A plan that ends with the generated data."""

    @property
    def targets(self) -> list[Stage]:
        return [generated(self)]


def generated(plan: Plan) -> Stage:
    (stage,) = [stage for stage in plan.stages.values() if stage.kind == "generate"]
    return stage


def run(plan: Plan, store: Store) -> tuple[RunReport, list[str]]:
    lines = Lines()
    plan = GenerationOnly(**vars(plan))
    with llms_on_demand(lines) as llm:
        runner = Runner(store, InProcess(), RUNTIME, lines, llm, plan.experiment.name)
        return runner.run(plan), lines.said


@pytest.fixture
def asking(experiment: ExperimentFile) -> ExperimentFile:
    return experiment.change("method: fake\n", "method: fake-chat\n").change("      size: 3\n", "")


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    with running_server() as running:
        yield running


def section(server: SandboxServer, more: str = "concurrency: 4") -> str:
    return f"llm: {{name: mine, base_url: '{server.base_url}', model: {MODEL}, {more}}}\n"


def texts(plan: Plan, store: Store) -> list[str]:
    return list(read_dataset(store.folder(generated(plan).identity)).column("sentence2"))


def test_a_run_with_an_llm_endpoint_prints_the_cost(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server, "price: {input: 1, output: 2, date: '2026-05-01'}"))
    plan = make_plan(asking.load())
    report, said = run(plan, store)
    assert not report.failed
    assert all(texts(plan, store))
    (entry,) = entries(store.answers, "study")
    assert (entry.stage, entry.answered.num_attempts) == (generated(plan).identity, 4)
    tokens = entry.answered.prompt_tokens + 2 * entry.answered.completion_tokens
    assert entry.answered.usd == pytest.approx(tokens / 1e6)
    assert str(entry) in said


def test_answers_are_shared_by_experiments_and_replayed_offline(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server))
    plan = make_plan(asking.load())
    run(plan, store)
    elsewhere = make_plan(
        asking.load("experiment=another", "llm.base_url=http://127.0.0.1:9/v1", "llm.offline=true")
    )
    assert generated(elsewhere).identity == generated(plan).identity
    before = texts(plan, store)
    store.discard(generated(plan).identity)
    report, _ = run(elsewhere, store)
    assert not report.failed
    assert texts(elsewhere, store) == before
    assert entries(store.answers, "another") == []


def test_a_run_without_any_answer_can_be_repeated_by_the_same_command(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    with running_server(LLMSettings(drops=1, max_faults_in_a_row=99)) as silent:
        asking.append(section(silent, "tries: 1"))
        plan = make_plan(asking.load())
        _, messages = run(plan, store)[0].failed[generated(plan).identity]
    worded(messages, "4")
    report, _ = run(make_plan(asking.load(f"llm.base_url={server.base_url}")), store)
    assert not report.failed
    assert all(texts(plan, store))


def test_offline_names_the_missing_answers(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server, "offline: true"))
    plan = make_plan(asking.load())
    report, _ = run(plan, store)
    _, (message,) = report.failed[generated(plan).identity]
    assert message.startswith("llm.offline: 'mine' (sandbox/llm) has no cached answer to request ")
    assert report.only_user_errors


def test_another_world_of_the_sandbox_gives_other_answers(asking: ExperimentFile, store: Store) -> None:
    asking.append("llm: sandbox\n")
    plain, noisy = make_plan(asking.load()), make_plan(asking.load("llm.noise=1"))
    for plan in (plain, noisy):
        assert not run(plan, store)[0].failed
    assert texts(plain, store) != texts(noisy, store)


def test_the_key_is_only_in_the_environment(
    asking: ExperimentFile, store: Store, server: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    asking.append(section(server, f"key_variable: {VARIABLE}"))
    plan = make_plan(asking.load())
    report, said = run(plan, store)
    assert not report.failed
    assert KEY not in json.dumps(generated(plan).spec) + "".join(said)
    files = [file for file in store.root.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            f"llm.key_variable={VARIABLE}",
            f"the environment variable {VARIABLE} is not set; set it to the key of the LLM 'mine'",
        ),
        (
            "llm.base_url=http://127.0.0.1:9/v1",
            "can't be reached (Connection refused). Nothing was computed.",
        ),
        ("llm.model=larger", "has no model 'larger'; of the 1 that it lists, the nearest are sandbox/llm"),
    ],
)
def test_a_missing_key_or_model_is_reported_in_one_line_before_the_first_stage(
    asking: ExperimentFile, store: Store, server: SandboxServer, change: str, fault: str
) -> None:
    asking.append(section(server, "tries: 1"))
    plan = make_plan(asking.load(change))
    with pytest.raises(UserError) as raised:
        run(plan, store)
    (message,) = raised.value.messages
    assert fault in message
    assert not any(store.has(identity) for identity in plan.stages)


def test_a_run_with_cached_data_sends_no_request(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server))
    run(make_plan(asking.load()), store)
    report, _ = run(make_plan(asking.load("llm.base_url=http://127.0.0.1:9/v1")), store)
    assert report.num_needed == 0


def test_a_plan_names_a_missing_key_and_shows_small_amounts_of_money(
    asking: ExperimentFile, store: Store, server: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    asking.append(section(server))
    run(make_plan(asking.load()), store)
    price = "llm.price={input: 0.0025, output: 0.01, date: '2026-05-01'}"
    plan = make_plan(asking.load("llm.model=larger", f"llm.key_variable={VARIABLE}", price))
    _, key, money = cost_lines(plan, store)
    assert key == f"the environment variable {VARIABLE} is not set; the LLM needs its key"
    assert money == "money: about 0.0030 US dollars at the prices of 2026-05-01"


def cost_lines(plan: Plan, store: Store) -> tuple[str, ...]:
    ((stage, lines),) = costs(statuses(plan, store), store)
    assert stage == generated(plan)
    return lines


def test_a_plan_estimates_requests_tokens_and_money(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server))
    run(make_plan(asking.load()), store)
    price = "llm.price={input: 1.5, output: 2, date: '2026-05-01'}"
    plan = make_plan(asking.load("llm.model=larger", price, "llm.budget_usd=0.5"))
    assert cost_lines(plan, store) == (
        "LLM 'mine' (larger): about 4 requests, 400,000 tokens of prompts and 200,000 of answers, minus"
        " cached answers, if no request needs another of at most 8 tries",
        "money: about 1.00 US dollars at the prices of 2026-05-01; budget_usd is 0.5",
    )


def test_a_plan_says_if_a_price_is_unknown(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server))
    run(make_plan(asking.load()), store)
    _, money = cost_lines(make_plan(asking.load("llm.model=unheard-of")), store)
    worded(money, "no price is known for unheard-of", "give price", "with budget_tokens")


def test_one_line_an_address_and_a_key_beside_the_file_run_up_to_a_budget_of_tokens(
    asking: ExperimentFile, store: Store, server: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    (asking.folder / ".env").write_text(f"OPENAI_BASE_URL={server.base_url}\nOPENAI_API_KEY={KEY}\n")
    asking.append(f"llm: openai/{MODEL}\n")
    plan = make_plan(asking.load("llm.budget_tokens=1"))
    _, messages = run(plan, store)[0].failed[generated(plan).identity]
    worded(messages, "llm.budget_tokens: 1 tokens")
    plan = make_plan(asking.load("llm.budget_tokens=100000"))
    assert not run(plan, store)[0].failed
    (entry,) = entries(store.answers, "study")
    assert (entry.endpoint, entry.model, entry.answered.num_attempts) == ("openai", MODEL, 4)
    assert 0 < entry.answered.prompt_tokens + entry.answered.completion_tokens <= 100_000


def test_only_name_and_model_of_an_endpoint_are_in_the_identity(
    asking: ExperimentFile, server: SandboxServer
) -> None:
    asking.append(section(server))

    def identity(*assignments: str) -> str:
        return generated(make_plan(asking.load(*assignments))).identity

    plain = identity()
    for same in ("base_url=https://else.where/v1", "concurrency=3", "budget_tokens=1", "key_variable=OTHER"):
        assert identity(f"llm.{same}") == plain
    yours = f"llm={{name: yours, base_url: '{server.base_url}', model: {MODEL}}}"
    assert identity(yours) != plain
    assert identity("llm.model=larger") != plain


def test_request_settings_work_in_the_sandbox_and_change_no_identity(asking: ExperimentFile) -> None:
    asking.append("llm: sandbox\n")
    plan = make_plan(asking.load("llm.concurrency=3", "llm.budget_usd=1"))
    settings = plan.experiment.llms["llm"].settings
    assert isinstance(settings, WorldLLM)
    assert settings.concurrency == 3
    assert generated(plan).identity == generated(make_plan(asking.load())).identity


def test_a_run_sends_requests_to_the_files_endpoint(asking: ExperimentFile, server: SandboxServer) -> None:
    asking.append(section(server, "requests_per_minute: 60"))
    llm = asking.load().llms["llm"].settings
    assert isinstance(llm, EndpointLLM)
    endpoint = llm.at(llm.address())
    assert (endpoint.name, endpoint.base_url, endpoint.model) == ("mine", server.base_url, MODEL)
    assert endpoint.key_variable == ""
    assert endpoint.pacing.requests_per_minute == 60


@pytest.mark.parametrize(
    ("llm", "fault"),
    [
        ("gpt-4o-mini", "llm: write PROVIDER/MODEL, such as openai/gpt-4o-mini, or sandbox"),
        (
            "{local: ../chat, dtype: bf16, batch_size: 64}",
            "llm: `local:` is gone; write {serve: transformers, model: ../chat}",
        ),
        ("{name: a, base_url: 'localhost:8000', model: m}", "llm.base_url: must be an address such as"),
        ("{name: a, base_url: 'http://me:secret@host/v1', model: m}", "llm.base_url: must hold no password"),
        ("{name: a, base_url: 'http://host/v1'}", "llm.model: missing; it has no default"),
        ("{name: a, base_url: 'http://host/v1', model: m, modle: m}", "llm.modle: unknown key; did you mean"),
        (
            f"{{name: a, base_url: 'http://host/v1', model: m, key_variable: {KEY}}}",
            "llm.key_variable: must be the NAME of an environment variable",
        ),
        (
            "{name: a, base_url: 'http://host/v1', model: m, budget_usd: -1}",
            "llm.budget_usd: must be at least 0",
        ),
        (
            "{name: a, base_url: 'http://host/v1', model: m, budget_usd: 1}",
            "llm: budget_usd: no price is known for m; give price: {input: ...",
        ),
    ],
)
def test_an_invalid_endpoint_is_reported_with_its_line_and_without_a_key(
    asking: ExperimentFile, llm: str, fault: str
) -> None:
    asking.append(f"llm: {llm}\n")
    (found,) = asking.faults()
    assert found.startswith(f"study.yaml:{asking.line('llm:')}: {fault}")
    assert KEY not in found
    assert "secret" not in found


def test_requests_of_shards_are_billed_to_their_stage(
    asking: ExperimentFile, store: Store, server: SandboxServer
) -> None:
    asking.append(section(server))
    plan = make_plan(asking.load("runtime.shards=3"))
    (whole,) = (stage for stage in plan.stages.values() if stage.shards)
    lines = Lines()
    with llms_on_demand(lines) as llm:
        runner = Runner(store, InProcess(), RUNTIME, lines, llm, plan.experiment.name)
        report = runner.run(plan)
    assert not report.failed
    (entry,) = entries(store.answers, "study")
    assert (entry.stage, entry.answered.num_attempts) == (whole.identity, 4)
