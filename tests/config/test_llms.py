"""Several LLMs in one file: who uses which, and which errors are reported."""

import pytest
from experiment_files import ExperimentFile
from wording import worded

LLMS = """\
llms:
  fast: sandbox
  strong: {endpoint: sandbox, habits: 0.1}
"""


@pytest.fixture
def asking(experiment: ExperimentFile) -> ExperimentFile:
    """The row silver asks `fast`, the row better `strong`."""
    experiment.change("method: fake\n", "method: fake-llm\n      llm: fast\n").change("      size: 3\n", "")
    experiment.change(
        "table:\n",
        "  better:\n    data.silver: {method: fake-llm, prompt: Say, sources: {gold: gold}, llm: strong}\n"
        "table:\n",
    )
    return experiment.append(LLMS)


def asked(experiment: ExperimentFile, *assignments: str) -> dict[str, str]:
    """Return the LLM of each row that asks one."""
    loaded = experiment.load(*assignments)
    parts = {row.name: row.candidates[0].config.parts[-1] for row in loaded.variants}
    return {row: part.llm.name for row, part in parts.items() if part.llm is not None}


def test_each_row_uses_the_llm_that_it_names(asking: ExperimentFile) -> None:
    assert asked(asking) == {"silver": "fast", "better": "strong"}
    assert set(asking.load().llms) == asking.load().used_llms == {"fast", "strong"}


def test_an_axis_of_the_grid_may_range_over_llms(asking: ExperimentFile) -> None:
    asking.change("      llm: fast\n", "").append(
        "grid:\n  llm:\n"
        "    one: {variants: {silver: {data.silver.llm: fast}}}\n"
        "    two: {variants: {silver: {data.silver.llm: strong}}}\n"
    )
    rows = {
        (row.name, row.axes["llm"]): row.candidates[0].config.parts[-1].llm
        for row in asking.load().variants
        if row.name == "silver"
    }
    assert {axis: llm and llm.name for (_, axis), llm in rows.items()} == {"one": "fast", "two": "strong"}


def test_a_key_of_one_llm_can_be_set_on_the_command_line(asking: ExperimentFile) -> None:
    strong, fast = (
        asking.load("llms.fast.seed=3", "llms.strong.noise=0.2").llms[name].settings.model_dump()
        for name in ("strong", "fast")
    )
    assert (fast["seed"], strong["habits"], strong["noise"]) == (3, 0.1, 0.2)


def test_an_unknown_llm_is_reported_in_one_line_with_the_nearest_name(asking: ExperimentFile) -> None:
    (fault,) = asking.change("llm: fast\n", "llm: fats\n").faults()
    worded(fault, f"study.yaml:{asking.line('llm: fats')}", "data.silver.llm", "'fats'", "'fast'")


def test_an_llm_that_no_row_uses_is_reported_in_one_line(asking: ExperimentFile) -> None:
    (fault,) = asking.append("  idle: sandbox\n").faults()
    worded(fault, f"study.yaml:{asking.line('idle')}", "llms.idle", "no row")


def test_an_option_that_the_endpoint_refuses_is_reported_with_its_line(asking: ExperimentFile) -> None:
    strong = "{name: house, base_url: 'http://localhost:1/v1', model: m, reasoning_effort: low}"
    asking.change("{endpoint: sandbox, habits: 0.1}", strong)
    endpoint = asking.load().llms["strong"].endpoint()
    assert {key: location.rpartition("/")[2] for key, location in endpoint.locations.items()} == {
        "reasoning_effort": f"study.yaml:{asking.line('reasoning_effort')}"
    }


def test_with_several_llms_each_section_must_name_one(asking: ExperimentFile) -> None:
    (fault,) = asking.change("      llm: fast\n", "").faults("llms.strong.seed=1")
    worded(fault, "data.silver.method", "llm: NAME", "fast", "strong")


def test_a_method_without_requests_may_not_name_an_llm(experiment: ExperimentFile) -> None:
    experiment.change("      size: 3\n", "      size: 3\n      llm: fast\n").append("llms: {fast: sandbox}\n")
    assert any("asks no LLM" in fault for fault in experiment.faults("llms.fast.seed=1"))


def test_a_file_has_either_the_short_or_the_long_form_of_llm(asking: ExperimentFile) -> None:
    worded([fault for fault in asking.append("llm: sandbox\n").faults() if "both" in fault], "llms", "llm")


def test_a_fault_in_one_of_several_llms_has_its_key_and_line(asking: ExperimentFile) -> None:
    (fault,) = asking.change("habits: 0.1", "habit: 0.1").faults()
    worded(fault, f"study.yaml:{asking.line('habit: 0.1')}", "llms.strong.habit", "'habits'")
