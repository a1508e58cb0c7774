"""The short form of an experiment file: a base, files of data, and names of recipes."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from synthbench.base.errors import UserError
from synthbench.config.documents import parse_document
from synthbench.config.experiment import Experiment, RunConfig
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides, Request
from synthbench.config.problems import Problems
from synthbench.config.recipes import recipe, recipes
from synthbench.config.short import expand_short
from synthbench.results.collect import to_yaml
from synthbench.sources.guessing import Guess

SHORT = """\
experiment: tickets
base: sandbox/encoder
sources: {sentences: tickets.csv, gold: pairs.csv}
llm: openai/gpt-4o-mini
budget: {usd: 100, machine_hour_usd: 1.0}
variants: [untrained, gold-only, syncse-partial, syncse-then-gold, augsbert-bm25, dino]
"""
NUM_PAIRS = 120


class ShortFile:
    """A short file with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "study.yaml"
        self.file.write_text(SHORT, encoding="utf-8")
        self.data("tickets.csv", ["ticket", *(f"The {n}. printer prints nothing" for n in range(20))])
        pairs = (f"Door {n} is open,Window {n} is closed,{n % 6}" for n in range(NUM_PAIRS))
        self.data("pairs.csv", ["left,right,rating", *pairs])

    def data(self, name: str, lines: list[str]) -> None:
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def with_key(self, key: str, value: str) -> "ShortFile":
        """Replace a top-level key's line, or add one; an empty value takes it away."""
        lines = [line for line in self.file.read_text("utf-8").splitlines() if not line.startswith(f"{key}:")]
        added = [f"{key}: {value}"] if value else []
        self.file.write_text("\n".join([*lines, *added]) + "\n", encoding="utf-8")
        return self

    def long(self, **overrides: Any) -> Mapping[str, Any]:
        problems = Problems()
        data: Mapping[str, Any] = Request.read(self.file, Overrides(**overrides), problems).document.data
        problems.raise_if_any()
        return data

    def load(self, **overrides: Any) -> Experiment:
        return load_experiment(self.file, Overrides(**overrides), with_data=True)

    def faults(self) -> tuple[str, ...]:
        with pytest.raises(UserError) as error:
            self.load()
        return tuple(message.removeprefix(f"{self.file}:") for message in error.value.messages)


@pytest.fixture
def short(tmp_path: Path) -> ShortFile:
    return ShortFile(tmp_path)


def configs(experiment: Experiment) -> dict[str, list[RunConfig]]:
    return {each.label: [candidate.config for candidate in each.candidates] for each in experiment.variants}


def test_twelve_lines_are_a_whole_study(short: ShortFile) -> None:
    study = short.load()
    assert [each.name for each in study.variants] == [
        "untrained",
        "gold-only",
        "syncse-partial",
        "syncse-then-gold",
        "augsbert-bm25",
        "dino",
    ]
    assert study.seeds == (0, 1, 2, 3, 4)
    assert {each.candidates[0].config.parameters["train.base.model"] for each in study.variants} == {
        "sandbox/encoder"
    }


def test_what_it_expands_to_is_the_same_study_and_stays_as_it_is(short: ShortFile) -> None:
    short.with_key("variants", "all")
    printed = to_yaml(short.long())
    study = short.load()
    short.file.write_text(printed, encoding="utf-8")
    long = short.load()
    assert configs(long) == configs(study)
    assert (long.sources, long.llms, long.seeds, long.table) == (
        study.sources,
        study.llms,
        study.seeds,
        study.table,
    )
    assert to_yaml(short.long()) == printed


def test_a_long_file_is_returned_unchanged() -> None:
    long = parse_document("experiment: study\nvariants: {a: null}\n", "long.yaml")
    assert expand_short(long, Path()).document is long


def test_gold_is_divided_by_its_sentences(short: ShortFile) -> None:
    sources = short.load().sources
    parts = {name: source.part for name, source in sources.items() if getattr(source, "part", None)}
    assert {name: part.take for name, part in parts.items()} == {
        "gold": "train",
        "dev": "dev",
        "test": "test",
    }
    assert {part.by for part in parts.values()} == {"sentence"}


def test_dev_and_test_sets_of_the_users_own_are_not_taken_from_gold(short: ShortFile) -> None:
    short.data(
        "mine.csv", ["left,right,rating", *(f"Cat {n} purrs,Dog {n} barks,{n % 6}" for n in range(30))]
    )
    short.with_key("sources", "{gold: pairs.csv, test: mine.csv}").with_key("variants", "[gold-only]")
    assert set(short.long()["sources"]["gold"]["part"]["shares"]) == {"train", "dev"}
    nulls = "train: {file: mine.csv, columns: null, kind: scored_pair}"
    short.with_key("sources", f"{{gold: pairs.csv, test: mine.csv, {nulls}}}")
    assert set(short.long()["sources"]["gold"]["part"]["shares"]) == {"train", "dev"}
    short.with_key("sources", "{gold: pairs.csv, dev: mine.csv, test: mine.csv}")
    assert "part" not in short.long()["sources"]["gold"]


def test_binary_gold_is_tested_as_classes(short: ShortFile) -> None:
    pairs = (f"Door {n} is open,Window {n} is closed,{n % 2}" for n in range(NUM_PAIRS))
    short.data("pairs.csv", ["left,right,is_duplicate", *pairs])
    assert short.long()["defaults"]["evaluate"]["test"] == {
        "evaluator": "pairs",
        "tasks": ["test"],
        "dev": ["dev"],
    }


def test_a_binary_test_set_without_dev_has_a_measure_without_threshold(short: ShortFile) -> None:
    pairs = (f"Door {n} is open,Window {n} is closed,{n % 2}" for n in range(NUM_PAIRS))
    short.data("pairs.csv", ["left,right,is_duplicate", *pairs])
    short.with_key("sources", "{sentences: tickets.csv, test: pairs.csv}").with_key("variants", "[untrained]")
    assert short.load().sources.keys() == {"test"}
    assert short.long()["defaults"]["evaluate"]["test"]["measure"] == "average_precision"


def test_rows_are_compared_with_gold_alone_and_without_gold_with_the_untrained_base(short: ShortFile) -> None:
    assert list(short.long()["table"]["compare_to"]) == ["gold-only"]
    short.with_key("sources", "{sentences: tickets.csv}").with_key("variants", "[untrained, dino]")
    long = short.long()
    assert long["table"]["compare_to"] == {"untrained": ["dino"]}
    assert long["sources"]["test"] == {"task": "STSb", "split": "test"}


def test_a_budget_limits_the_llm_and_prices_computing(short: ShortFile) -> None:
    long = short.long()
    assert long["llm"]["budget_usd"] == 100
    assert long["llm"]["base_url"] == "https://api.openai.com/v1"
    assert long["table"]["figures"]["frontier"] == {"costs": ["total"], "hour_usd": 1.0}


@pytest.mark.parametrize("llm", ["ollama/llama3.2", "openrouter/nobody/knows", "sandbox"])
def test_a_budget_in_tokens_limits_any_llm_also_without_a_price(short: ShortFile, llm: str) -> None:
    long = short.with_key("llm", llm).with_key("budget", "{tokens: 5000}").long()
    assert long["llm"]["budget_tokens"] == 5000
    assert "budget_usd" not in long["llm"]


@pytest.mark.parametrize("llm", ["ollama/llama3.2", "{serve: transformers, model: org/small}"])
def test_a_model_on_this_machine_takes_no_dollars(short: ShortFile, llm: str) -> None:
    assert "budget_usd" not in short.with_key("llm", llm).long()["llm"]


def test_a_patch_lies_over_its_recipe(short: ShortFile) -> None:
    short.with_key("variants", "{mine: {recipe: dino, data.x2.decay: 50}, gold-only: null}")
    rows = short.long()["variants"]
    assert list(rows) == ["mine", "gold-only"]
    assert rows["mine"]["data"]["x2"]["decay"] == 50
    assert rows["mine"]["data"]["x2"]["language_model"]["model"] == "gpt2-xl"


def test_another_trainer_keeps_base_batch_size_and_rate(short: ShortFile) -> None:
    patch = "{recipe: syncse-partial, train: {trainer: simcse, pooling: mean, max_steps: 5}}"
    short.with_key("variants", f"{{mine: {patch}}}")
    assert short.long()["variants"]["mine"]["train"] == {
        "trainer": "simcse",
        "pooling": "mean",
        "max_steps": 5,
        "base": {"model": "sandbox/encoder"},
        "batch_size": 16,
        "learning_rate": recipe("syncse-partial").rates["tiny"].use,
    }


def test_a_row_without_a_recipe_trains_as_gold_alone_does(short: ShortFile) -> None:
    mine = "{data: {gold: null, texts: {method: syncse-partial, sources: {sentences: sentences}}}}"
    short.with_key("variants", f"{{gold-only: null, mine: {mine}}}")
    rows = short.long()["variants"]
    assert rows["mine"]["train"] == rows["gold-only"]["train"]
    assert list(rows["mine"]["data"]) == ["texts"]


def test_a_first_stage_that_is_not_listed_is_added_and_told(short: ShortFile) -> None:
    short.with_key("variants", "[gold-only, syncse-then-gold]")
    study = short.load()
    assert [each.name for each in study.variants] == ["gold-only", "syncse-partial", "syncse-then-gold"]
    assert "row syncse-partial is added: syncse-then-gold starts from its model" in study.notes


def test_a_second_stage_starts_from_the_row_of_its_first(short: ShortFile) -> None:
    short.with_key("variants", "{texts: {recipe: syncse-partial}, both: {recipe: syncse-then-gold}}")
    rows = short.long()["variants"]
    assert list(rows) == ["texts", "both"]
    assert rows["both"]["train"]["starts_from"] == "texts"


def test_all_takes_what_can_be_had_and_names_the_rest(short: ShortFile) -> None:
    short.with_key("variants", "all").with_key("llm", "")
    study = short.load()
    assert {"untrained", "gold-only", "dino", "augsbert-bm25"} <= {each.name for each in study.variants}
    assert "syncse-partial is left out: it needs `llm`" in study.notes
    assert "gpl-queries is left out: it needs `sources.passages` and `llm`" in study.notes
    papers = {name for name, each in recipes().items() if each.is_of_paper}
    assert not papers & {each.name for each in study.variants}


def test_passages_alone_get_no_recipe_for_similarity_unless_it_is_named(short: ShortFile) -> None:
    short.with_key("sources", "{passages: tickets.csv}").with_key("variants", "all")
    study = short.load()
    assert all("retrieval" in recipe(each.name).tasks for each in study.variants)
    assert len(study.variants) > 3
    assert "syncse-scratch is left out: it is for similarity, and passages are for search" in study.notes
    (row,) = short.with_key("variants", "[syncse-scratch]").load().variants
    assert row.name == "syncse-scratch"


def test_what_the_data_hold_is_told(short: ShortFile) -> None:
    remarks = short.load().remarks
    assert "gold: 120 pairs, texts in 'left' and 'right', score in 'rating', graded: 0 to 5" in remarks
    assert "sentences: 20 sentences, in 'ticket'" in remarks


def test_a_version_may_be_pinned_and_two_rows_of_one_name_are_refused(short: ShortFile) -> None:
    assert list(short.with_key("variants", "[dino@1, gold-only]").long()["variants"]) == ["dino", "gold-only"]
    rows = short.with_key("variants", "{dino@1: {data.x2.decay: 50}}").long()["variants"]
    assert rows["dino"]["data"]["x2"]["method"] == "dino"
    (fault,) = short.with_key("variants", "[dino, gold-only, dino@1]").faults()
    assert fault == "6: variants.2: two rows are called 'dino'; name one yourself: NAME: {recipe: dino}"


def test_a_folder_with_a_corpus_has_the_passages(short: ShortFile) -> None:
    (short.folder / "corpus").mkdir()
    short.data("corpus/corpus.jsonl", ['{"_id": "1", "text": "The printer prints nothing."}'])
    short.with_key("sources", "{gold: pairs.csv, passages: corpus}").with_key("variants", "[gpl-queries]")
    short.load()
    assert short.long()["sources"]["passages"] == {"corpus": "corpus", "take": "passages"}


def test_a_folder_of_documents_has_the_passages(short: ShortFile) -> None:
    (short.folder / "docs").mkdir()
    short.data("docs/guide.md", ["# Printer", "", "The printer prints nothing when its lid is open."])
    short.with_key("sources", "{gold: pairs.csv, passages: docs}").with_key("variants", "[gpl-queries]")
    loaded = short.load()
    assert short.long()["sources"]["passages"] == {"documents": "docs"}
    assert loaded.sources["passages"].expected_records(loaded.roots) == 1


def test_a_base_in_the_files_folder_is_found_from_everywhere(
    short: ShortFile, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 100}
    (short.folder / "mine").mkdir()
    (short.folder / "mine" / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    (short.folder / "mine" / "model.safetensors").touch()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    row = short.with_key("base", "./mine").with_key("variants", "[gold-only]").long()["variants"]["gold-only"]
    assert row["train"]["learning_rate"] == recipe("gold-only").rates["tiny"].use


def test_an_evaluation_of_the_users_own_is_the_only_one(short: ShortFile) -> None:
    short.with_key("defaults", "{evaluate.main: {evaluator: sts, tasks: [test]}}")
    assert short.long()["defaults"] == {"evaluate.main": {"evaluator": "sts", "tasks": ["test"]}}


def test_a_row_may_read_another_source_as_the_recipes(short: ShortFile) -> None:
    short.with_key(
        "sources",
        "{gold: pairs.csv, others: {file: tickets.csv, kind: sentence, columns: {sentence: ticket}}}",
    )
    short.with_key("variants", "{mine: {recipe: dino, aliases: {sentences: others}}}")
    (row,) = short.load().variants
    assert row.parameters["data.x2.sources.x1"] == "others"


def test_faults_name_the_line_of_the_short_file(short: ShortFile) -> None:
    short.with_key("variants", "[dnio, gpl-queries]").with_key("llm", "")
    first, second = short.faults()
    assert first.startswith("5: variants.0: no recipe is called 'dnio'; did you mean 'dino'?")
    assert second == "5: variants.1: recipe 'gpl-queries' can't be had: it needs `sources.passages` and `llm`"


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("llm", "opnai/gpt-4o-mini", "llm: no provider of LLMs is called 'opnai'; did you mean 'openai'?"),
        ("llm", "gpt-4o-mini", "llm: write PROVIDER/MODEL, such as openai/gpt-4o-mini, or sandbox"),
        ("llm", "{local: x}", "llm: `local:` is gone; write {serve: transformers, model: x}"),
        ("budget", "{dollars: 3}", "budget.dollars: unknown key"),
        (
            "base",
            "org/nothing-known",
            "base: the size of 'org/nothing-known' is not known; write `base: {model:",
        ),
        ("sources", "{sentences: tickets.csv, gold: no.csv}", "sources.gold: .*no.csv: no such file"),
        ("sources", "{things: tickets.csv}", "sources.things: a file's name alone is enough for sentences"),
        ("sources", "{gold: {file: pairs.csv, columns: 5}}", "sources.gold.columns: must be a mapping, is 5"),
        ("sources", "{gold: {file: pairs.csv, columns: [left]}}", "columns: must be a mapping, is a list"),
        ("sources", "{gold: {file: pairs.csv, score_range: 5}}", "sources.gold.score_range: must be a list"),
        ("sources", "{gold: {file: pairs.csv, nokey: 5}}", "sources.gold.nokey: unknown key"),
        ("base", "''", "base: must not be empty"),
        ("base", "{model: org/x, size: huge}", "base.size: must be 'tiny', 'static'"),
        ("variants", "{mine: {recipe: dino, data.x2.decya: 5}}", "data.x2.decya: unknown key"),
        ("variants", "[]", "variants: must be `all`, a list of recipes, or a mapping"),
        ("variants", "gold-only", "variants: must be `all`, a list of recipes, or a mapping"),
        ("variants", "{mine@1: {recipe: dino}}", "variants.mine@1: must be of letters"),
        ("table", "5", "table: must be a mapping, is 5"),
        ("defaults", "{evaluate: 5}", "evaluate: must be a mapping, is 5"),
    ],
)
def test_bad_input_gets_one_line(
    short: ShortFile, key: str, value: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (found,) = short.with_key(key, value).faults()
    assert re.search(re.escape(fault) if "*" not in fault else fault, found)


def test_texts_in_a_language_that_a_recipe_lacks(short: ShortFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guess, "language", "de")
    (fault,) = short.with_key("variants", "[gold-only, syncse-partial]").faults()
    why = "it is for texts in en; sources.sentences is in de"
    assert fault == f"6: variants.1: recipe 'syncse-partial' can't be had: {why}"
    assert f"dino is left out: {why}" in short.with_key("variants", "all").load().notes
    monkeypatch.setattr("synthbench.config.short.languages_of", lambda model: ("en",))
    fault = short.faults()[0]
    assert fault.startswith(
        "3: sources.sentences: sentences: the texts' language is de, but sandbox/encoder knows en"
    )


def test_a_size_that_is_given_decides_the_rate(short: ShortFile) -> None:
    short.with_key("variants", "[gold-only]")

    def rate(base: str) -> Iterator[float]:
        yield short.with_key("base", base).long()["variants"]["gold-only"]["train"]["learning_rate"]

    assert [*rate("sandbox/encoder"), *rate("{model: org/unknown, size: large}"), *rate("roberta-base")] == [
        recipe("gold-only").rates[size].use for size in ("tiny", "large", "base")
    ]
    assert (
        "size"
        not in short.with_key("base", "{model: org/x, size: small}").long()["variants"]["gold-only"]["train"][
            "base"
        ]
    )


def test_a_profile_that_replaces_the_base_gets_the_rates_of_its_size(short: ShortFile) -> None:
    short.with_key("base", "roberta-base").with_key("variants", "[gold-only]")
    assert (
        short.long()["variants"]["gold-only"]["train"]["learning_rate"]
        == recipe("gold-only").rates["base"].use
    )
    (row,) = short.load(profile="sandbox").variants
    assert row.parameters["train.base.model"] == "sandbox/encoder"
    assert row.parameters["train.learning_rate"] == recipe("gold-only").rates["tiny"].use


def test_base_and_budget_can_be_set_on_the_command_line(short: ShortFile) -> None:
    long = short.long(assignments=("base=roberta-base", "budget.usd=3"))
    assert long["variants"]["gold-only"]["train"]["base"] == {"model": "roberta-base"}
    assert long["llm"]["budget_usd"] == 3


@pytest.mark.parametrize("name", [name for name, each in recipes().items() if not each.is_of_paper])
@pytest.mark.parametrize("size", ["tiny", "static", "small", "base", "large"])
def test_every_recipe_is_a_valid_row_for_every_size_that_it_has_rates_for(
    short: ShortFile, name: str, size: str
) -> None:
    known = recipe(name).rates
    if known and size not in known:
        pytest.skip(f"{name} has no rates for {size}")
    static = ", static: true" if size == "static" else ""
    short.with_key("sources", "{sentences: tickets.csv, gold: pairs.csv, passages: tickets.csv}")
    short.with_key("base", f"{{model: sandbox/encoder, size: {size}{static}}}").with_key(
        "variants", f"[{name}]"
    )
    assert short.load().variants[-1].name == name
