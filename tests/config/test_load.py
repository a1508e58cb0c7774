from collections.abc import Mapping

import pytest
from experiment_files import ExperimentFile
from fakes import FakeMethod
from wording import worded

from synthbench.api import GeneratedData, Need
from synthbench.config.llm import WorldLLM
from synthbench.config.load import load_experiment
from synthbench.config.schema import SeedOptimizationSection
from synthbench.models.pretrained import Prompts

# Each line is a fault in one section of the file: what is changed, and the whole message.
FAULTS = {
    "top": ("baseline: plain", "baselin: plain", "baselin: unknown key; did you mean 'baseline'?"),
    "source": (
        "kind: scored_pair, split: dev",
        "knd: scored_pair, kind: scored_pair, split: dev",
        "sources.dev.knd: unknown key; did you mean 'kind'?",
    ),
    "split of a task": (
        "{file: gold.tsv, kind: scored_pair}",
        "{task: STS12, split: train}",
        "sources.gold: STS12 has no split 'train', only test",
    ),
    "part": (
        "gold: {source: gold}\n",
        "gold: {source: gold, prepar: []}\n",
        "data.gold.prepar: unknown key; did you mean 'prepare'?",
    ),
    "step": (
        "gold: {source: gold}\n",
        "gold: {source: gold, prepare: [{step: lenght, min_words: 1}]}\n",
        "data.gold.prepare.0.step: unknown step 'lenght'; did you mean 'length'?",
    ),
    "step's key": (
        "gold: {source: gold}\n",
        "gold: {source: gold, prepare: [{step: length, min_word: 1, max_words: 3}]}\n",
        "data.gold.prepare.0.min_word: unknown key; did you mean 'min_words'?",
    ),
    "step's rule": (
        "gold: {source: gold}\n",
        "gold: {source: gold, prepare: [{step: length}]}\n",
        "data.gold.prepare.0: give min_words, max_words or both",
    ),
    "method's key": ("size: 3", "siz: 3", "data.silver.siz: unknown key; did you mean 'size'?"),
    "method's need": (
        "size: 3",
        "labeller: {model: 3}",
        "data.silver.labeller.model: must be text, is 3",
    ),
    "trainer's key": (
        "strength: 0.5",
        "strenght: 0.5",
        "train.strenght: unknown key; did you mean 'strength'?",
    ),
    "key of the section beside a trainer's": (
        "strength: 0.5",
        "selektion: {evaluator: sts}",
        "train.selektion: unknown key; did you mean 'selection'?",
    ),
    "nested key": (
        "{model: org/small}",
        "{model: org/small, num_layer: 2}",
        "train.base.num_layer: unknown key; did you mean 'num_layers'?",
    ),
    "evaluator's key": (
        "tasks: [test]",
        "tasks: [test]\n      facto: 2.0",
        "evaluate.main.facto: unknown key; did you mean 'factor'?",
    ),
    "table": (
        "columns: [test]",
        "column: [test]",
        "table.column: unknown key; did you mean 'columns'?",
    ),
    "table's column": (
        "columns: [test]",
        "columns: [tset]",
        "table.columns.0: no test set or average is called 'tset'; did you mean 'test'?",
    ),
    "table's prices": (
        "columns: [test]",
        "record_usd: {tset: 0.1}",
        "table.record_usd.tset: no source is called 'tset'; did you mean 'test'?",
    ),
    "table's ceiling": (
        "columns: [test]",
        "ceiling: [silvr]",
        "table.ceiling.0: no variant is called 'silvr'; did you mean 'silver'?",
    ),
    "table's baseline": (
        "columns: [test]",
        "compare_to: silvr",
        "table.compare_to: no variant is called 'silvr'; did you mean 'silver'?",
    ),
    "table's baselines": (
        "columns: [test]",
        "compare_to: {silvr: []}",
        "table.compare_to.silvr: no variant is called 'silvr'; did you mean 'silver'?",
    ),
    "table's compared row": (
        "columns: [test]",
        "compare_to: {silver: [silvr]}",
        "table.compare_to.silver.0: no variant is called 'silvr'; did you mean 'silver'?",
    ),
    "table's primary columns": (
        "columns: [test]",
        "primary: [tset]",
        "table.primary.0: no column of the table is called 'tset'; did you mean 'test'?",
    ),
    "family's baseline": (
        "columns: [test]",
        "family: {plian: []}",
        "table.family.plian: no variant is called 'plian'; did you mean 'plain'?",
    ),
    "family of another row than the baseline": (
        "columns: [test]",
        "family: silver",
        "table.family: no row is compared with 'silver' (`table.compare_to`, `baseline`)",
    ),
    "family's row": (
        "columns: [test]",
        "family: {plain: [silvr]}",
        "table.family.plain.0: no variant is called 'silvr'; did you mean 'silver'?",
    ),
    "family's comparison of a row with itself": (
        "columns: [test]",
        "family: {plain: [plain]}",
        "table.family.plain.0: 'plain' is compared with itself",
    ),
    "family's point of the grid": (
        "columns: [test]",
        "family: {plain: ['silver [size=3]']}",
        "table.family.plain.0: no value of the grid is called 'size=3'",
    ),
    "runtime": ("threads: null", "thread: 1", "runtime.thread: unknown key; did you mean 'threads'?"),
    "type": ("strength: 0.5", "strength: high", 'train.strength: must be a number, is "high"'),
    "quoted number": (
        "strength: 0.5",
        "strength: '0.5'",
        'train.strength: must be a number, is "0.5"',
    ),
    "range": (
        "strength: 0.5",
        "strength: 1.5",
        "train.strength: must be at most 1, is 1.5",
    ),
    "NaN": ("strength: 0.5", "strength: .nan", "train.strength: must be a finite number, is NaN"),
    "negative seed": ("[0, 1]", "[0, -1]", "seeds.1: must be at least 0, is -1"),
    "repeated seed": ("[0, 1]", "[1, 0, 1]", "seeds: a seed is listed twice; each is one run"),
    "method": (
        "method: fake",
        "method: fak",
        "data.silver.method: unknown method 'fak'; did you mean 'fake'?",
    ),
    "trainer": (
        "trainer: fake",
        "trainer: faek",
        "train.trainer: unknown trainer 'faek'; did you mean 'fake'?",
    ),
    "evaluator": (
        "evaluator: fake\n",
        "evaluator: fakes\n",
        "evaluate.main.evaluator: unknown evaluator 'fakes'; did you mean 'fake'?",
    ),
    "source's name": (
        "{source: gold}",
        "{source: glod}",
        "data.gold.source: no source is called 'glod'; did you mean 'gold'?",
    ),
    "role": (
        "sources: {gold: gold}",
        "sources: {gold: gold, dve: dev}",
        "data.silver.sources.dve: unknown role of the method; did you mean 'dev'?",
    ),
    "missing role": (
        "sources: {gold: gold}",
        "sources: {}",
        "data.silver.sources: missing role 'gold': the method needs a source of kind scored_pair",
    ),
    "roles without a method": (
        "gold: {source: gold}\n",
        "gold: {source: gold, sources: {gold: gold}}\n",
        "data.gold.sources: only a method has roles; leave it out",
    ),
    "kind for a role": (
        "file: gold.tsv, kind: scored_pair",
        "file: lines.txt",
        "data.silver.sources.gold: 'gold' holds records of kind sentence, here scored_pair is needed",
    ),
    "kind for a task": (
        "evaluator: fake\n",
        "evaluator: sentences\n",
        "evaluate.main.tasks.0: 'test' holds records of kind scored_pair, here sentence is needed",
    ),
    "task named twice": (
        "tasks: [test]",
        "tasks: [test, test]",
        "evaluate.main.tasks.1: 'test' is evaluated already; to do it twice, give the source two names",
    ),
    "selection on a test set": (
        "sources: [dev]",
        "sources: [dev, test]",
        "train.selection.sources.1: 'test' is a test set; test sets are never trained on",
    ),
    "data of a test set": (
        "source: gold",
        "source: test",
        "data.gold.source: 'test' is a test set; test sets are never trained on",
    ),
    "method that learns from a test set": (
        "sources: {gold: gold}",
        "sources: {gold: test}",
        "data.silver.sources.gold: 'test' is a test set; test sets are never trained on",
    ),
    "unused source": (
        "seeds:",
        "  extra: {file: gold.tsv, kind: pair}\nseeds:",
        "sources.extra: is used by no variant",
    ),
    "data without training": (
        "trainer: fake",
        "trainer: none",
        "data: trainer 'none' takes no data; leave it empty",
    ),
    "training without data": (
        "    gold: {source: gold}",
        "    {}",
        "data: trainer 'fake' needs data, there is none (in plain)",
    ),
    "a patch of nothing": (
        "data.silver:\n      method: fake\n      sources: {gold: gold}\n      size: 3",
        "train.strength: 0.5",
        "variants.silver: patches nothing: every value is the defaults' own"
        " (name that row with `baseline:` instead)",
    ),
    "an empty patch": (
        "    data.silver:\n      method: fake\n      sources: {gold: gold}\n      size: 3",
        "    {}",
        "variants.silver: patches nothing: every value is the defaults' own"
        " (name that row with `baseline:` instead)",
    ),
    "part of nothing": (
        "gold: {source: gold}\n",
        "gold: {prepare: []}\n",
        "data.gold: needs `source:` or `method:`",
    ),
    "name": (
        "  silver:\n",
        "  silver one:\n",
        'variants.silver one: must be of letters, digits, _ and -, and dots between them, is "silver one"',
    ),
    "no list": ("[0, 1]", "3", "seeds: must be a list, is 3"),
    "no mapping": (
        "gold: {source: gold}\n",
        "gold: gold\n",
        'data.gold: must be a mapping, is "gold"',
    ),
    "two natures": (
        "gold: {source: gold}\n",
        "gold: {source: gold, method: fake}\n",
        "data.gold: has both `source:` and `method:`; it needs one of them",
    ),
    "axis without values": (
        "table:\n",
        "grid: {rate: {}}\ntable:\n",
        "grid.rate: must not be empty",
    ),
    "selection of one": (
        "size: 3",
        "size: 3\n    select: {over: {train.strength: [0.1]}}",
        "select.over.train.strength: must hold at least 2 values",
    ),
    "selection over an unknown key": (
        "size: 3",
        "size: 3\n    select: {over: {train.strenth: [0.1, 0.2]}}",
        "train.strenth: unknown key; did you mean 'strength'?",
    ),
    "selection over the test": (
        "size: 3",
        "size: 3\n    select: {over: {evaluate.main.factor: [0.1, 0.2]}}",
        "select: ranges over data and train only, not over evaluate",
    ),
}


def test_the_file_without_planted_faults_is_valid(experiment: ExperimentFile) -> None:
    loaded = experiment.load()
    assert [variant.label for variant in loaded.variants] == ["plain", "silver"]
    assert loaded.seeds == (0, 1)
    assert loaded.tasks == ("test",)
    assert loaded.notes == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_gets_exactly_one_line_with_its_key(experiment: ExperimentFile, fault: str) -> None:
    old, new, message = FAULTS[fault]
    (found,) = experiment.change(old, new).faults()
    place, _, rest = found.partition(": ")
    assert rest == message
    assert place.startswith("study.yaml:")


def test_a_source_must_have_a_type(experiment: ExperimentFile) -> None:
    (message,) = experiment.change("{file: gold.tsv, kind: scored_pair}", "{kind: scored_pair}").faults()
    assert message.startswith("study.yaml:3: sources.gold: needs")
    assert "`task:`" in message
    assert "`file:`" in message


def test_faults_have_the_line_of_their_key(experiment: ExperimentFile) -> None:
    experiment.change("strength: 0.5", "strenght: 0.5").change("size: 3", "siz: 3")
    lines = [message.split(": ")[0] for message in experiment.faults()]
    assert lines == [f"study.yaml:{experiment.line(key)}" for key in ("strenght", "siz:")]


def test_a_file_with_eight_faults_gets_eight_lines(experiment: ExperimentFile) -> None:
    for fault in (
        "top",
        "source",
        "part",
        "method's key",
        "trainer's key",
        "evaluator's key",
        "table",
        "type",
    ):
        if fault == "type":
            experiment.change("{model: org/small}", "{model: 3}")
        else:
            old, new, _ = FAULTS[fault]
            experiment.change(old, new)
    faults = experiment.faults()
    assert len(faults) == 8
    assert sum("unknown key; did you mean" in fault for fault in faults) == 7


def test_a_fault_of_the_defaults_is_reported_once(
    experiment: ExperimentFile,
) -> None:
    experiment.append(
        "grid:\n  rate:\n    low: {train.base.num_layers: 1}\n    high: {train.base.num_layers: 2}\n"
    )
    assert len(experiment.change("strength: 0.5", "strength: high").faults()) == 1


def test_a_variant_may_repeat_one_value_of_the_grid(experiment: ExperimentFile) -> None:
    experiment.change(
        "    data.silver:\n      method: fake\n      sources: {gold: gold}\n      size: 3",
        "    train.strength: 0.1",
    )
    experiment.append("grid:\n  rate:\n    low: {train.strength: 0.1}\n    high: {train.strength: 0.9}\n")
    loaded = experiment.load()
    assert [variant.label for variant in loaded.variants] == ["plain [rate=low]", "plain [rate=high]"]
    assert loaded.notes == (
        "silver [rate=low] is the same as plain [rate=low]; it is shown once",
        "silver [rate=high] is the same as plain [rate=low]; it is shown once",
    )


def test_a_row_that_ignores_a_grid_axis_is_shown_once_without_the_axis(
    experiment: ExperimentFile,
) -> None:
    experiment.append("grid:\n  rate:\n    low: {train.strength: 0.1}\n    high: {train.strength: 0.9}\n")
    experiment.change("      size: 3\n", "      size: 3\n    train.strength: 0.3\n")
    loaded = experiment.load()
    labels = [variant.label for variant in loaded.variants]
    assert labels == ["plain [rate=low]", "plain [rate=high]", "silver"]
    assert len(loaded.notes) == 1


def test_a_row_equal_at_only_some_axis_values_is_shown_with_the_axis(experiment: ExperimentFile) -> None:
    experiment.append(
        "grid:\n  rate:\n    low: {train.strength: 0.1}\n    high: {train.strength: 0.9}\n"
        "    highest: {train.strength: 0.9, variants: {plain: {train.strength: 1.0}}}\n"
    )
    loaded = experiment.load()
    assert [variant.label for variant in loaded.variants] == [
        "plain [rate=low]",
        "silver [rate=low]",
        "plain [rate=high]",
        "silver [rate=high]",
        "plain [rate=highest]",
    ]
    assert loaded.notes == ("silver [rate=highest] is the same as silver [rate=high]; it is shown once",)


def test_later_patches_override_earlier_ones(experiment: ExperimentFile) -> None:
    """Defaults < grid < variant < profile < --set, each seen where the next is silent."""

    def strengths(*assignments: str, profile: str | None = None) -> list[object]:
        loaded = experiment.load(*assignments, profile=profile)
        return [variant.parameters["train.strength"] for variant in loaded.variants]

    assert strengths() == [0.5, 0.5]
    experiment.append("grid:\n  rate:\n    only: {train.strength: 0.1}\n")
    assert strengths() == [0.1, 0.1]
    experiment.change("      size: 3\n", "      size: 3\n    train.strength: 0.2\n")
    assert strengths() == [0.1, 0.2]
    experiment.profile("tiny", "run: {train.strength: 0.3}\n")
    assert strengths(profile="tiny") == [0.3, 0.3]
    assert strengths("train.strength=0.4", profile="tiny") == [0.4, 0.4]
    assert strengths("train.strength=0.4", "train.strength=0.6") == [0.6, 0.6]


def test_set_changes_the_top_level_the_defaults_and_one_variant(experiment: ExperimentFile) -> None:
    loaded = experiment.load(
        "seeds=[7]", "defaults.train.strength=0.25", "variants.silver.data.silver.size=9"
    )
    assert loaded.seeds == (7,)
    plain, silver = loaded.variants
    assert plain.parameters["train.strength"] == 0.25
    assert silver.parameters["data.silver.size"] == 9


def test_an_unknown_key_is_at_fault_even_if_it_is_null(experiment: ExperimentFile) -> None:
    experiment.append("defaults.train.selection: null\nvary_: null\n")
    assert [each.split(": ", 1)[1].split(";")[0] for each in experiment.faults()] == [
        "defaults.train.selection: unknown key",
        "vary_: unknown key",
    ]


def test_set_to_null_removes_a_key(experiment: ExperimentFile) -> None:
    loaded = experiment.load("train.selection=null", variants=("plain",))
    assert loaded.variants[0].candidates[0].config.selection is None


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("trian.strength=1", "trian: unknown key; did you mean 'train'?"),
        ("train.strenth=1", "train.strenth: unknown key; did you mean 'strength'?"),
        ("train.strength=x", 'train.strength: must be a number, is "x"'),
        ("seeds=[-1]", "seeds.0: must be at least 0, is -1"),
        ("train.strength", "must read PATH=VALUE, such as train.learning_rate=2e-5"),
        ("=3", "must read PATH=VALUE, such as train.learning_rate=2e-5"),
        ("train..strength=1", "must read PATH=VALUE, such as train.learning_rate=2e-5"),
    ],
)
def test_an_invalid_set_is_quoted(experiment: ExperimentFile, assignment: str, message: str) -> None:
    assert experiment.faults(assignment) == [f"--set {assignment}: {message}"]


def test_all_sets_that_can_not_be_read_are_named(experiment: ExperimentFile) -> None:
    assert [message[:12] for message in experiment.faults("a", "seeds=[0]", "b")] == [
        "--set a: mus",
        "--set b: mus",
    ]


def test_a_set_that_is_no_yaml_is_quoted_in_one_line(experiment: ExperimentFile) -> None:
    (message,) = experiment.faults("train.strength=[1")
    assert message.startswith("--set train.strength=[1")
    assert "not valid YAML" in message


def test_a_source_may_be_unused_because_of_an_override(experiment: ExperimentFile) -> None:
    assert experiment.faults("train.selection=null") == []
    experiment.profile("tiny", "run: {train.selection: null}\n")
    assert experiment.faults(profile="tiny") == []


def test_variants_can_be_picked_and_unknown_ones_are_all_named(experiment: ExperimentFile) -> None:
    assert [variant.name for variant in experiment.load(variants=("silver",)).variants] == ["silver"]
    worded(experiment.faults(variants=("silvr", "other")), "--variant", "study.yaml", "'silver'")


def test_only_the_selected_variants_must_be_valid(experiment: ExperimentFile) -> None:
    experiment.change("size: 3", "siz: 3")
    assert experiment.faults(variants=("plain",)) == []


def test_selection_gives_a_variant_one_candidate_for_each_combination(experiment: ExperimentFile) -> None:
    experiment.change(
        "size: 3", "size: 3\n    select: {over: {data.silver.size: [1, 2], train.strength: [0.1, 0.2]}}"
    )
    _, silver = experiment.load().variants
    assert [dict(candidate.chosen) for candidate in silver.candidates] == [
        {"data.silver.size": size, "train.strength": strength} for size in (1, 2) for strength in (0.1, 0.2)
    ]
    assert silver.parameters["data.silver.size"] == [1, 2]


def test_candidates_need_a_dev_score(experiment: ExperimentFile) -> None:
    experiment.change("    selection: {evaluator: fake, sources: [dev]}\n", "")
    experiment.change("tasks: [test]", "tasks: [test, dev]")
    (message,) = experiment.faults("select.over={train.strength: [0.1, 0.2]}")
    assert message.endswith("select: needs train.selection: candidates are compared on dev")


def test_the_dev_scores_of_candidates_must_be_comparable(experiment: ExperimentFile) -> None:
    over = "size: 3\n    select: {over: {train.selection.sources: [[dev], [gold]]}}"
    (message,) = experiment.change("size: 3", over).faults()
    assert message.endswith("select: candidates must have the same train.selection")


def test_an_evaluator_of_vectors_needs_a_trainer_that_makes_an_encoder(experiment: ExperimentFile) -> None:
    experiment.change("trainer: fake", "trainer: fake-scorer").change(
        "evaluator: fake\n", "evaluator: vectors\n"
    )
    (message,) = experiment.faults()
    assert message.endswith(
        "evaluate.main.evaluator: 'vectors' needs an encoder, the trainer makes a pair scorer"
    )


def test_an_evaluation_may_have_its_own_prompts(experiment: ExperimentFile) -> None:
    experiment.change("tasks: [test]", "tasks: [test]\n      prompts: {query: 'q: '}")
    (plan,) = experiment.load().variants[0].candidates[0].config.evaluations
    assert plan.prompts == Prompts(query="q: ", passage="")
    (message,) = experiment.change("trainer: fake", "trainer: fake-scorer").faults()
    assert message.endswith(
        "evaluate.main.prompts: an encoder reads prompts, the trainer makes a pair scorer; leave them out"
    )


def test_a_selection_is_by_an_evaluator_of_pairs(experiment: ExperimentFile) -> None:
    experiment.change("{evaluator: fake, sources", "{evaluator: vectors, sources")
    (message,) = experiment.faults()
    assert "select with an evaluator that scores pairs" in message


LEARNER = "evaluator: learner\n      dev: [dev]\n"


def test_an_evaluator_may_not_learn_from_a_test_set(experiment: ExperimentFile) -> None:
    experiment.change("evaluator: fake\n", LEARNER)
    (plan,) = experiment.load().variants[0].candidates[0].config.evaluations
    assert (plan.train, plan.dev) == ((), ("dev",))
    worded(
        experiment.faults("defaults.evaluate.main.dev=[test]", "defaults.evaluate.main.train=[gld]"),
        "--set",
        "defaults.evaluate.main.train=[gld]",
        "evaluate.main.train.0",
        "'gld'",
        "'gold'",
        "defaults.evaluate.main.dev=[test]",
        "evaluate.main.dev.0",
        "'test'",
        "test",
    )


def test_runtime_overrides_do_not_excuse_unused_sources(experiment: ExperimentFile) -> None:
    experiment.change("seeds:", "  extra: {file: gold.tsv, kind: pair}\nseeds:")
    for overrides in ((), ("runtime.threads=1",)):
        (message,) = experiment.faults(*overrides)
        assert message.endswith("sources.extra: is used by no variant")


def test_an_evaluators_missing_training_data_are_named(experiment: ExperimentFile) -> None:
    experiment.change("evaluator: fake\n", "evaluator: learner\n")
    (message,) = experiment.faults()
    assert message.endswith("evaluate.main: give `dev`")


def test_an_evaluator_without_training_refuses_training_data(experiment: ExperimentFile) -> None:
    experiment.change("evaluator: fake\n", "evaluator: fake\n      dev: [dev]\n")
    (message,) = experiment.faults()
    assert message.endswith("evaluate.main.dev: 'fake' learns nothing from it; leave it out")


def test_seed_optimization_needs_dev_and_a_trainer_that_can_pause(experiment: ExperimentFile) -> None:
    optimization = "defaults.train.seed_optimization={seeds: 3}"
    (message,) = experiment.faults(optimization)
    assert message.endswith("trainer 'fake' can't begin with several seeds and go on with one")
    pausing = experiment.change("trainer: fake", "trainer: pausing")
    train = pausing.load(optimization).variants[0].candidates[0].config
    assert train.seed_optimization == SeedOptimizationSection(seeds=3, at=0.2)
    (message,) = pausing.faults(optimization, "defaults.train.selection=null")
    assert message.endswith("needs train.selection: dev decides which training goes on")


def test_a_profile_patches_the_top_level_and_every_run(experiment: ExperimentFile) -> None:
    experiment.profile(
        "tiny", "experiment: {seeds: [0], sources.gold.sample: {size: 2}}\nrun: {data.silver: null}\n"
    )
    loaded = experiment.load(profile="tiny")
    assert loaded.seeds == (0,)
    assert loaded.sources["gold"].sample is not None
    assert [variant.name for variant in loaded.variants] == ["plain"]
    assert loaded.notes == ("silver is the same as plain; it is shown once",)


def test_a_profile_patches_one_experiment_by_its_name(experiment: ExperimentFile) -> None:
    """Between the patch of all and `--set`; another experiment's patch is of no matter."""
    experiment.profile(
        "tiny",
        "experiment: {seeds: [5], description: all}\n"
        "experiments:\n  study: {seeds: [6], defaults.train.strength: 0.7}\n  other: {sources.no.file: x}\n",
    )
    loaded = experiment.load(profile="tiny")
    assert (loaded.seeds, loaded.description) == ((6,), "all")
    assert [variant.parameters["train.strength"] for variant in loaded.variants] == [0.7, 0.7]
    assert experiment.load("seeds=[7]", profile="tiny").seeds == (7,)


def test_a_missing_profile_names_the_nearest(experiment: ExperimentFile) -> None:
    experiment.profile("sandbox", "run: {}\n")
    worded(experiment.faults(profile="sandbx"), "--profile", "profiles/sandbx.yaml", "'sandbox'")


def test_replacements_of_a_profile_and_an_unused_llm_are_noted(
    experiment: ExperimentFile,
) -> None:
    assert experiment.load().remarks == ()
    experiment.profile("tiny", "substitute: {models: {org/small: tiny/one}}\n")
    assert experiment.load(profile="tiny").remarks == ("--profile tiny: org/small -> tiny/one",)
    assert experiment.load("llm=sandbox").remarks == ("llm: nothing uses it",)
    experiment.change("      method: fake\n", "      method: fake-llm\n").change("      size: 3\n", "")
    assert experiment.load("llm=sandbox").remarks == ()


def test_a_setting_can_be_added_to_an_llm_in_short_form(experiment: ExperimentFile) -> None:
    experiment.append("llm: sandbox\n")
    llm = experiment.load("llm.noise=0.1", "llm.seed=3").llms["llm"].settings
    assert isinstance(llm, WorldLLM)
    assert (llm.endpoint, llm.noise, llm.seed) == ("sandbox", 0.1, 3)
    worded(experiment.faults("llm.nose=0.1"), "--set", "llm.nose=0.1", "llm.nose", "'noise'")


def test_faults_of_a_profile_name_its_file(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", "description: x\nru: {}\n")
    worded(experiment.faults(profile="tiny"), "profiles/tiny.yaml:2", "'run'")
    experiment.profile("tiny", "run:\n  train.strenth: 1\n")
    (message,) = experiment.faults(profile="tiny")
    worded(message, "profiles/tiny.yaml:2", "train.strenth", "'strength'")


SUBSTITUTES = 'substitute:\n  models: {"org/small": tiny/one, "org/*": tiny/other}\n'


def test_a_profile_substitutes_models_by_the_first_pattern_that_matches(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", SUBSTITUTES)
    experiment.change("      size: 3\n", "      size: 3\n    train.base.model: org/large\n")
    configs = [v.candidates[0].config for v in experiment.load(profile="tiny").variants]
    assert [config.parameters["train.base.model"] for config in configs] == ["tiny/one", "tiny/other"]


def test_patterns_for_a_models_role_precede_general_ones(experiment: ExperimentFile) -> None:
    roles = "  roles: {fake: {'org/small': tiny/trained}, labeller: {'*': tiny/judge}}\n"
    experiment.profile("tiny", SUBSTITUTES + roles)
    experiment.change("      size: 3\n", "      size: 3\n      labeller: {model: org/judge}\n")
    experiment.change("sources: {gold: gold}", "sources: {gold: gold, dev: dev}")
    parameters = [v.candidates[0].config.parameters for v in experiment.load(profile="tiny").variants][1]
    assert parameters["train.base.model"] == "tiny/trained"
    assert parameters["data.silver.labeller.model"] == "tiny/judge"


def test_a_model_without_a_matching_pattern_is_a_fault_unless_it_is_a_substitute(
    experiment: ExperimentFile,
) -> None:
    experiment.profile("tiny", SUBSTITUTES).change("{model: org/small}", "{model: tiny/other}")
    assert experiment.faults(profile="tiny") == []
    experiment.change("{model: tiny/other}", "{model: big/model}")
    (message,) = experiment.faults(profile="tiny")
    line = experiment.line("big/model")
    worded(message, f"study.yaml:{line}", "train.base.model", "'big/model'", "`substitute.models`")


def test_models_among_which_dev_selects_are_substituted_too(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", SUBSTITUTES)
    experiment.change("size: 3", "size: 3\n    select: {over: {train.base.model: [org/small, org/large]}}")
    candidates = experiment.load(profile="tiny").variants[1].candidates
    models = [candidate.config.parameters["train.base.model"] for candidate in candidates]
    assert models == ["tiny/one", "tiny/other"]


TASKS = """\
substitute:
  tasks:
    STSb/dev: {sandbox: pairs, size: 20}
    "STS*": {sandbox: pairs, size: 30, seed: 1}
"""


def test_a_profile_substitutes_tasks_which_keep_their_split_and_sample(experiment: ExperimentFile) -> None:
    experiment.change("{file: dev.tsv, kind: scored_pair, split: dev}", "{task: STSb, split: dev}")
    experiment.change("{file: gold.tsv, kind: scored_pair}", "{task: STSb, split: train, sample: {size: 9}}")
    experiment.change("{file: test.tsv, kind: scored_pair, split: test}", "{task: STS12}")
    sources = experiment.profile("tiny", TASKS).load(profile="tiny").sources
    described = {name: source.model_dump(exclude_defaults=True) for name, source in sources.items()}
    other = {"sandbox": "pairs", "size": 30, "seed": 1}
    assert described == {
        "gold": {**other, "split": "train", "sample": {"size": 9}},
        "dev": {"sandbox": "pairs", "size": 20, "split": "dev"},
        "test": {**other, "split": "test"},
    }


def test_a_profile_substitutes_hub_files_by_their_kind(experiment: ExperimentFile) -> None:
    experiment.change("{file: gold.tsv, kind: scored_pair}", "{hub: org/sts, file: a.csv, kind: scored_pair}")
    pattern = '    "org/sts/*.csv/scored_pair": {sandbox: pairs, size: 20, split: train}\n'
    gold = experiment.profile("tiny", TASKS + pattern).load(profile="tiny").sources["gold"]
    assert gold.model_dump(exclude_defaults=True) == {"sandbox": "pairs", "size": 20, "split": "train"}
    assert "--profile tiny: org/sts/a.csv -> sandbox pairs" in experiment.load(profile="tiny").remarks
    experiment.profile("tiny", TASKS)
    line = experiment.line("org/sts")
    worded(
        experiment.faults(profile="tiny"),
        f"study.yaml:{line}",
        "sources.gold.hub",
        "'org/sts/a.csv/scored_pair'",
        "--set",
        "'sources.gold={sandbox: pairs, split: train, size: 500}'",
        "`substitute.tasks`",
    )


def test_a_tasks_substitute_is_converted_like_the_task(experiment: ExperimentFile) -> None:
    experiment.change("{file: gold.tsv, kind: scored_pair}", "{task: STSb, split: train, as: scored_pair}")
    gold = experiment.profile("tiny", TASKS).load(profile="tiny").sources["gold"]
    assert gold.model_dump(exclude_defaults=True)["as"] == "scored_pair"


def test_a_converted_source_has_its_new_kind(experiment: ExperimentFile) -> None:
    experiment.change(
        "{file: gold.tsv, kind: scored_pair}", "{file: gold.tsv, kind: scored_pair, as: sentence}"
    )
    faults = experiment.faults()
    assert any("'gold' holds records of kind sentence, here scored_pair is needed" in each for each in faults)


def test_a_task_that_no_pattern_matches_is_a_fault_and_other_sources_stay(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", TASKS)
    assert experiment.faults(profile="tiny") == []
    experiment.change("{file: test.tsv, kind: scored_pair, split: test}", "{task: SICK-R}")
    line = experiment.line("SICK-R")
    worded(
        experiment.faults(profile="tiny"),
        f"study.yaml:{line}",
        "sources.test.task",
        "'SICK-R/test'",
        "--set",
        "'sources.test={sandbox: pairs, split: test, size: 500}'",
        "`substitute.tasks`",
    )
    remedy = "sources.test={sandbox: pairs, split: test, size: 500}"
    assert experiment.faults(remedy, profile="tiny") == []


def test_an_unknown_task_is_reported_as_unknown_not_as_without_substitute(
    experiment: ExperimentFile,
) -> None:
    experiment.profile("tiny", TASKS)
    experiment.change("{file: test.tsv, kind: scored_pair, split: test}", "{task: SICKR}")
    (message,) = experiment.faults(profile="tiny")
    assert message.endswith("; did you mean 'SICK-R'?")


def test_a_task_name_that_is_no_text_is_a_fault_even_with_a_profile(experiment: ExperimentFile) -> None:
    experiment.profile("tiny", TASKS)
    experiment.change("{file: test.tsv, kind: scored_pair, split: test}", "{task: {a: b}}")
    (message,) = experiment.faults(profile="tiny")
    assert message.startswith(f"study.yaml:{experiment.line('a: b')}: sources.test.task: ")


def test_validating_reads_no_data_file(experiment: ExperimentFile) -> None:
    for file in experiment.folder.glob("*.tsv"):
        file.unlink()
    assert experiment.faults() == []


def test_the_resolved_experiment_has_the_overrides(experiment: ExperimentFile) -> None:
    assert "overrides" not in experiment.load().resolved
    experiment.profile("tiny", SUBSTITUTES + "run: {train.strength: 0.25}\nexperiment: {seeds: [4]}\n")
    resolved = experiment.load("data.silver=null", "table.decimals=1", profile="tiny").resolved
    assert resolved["overrides"] == {
        "train": {"strength": 0.25},
        "data": {"silver": None},
        "substitute": {"models": {"org/small": "tiny/one", "org/*": "tiny/other"}},
    }
    assert (resolved["seeds"], resolved["table"]) == ([4], {"columns": ["test"], "decimals": 1})


def test_null_removes_an_axis_value_an_axis_or_a_variant(experiment: ExperimentFile) -> None:
    experiment.append("grid:\n  rate:\n    low: {train.strength: 0.1}\n    high: {train.strength: 0.9}\n")

    def labels(*assignments: str) -> list[str]:
        return [variant.label for variant in experiment.load(*assignments).variants]

    assert labels("grid.rate.low=null") == ["plain [rate=high]", "silver [rate=high]"]
    assert labels("grid.rate=null") == ["plain", "silver"]
    assert labels("variants.silver=null") == ["plain [rate=low]", "plain [rate=high]"]
    only = "grid.rate={only: {train.strength: 0.4}}"
    assert labels("grid.rate=null", only) == ["plain [rate=only]", "silver [rate=only]"]
    assert len(labels(only)) == 6, "mappings merge"


def test_a_profile_or_including_file_can_remove_variants(experiment: ExperimentFile) -> None:
    experiment.profile("less", "experiment: {variants.silver: null}\n")
    assert [variant.name for variant in experiment.load(profile="less").variants] == ["plain"]
    experiment.change("table:\n", "  other: {train.strength: 0.1}\ntable:\n")
    including = experiment.folder / "including.yaml"
    including.write_text("include: [study.yaml]\nvariants: {silver: null}\n", encoding="utf-8")
    assert [variant.name for variant in load_experiment(including).variants] == ["plain", "other"]


@pytest.mark.parametrize("removal", ["train.selection: null", "train: {selection: null}"])
def test_an_including_file_can_remove_parts_of_the_defaults(experiment: ExperimentFile, removal: str) -> None:
    including = experiment.folder / "including.yaml"
    including.write_text(
        f"include: [study.yaml]\nsources: {{dev: null}}\ndefaults: {{{removal}}}\n", encoding="utf-8"
    )
    variants = load_experiment(including).variants
    assert [variant.candidates[0].config.selection for variant in variants] == [None] * 2


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("variants.silvr", "; did you mean 'silver'?"),
        ("grid.rate", ""),
    ],
)
def test_a_missing_name_can_not_be_removed(experiment: ExperimentFile, path: str, hint: str) -> None:
    worded(experiment.faults(f"{path}=null"), "--set", f"{path}=null", str(path), hint)


def test_a_removed_variant_may_stay_in_the_table(experiment: ExperimentFile) -> None:
    experiment.change("columns: [test]", "ceiling: [silver]")
    assert experiment.faults("variants.silver=null") == []


UNTRAINED = "variants:\n  bare:\n    data.gold: null\n    train: {trainer: none, base: {model: org/small}}\n"


def test_an_override_of_all_rows_names_the_rows_in_which_it_fails(
    experiment: ExperimentFile,
) -> None:
    experiment.change("variants:\n", UNTRAINED)
    worded(
        experiment.faults("train.selection.evaluator=fake"),
        "--set",
        "train.selection.evaluator=fake",
        "train.selection",
        "defaults.train.selection.evaluator=fake",
        "--variant",
    )
    worded(
        experiment.faults("data.silver.size=5"),
        "--set",
        "data.silver.size=5",
        "data.silver",
        "variants.NAME.data.silver.size=5",
        "--variant",
        "study.yaml:8",
        "'none'",
    )


def test_a_fault_of_all_rows_names_no_row(
    experiment: ExperimentFile,
) -> None:
    experiment.change("variants:\n", UNTRAINED).change("size: 3", "size: -3")
    experiment.append("grid:\n  rate:\n    low: {train.strength: -1}\n    high: {train.strength: 0.9}\n")
    worded(
        [fault.split(": ", 1)[1] for fault in experiment.faults()],
        "train.strength",
        "-1",
        "data.silver.size",
        "-3",
    )


def test_a_fault_of_all_rows_of_a_variant_names_the_variant(experiment: ExperimentFile) -> None:
    experiment.append("grid:\n  rate:\n    low: {train.strength: 0.2}\n    high: {train.strength: 0.9}\n")
    (fault,) = experiment.faults("data.silver.size=5")
    assert "(in plain; to spare them" in fault


def test_no_fault_of_a_section_hides_another(experiment: ExperimentFile) -> None:
    experiment.change(
        "      method: fake\n      sources: {gold: gold}\n      size: 3\n",
        "      method: fak\n      sources: {gold: glod}\n      prepare: [{step: lenght}]\n",
    )
    experiment.change("trainer: fake\n", "trainer: faek\n").change("sources: [dev]", "sources: [dve]")
    experiment.change(
        "evaluator: fake\n      tasks: [test]", "evaluator: fakes\n      tasks: [tst]\n      exclude: [gld]"
    )
    experiment.change("columns: [test]", "column: [test]\n  ceiling: [silvr]\n  averages: {both: [tsst]}")
    faults = [message.split(": ", 1)[1].split(": ")[0] for message in experiment.faults()]
    assert sorted(faults) == [
        "data.silver.method",
        "data.silver.prepare.0.step",
        "data.silver.sources.gold",
        "evaluate.main.evaluator",
        "evaluate.main.exclude.0",
        "evaluate.main.tasks.0",
        "table.averages.both.0",
        "table.ceiling.0",
        "table.column",
        "train.selection.sources.0",
        "train.trainer",
    ]


def test_a_methods_fault_does_not_hide_those_of_its_dependencies(experiment: ExperimentFile) -> None:
    experiment.change("size: 3", "size: -1\n      labeller: {model: org/small, num_layers: 2, layer: 3}")
    experiment.change("base: {model: org/small}\n", "base: {model: /no/such/folder}\n    strenght: 1\n")
    keys = [message.split(": ", 1)[1].split(": ")[0] for message in experiment.faults()]
    assert keys == ["train.strenght", "data.silver.size", "data.silver.labeller.layer"]


def test_a_fault_of_a_source_does_not_hide_faults_of_its_uses(experiment: ExperimentFile) -> None:
    experiment.change("file: gold.tsv, kind: scored_pair}", "file: gold.tsv, kind: scored}")
    experiment.change("{source: gold}", "{source: glod}")
    keys = [message.split(": ")[1] for message in experiment.faults()]
    assert keys == ["sources.gold.kind", "data.gold.source"]


def test_a_baseline_may_not_have_a_variants_name(experiment: ExperimentFile) -> None:
    (fault,) = experiment.change("baseline: plain", "baseline: silver").faults()
    assert fault.endswith(
        "baseline: 'silver' is a variant; the row of the unpatched defaults needs a name of its own"
    )


def test_a_steps_columns_must_exist_in_the_part(experiment: ExperimentFile) -> None:
    step = "{step: keep-per-group, columns: [sentence1, lable], most: 2}"
    experiment.change("    gold: {source: gold}\n", f"    gold: {{source: gold, prepare: [{step}]}}\n")
    (fault,) = experiment.faults()
    assert fault.endswith(
        "data.gold.prepare.0: keep-per-group: scored_pair records have no column 'lable' to group by;"
        " did you mean 'label'?"
    )


def test_a_step_must_support_the_parts_kind(experiment: ExperimentFile) -> None:
    experiment.change("kind: scored_pair, split: dev", "kind: sentence, split: dev")
    experiment.change("sources: [dev]", "sources: [gold]")
    experiment.change(
        "    gold: {source: gold}\n",
        "    gold: {source: gold}\n    more: {source: dev, prepare: [{step: drop-identical}]}\n",
    )
    (fault,) = experiment.faults()
    assert fault.endswith(
        "data.more.prepare.0: drop-identical: is for pair, ranking, scored_pair, triplet records, "
        "not for sentence records"
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("data.silvr.size", "'data.silvr.size' is no setting of this run; did you mean 'data.silver'?"),
        ("size", "'size' is no setting of this run; known: data.gold, data.silver, train"),
    ],
)
def test_a_select_of_an_unknown_setting_names_the_known_ones(
    experiment: ExperimentFile, path: str, message: str
) -> None:
    (fault,) = experiment.change("size: 3", f"size: 3\n    select: {{over: {{{path}: [1, 2]}}}}").faults()
    assert fault.endswith(f"select.over.{path}: {message}")


def test_the_order_of_excluded_sources_does_not_matter(experiment: ExperimentFile) -> None:
    experiment.change("tasks: [test]", "tasks: [test]\n      exclude: [gold, dev]")
    experiment.append("  # \n")
    configs = [
        [variant.candidates[0].config for variant in experiment.load(*assignment).variants]
        for assignment in ((), ("evaluate.main.exclude=[dev, gold]",))
    ]
    assert [config.evaluations for config in configs[0]] == [config.evaluations for config in configs[1]]


def test_a_dependencys_role_must_have_a_source(
    experiment: ExperimentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def needs(_: FakeMethod) -> Mapping[str, Need]:
        return {"examples": GeneratedData("fake", {"size": 2}, {"gold": "dev"})}

    monkeypatch.setattr(FakeMethod, "needs", lambda self: needs(self) if self.size == 3 else {})
    (fault,) = experiment.faults()
    assert fault.endswith(
        "data.silver.sources: missing role 'dev': with these settings the method's examples is made from it"
    )
    experiment.change("sources: {gold: gold}", "sources: {gold: gold, dev: dev}")
    assert experiment.faults() == []


def test_names_of_variants_and_axis_values_may_hold_dots(experiment: ExperimentFile) -> None:
    experiment.change("  silver:\n", "  size-0.5:\n")
    experiment.append("grid:\n  rate:\n    1e-1.5: {train.strength: 0.25}\n    2.5: {train.strength: 0.75}\n")
    labels = {(variant.name, variant.axes["rate"]) for variant in experiment.load().variants}
    assert labels == {(name, rate) for name in ("plain", "size-0.5") for rate in ("1e-1.5", "2.5")}


def strengths(experiment: ExperimentFile, *assignments: str) -> dict[str, float]:
    variants = experiment.load(*assignments).variants
    trainers = {variant.name: variant.candidates[0].config.trainer for variant in variants}
    return {name: getattr(trainer, "strength", -1.0) for name, trainer in trainers.items()}


def test_an_override_path_refers_to_the_variant_with_the_longest_matching_name(
    experiment: ExperimentFile,
) -> None:
    experiment.change("table:\n", "  a: {train.strength: 0.1}\n  a.b: {train.strength: 0.2}\ntable:\n")
    assert strengths(experiment, "variants.a.b.train.strength=0.9") == strengths(experiment) | {"a.b": 0.9}
    assert strengths(experiment, "variants.a.train.strength=0.9") == strengths(experiment) | {"a": 0.9}
    assert strengths(experiment, "variants={a.c: {train.strength: 0.3}}")["a.c"] == 0.3
    assert "a.b" not in strengths(experiment, "variants.a.b=null")
    assert "a" in strengths(experiment, "variants.a.b=null")
    experiment.profile("less", "experiment: {variants.a.b: null}\n")
    assert "a.b" not in {variant.name for variant in experiment.load(profile="less").variants}


def test_paths_into_a_grid_name_values_and_variants_with_dots(experiment: ExperimentFile) -> None:
    experiment.change("  silver:\n", "  silver.x:\n")
    experiment.append("grid:\n  rate:\n    low: {}\n    v.5: {train.strength: 0.75}\n")
    changed = experiment.load(
        "grid.rate.v.5.train.strength=0.125", "grid.rate.v.5.variants.silver.x.data.gold=null"
    )
    found = {variant.label: variant.candidates[0].config for variant in changed.variants}
    assert {
        label: getattr(config.trainer, "strength", 0) for label, config in found.items() if "v.5" in label
    } == {label: 0.125 for label in found if "v.5" in label}
    silver = next(config for label, config in found.items() if "silver.x" in label and "v.5" in label)
    assert [part.name for part in silver.parts] == ["silver"]


@pytest.mark.parametrize("name", [".a", "a.", "a..b", "a/b", "a b"])
def test_dots_of_names_are_between_letters(experiment: ExperimentFile, name: str) -> None:
    experiment.change("  silver:\n", f"  {name}:\n")
    assert any(
        "must be of letters, digits, _ and -, and dots between them" in one for one in experiment.faults()
    )


@pytest.mark.parametrize(("key", "value"), [("weight", 2), ("loss_temperature", 0.1)])
def test_a_parts_training_keys_need_a_trainer_that_takes_them(
    experiment: ExperimentFile, key: str, value: float
) -> None:
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, {key}: {value}}}\n")
    (fault,) = experiment.faults()
    worded(fault, f"study.yaml:{experiment.line(key)}", f"data.gold.{key}", f"no part's {key}")
