"""`synthbench plan --gpu`: totals first, for a machine that is not here."""

import re

import pytest
from shipped_files import SHIPPED
from small_experiment import Project
from wording import worded

TABLE_2 = SHIPPED["table2_ablation"]


def totals(out: str) -> dict[str, str]:
    """Return the lines before the first empty one, by their first words."""
    first, _, _ = out.partition("\n\n")
    return dict(line.split(": ", 1) for line in first.splitlines() if ": " in line)


def test_dollars_are_hours_times_price_plus_llm_costs(project: Project) -> None:
    file = TABLE_2
    found = totals(project.call("plan", file, "--gpu", "h200", "--gpu-price", "1000").out)
    tries = r" if no text needs another try, ([\d.]+) with all tries,"
    hours = re.fullmatch(
        rf"about ([\d.]+){tries} on h200 \(arithmetic .*, not measured\)", found["GPU-hours"]
    )
    priced = r"about ([\d,.]+) in all: ([\d,.]+) for GPUs at 1,000.00 an hour, 0.00 for LLMs"
    dollars = re.fullmatch(priced, found["dollars"])
    assert hours
    assert dollars
    assert float(hours[2]) > float(hours[1])
    assert dollars[1] == dollars[2]
    assert float(dollars[1].replace(",", "")) == pytest.approx(1000 * float(hours[1]), rel=0.05)
    assert found["stages"].startswith("216, 0 cached, 216 to run")
    # 25 models of RoBERTa-base in fp32, 123,532,032 parameters of layers and vocabulary each
    gigabytes = float(re.fullmatch(r"about ([\d.]+) GB more on disk", found["store"])[1])  # type: ignore[index]
    assert gigabytes == pytest.approx(25 * 4 * 123_532_032 / 1e9, rel=0.05)
    assert re.fullmatch(r"at most [\d.]+ of 141 GB \(generate dino\)", found["GPU memory"])


def test_more_gpus_are_faster_until_stages_wait_for_each_other(project: Project) -> None:
    file = TABLE_2
    clocks = [
        totals(project.call("plan", file, "--gpu", "h200", "--gpus", number).out)["wall-clock"]
        for number in ("1", "4", "1000", "2000")
    ]
    hours, minutes, longest, same = (clock.split(" with ")[0] for clock in clocks)
    assert re.fullmatch(r"about [\d.]+ hours", hours)
    assert re.fullmatch(r"about \d+ minutes", minutes)
    assert longest == same != minutes


def test_a_plan_with_hub_data_and_an_llm_has_all_totals_offline(project: Project) -> None:
    called = project.call("plan", SHIPPED["syncse_table2"], "--gpu", "a10")
    assert (called.code, called.err) == (0, "")
    found = totals(called.out)
    doubt = r"of \d+ of them nobody can tell whether they are cached"
    assert re.fullmatch(rf"415, 0 cached, 415 to run; {doubt}", found["stages"])
    assert re.match(r"about [\d.]+ on a10 ", found["GPU-hours"])
    assert found["wall-clock"].endswith("what is unknown comes on top")
    assert re.fullmatch(
        r"[\d.]+ for LLMs; unknown for GPUs: --gpu-price says what an hour costs", found["dollars"]
    )
    assert "not at hand: data set princeton-nlp/datasets-for-simcse at e145e8b" in called.out


def test_a_stage_that_exceeds_the_gpus_memory_is_named(project: Project) -> None:
    out = project.call("plan", TABLE_2, "--gpu", "l4", "--set", "train.batch_size=4096").out
    assert "DOES NOT FIT" in totals(out)["GPU memory"]
    assert "(train bi-encoder)" in totals(out)["GPU memory"]


def test_a_model_of_unknown_size_is_named_and_the_totals_say_at_least(project: Project) -> None:
    model = f'model: some-org/some-model, revision: "{"0" * 40}"'
    text = project.file.read_text(encoding="utf-8")
    project.file.write_text(re.sub(r'model: "[^"]*"', model, text), encoding="utf-8")
    out = project.call("plan", project.file, "--gpu", "h200").out
    for what in ("GPU-hours", "gigabytes in the store", "GPU memory"):
        why = "1 × train cross-encoder: the size of some-org/some-model"
        assert re.search(f"^unknown: {what} of {why}", out, re.MULTILINE)
    assert re.search("^store: at least ", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("--gpu", "rtx"), "--gpu rtx"),
        (("--gpu-price", "3"), "--gpu-price"),
        (("--gpus", "3"), "--gpus"),
    ],
)
def test_bad_options_are_refused_with_the_known_names(
    project: Project, arguments: tuple[str, ...], fact: str
) -> None:
    called = project.call("plan", project.file, *arguments)
    assert (called.code, called.out) == (2, "")
    worded(called.errors, fact, "h200")


def test_tokens_of_a_language_model_are_told_with_and_without_further_tries(project: Project) -> None:
    out = project.call("plan", TABLE_2, "--profile", "sandbox", "--set", "seeds=[0]").out
    line = re.search(
        r"^tokens: up to ([\d,]+) written by (\S+) if no text needs another try, at most", out, re.M
    )
    assert line, out
