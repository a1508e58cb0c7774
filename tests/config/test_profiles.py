"""The sandbox's profile ships with the package: for anybody's file, in any folder."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from shipped_files import EXPERIMENTS
from shipped_files import SHIPPED as SHIPPED_FILES
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.config.documents import read_document
from synthbench.config.experiment import Experiment
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.config.permissions import what_is_read_outside
from synthbench.config.profiles import SHIPPED, profile_file
from synthbench.plugins.loading import component, installed
from synthbench.sources.tasks import TASKS
from synthbench.worlds import world

SANDBOX = SHIPPED / "sandbox.yaml"
MINE = """\
experiment: mine
sources:
  x1: {task: STSb, split: train, as: sentence, sample: {size: 60, seed: 0}}
  gold: {task: STSb, split: train, sample: {size: 100, seed: 0}}
  dev: {task: STSb, split: dev}
  STSb: {task: STSb}
defaults:
  data: {gold: {source: gold}}
  train:
    trainer: bi-encoder
    base: {model: roberta-base}
    selection: {evaluator: sts, sources: [dev]}
  evaluate: {sts: {evaluator: sts, tasks: [STSb]}}
baseline: gold-only
variants:
  augsbert:
    data.silver:
      method: augsbert
      sources: {gold: gold, dev: dev}
      sampler: {name: semantic-search, k: 2, bi_encoder: {base: {model: bert-base-uncased}}}
      cross_encoder: {base: {model: roberta-large}}
  substituted:
    data.silver:
      method: contextual-substitution
      sources: {gold: gold}
      language_model: {model: bert-base-uncased}
  dino:
    data:
      gold: null
      x2: {method: dino, sources: {x1: x1}, language_model: {model: gpt2-xl, dtype: fp16}, task: sts}
  other-lm:
    data:
      gold: null
      cross-encoder:
        {method: dino, sources: {x1: x1}, language_model: {model: EleutherAI/gpt-neo-1.3B}, task: sts}
  cross-encoder: {train: {trainer: cross-encoder, base: {model: roberta-large}}}
"""
ASKING = """\
experiment: asking
llm:
  name: openai
  base_url: https://api.openai.com/v1
  model: gpt-4o-mini
  key_variable: OPENAI_API_KEY
  budget_usd: 5
sources:
  given: {hub: princeton-nlp/datasets-for-simcse, file: wiki1m_for_simcse.txt, sample: {size: 20, seed: 0}}
defaults:
  data: {asked: {method: syncse-partial, sources: {sentences: given}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a user's own, with no profile in it."""
    (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
    (tmp_path / "asking.yaml").write_text(ASKING, encoding="utf-8")
    return tmp_path


def in_sandbox(file: Path, *assignments: str) -> Experiment:
    return load_experiment(file, Overrides(profile="sandbox", assignments=assignments))


def models_of(experiment: Experiment, row: str) -> dict[str, object]:
    (variant,) = (variant for variant in experiment.variants if variant.name == row)
    return {key: value for key, value in variant.parameters.items() if key.endswith(".model")}


def test_every_model_of_a_users_file_is_substituted_by_its_role(folder: Path) -> None:
    mine = in_sandbox(folder / "mine.yaml")
    encoder, cross_encoder, writer = "sandbox/encoder", "sandbox/cross-encoder", "sandbox/lm"
    assert models_of(mine, "augsbert") == {
        "data.silver.sampler.bi_encoder.base.model": encoder,
        "data.silver.cross_encoder.base.model": cross_encoder,
        "train.base.model": encoder,
    }
    assert models_of(mine, "substituted")["data.silver.language_model.model"] == encoder
    assert models_of(mine, "dino")["data.x2.language_model.model"] == writer
    assert models_of(mine, "cross-encoder") == {"train.base.model": cross_encoder}


def test_settings_of_substituted_word_vectors_are_replaced_too(folder: Path) -> None:
    assignment = "train.base={model: glove.txt, drop_stop_words: true, max_length: 20}"
    experiment = in_sandbox(folder / "mine.yaml", assignment)
    parameters = experiment.variants[0].parameters
    base = {key: value for key, value in parameters.items() if key.startswith("train.base.")}
    assert base == {"train.base.model": "sandbox/encoder", "train.base.max_length": 20}


def test_a_part_may_have_the_name_of_a_role(folder: Path) -> None:
    models = models_of(in_sandbox(folder / "mine.yaml"), "other-lm")
    assert models["data.cross-encoder.language_model.model"] == "sandbox/lm"


def test_every_task_and_split_has_a_substitute_of_the_same_kind() -> None:
    table = read_document(SANDBOX).data["substitute"]["tasks"]
    for task in TASKS.values():
        for split in task.parts:
            fitting = (new for pattern, new in table.items() if fnmatchcase(f"{task.name}/{split}", pattern))
            assert world().set_kinds[next(fitting)["sandbox"]] == task.kind, (task.name, split)


def test_every_method_with_a_causal_model_gets_the_sandboxs_model() -> None:
    roles = read_document(SANDBOX).data["substitute"]["roles"]
    for name in installed("methods"):
        field = component("methods", name).model_fields.get("language_model")
        writes = field is not None and getattr(field.annotation, "__name__", "") == "LanguageModel"
        assert writes == (name in roles), name


def test_the_sandboxs_llm_replaces_an_llm_service(folder: Path) -> None:
    asking = in_sandbox(folder / "asking.yaml")
    assert asking.llms["llm"].settings.identity()["endpoint"] == "sandbox"
    assert "--profile sandbox: gpt-4o-mini -> the sandbox's LLM" in asking.remarks


def test_keys_of_the_sandboxs_llm_can_be_set_on_the_command_line(folder: Path) -> None:
    llm = in_sandbox(folder / "asking.yaml", "llm.seed=3").llms["llm"].settings
    assert llm.model_dump()["seed"] == 3


def test_a_profile_beside_the_file_precedes_and_may_include_the_shipped_one(folder: Path) -> None:
    own = folder / "profiles" / "sandbox.yaml"
    assert profile_file(folder / "mine.yaml", "sandbox") == SANDBOX
    own.parent.mkdir()
    own.write_text(
        "include: [package:synthbench/profiles/sandbox.yaml]\nexperiment: {seeds: [7]}\n", encoding="utf-8"
    )
    assert profile_file(folder / "mine.yaml", "sandbox") == own
    mine = in_sandbox(folder / "mine.yaml")
    assert mine.seeds == (7,)
    assert models_of(mine, "dino")["data.x2.language_model.model"] == "sandbox/lm"


def test_experiments_in_folders_use_the_profiles_of_parent_folders(folder: Path) -> None:
    (folder / "experiments" / "papers" / "dino").mkdir(parents=True)
    (folder / "profiles").mkdir()
    (folder / "profiles" / "laptop.yaml").write_text("run: {}\n", encoding="utf-8")
    file = folder / "experiments" / "papers" / "dino" / "mine.yaml"
    with refused("--profile laptop", "no such file"):
        profile_file(file, "laptop")
    for place in (folder / "experiments", folder / "experiments" / "papers"):
        (place / "profiles").mkdir()
        nearest = place / "profiles" / "laptop.yaml"
        nearest.write_text("run: {}\n", encoding="utf-8")
        assert profile_file(file, "laptop") == nearest


@pytest.mark.parametrize("name", ["package:synthbench/profiles/none.yaml", "package:no_such_package/x.yaml"])
def test_a_file_missing_from_a_package_can_not_be_included(folder: Path, name: str) -> None:
    file = folder / "including.yaml"
    file.write_text(f"include: ['{name}']\n", encoding="utf-8")
    with refused("including.yaml:1"):
        load_experiment(file)


def test_an_unknown_profile_is_reported_with_local_and_shipped_ones(folder: Path) -> None:
    (folder / "profiles").mkdir()
    (folder / "profiles" / "laptop.yaml").write_text("run: {}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        profile_file(folder / "mine.yaml", "gpu")
    worded(str(caught.value), "--profile", f"{folder}/profiles/gpu.yaml")


def test_amounts_of_a_shipped_file_do_not_apply_to_a_users_file_of_the_same_name(
    folder: Path,
) -> None:
    """Sections by name would patch rows and sources that another's file has not."""
    named = read_document(EXPERIMENTS / "profiles" / "sandbox.yaml").data["experiments"]
    assert "dino_table1" in named
    assert "experiments" not in read_document(SANDBOX).data
    mine = folder / "mine.yaml"
    alone = in_sandbox(mine).variants
    for name in named:
        mine.write_text(MINE.replace("experiment: mine", f"experiment: {name}"), encoding="utf-8")
        assert in_sandbox(mine).variants == alone


def test_amounts_of_the_projects_files_still_apply_to_them() -> None:
    small = in_sandbox(SHIPPED_FILES["dino_table1"])
    assert small.sources["x1"].model_dump()["sample"]["size"] == 300


def test_shipped_profiles_are_not_listed_as_files_elsewhere(folder: Path, tmp_path: Path) -> None:
    mine = in_sandbox(folder / "mine.yaml")
    assert SANDBOX in mine.files
    assert list(what_is_read_outside(mine, tmp_path / "home")) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("STSb: {task: STSb}", "STSb: {task: STSb, split: tst}", "mine.yaml:6: sources.STSb"),
        (
            "dev: {task: STSb, split: dev}",
            "dev: {task: STSb, split: dev, smaple: {}}",
            "mine.yaml:5: sources.dev.smaple",
        ),
        (
            "base: {model: roberta-base}",
            "base: {model: roberta-base, revision: main}",
            "mine.yaml:11: train.base.revision",
        ),
        ("model: gpt2-xl, dtype", "model: gpt2-xl, revision: 5, dtype", "data.x2.language_model.revision"),
    ],
)
def test_sections_that_a_profile_replaces_are_validated(folder: Path, old: str, new: str, fault: str) -> None:
    file = folder / "mine.yaml"
    file.write_text(MINE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        in_sandbox(file)
    assert any(fault in message for message in caught.value.messages), caught.value.messages


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  budget_usd: 5", "  budgte_usd: 5"),
        ("  name: openai", "  name: openai\n  temperature: -1"),
        ("  model: gpt-4o-mini", "  model: 4"),
    ],
)
def test_an_llm_that_a_profile_replaces_is_validated(folder: Path, old: str, new: str) -> None:
    file = folder / "asking.yaml"
    file.write_text(ASKING.replace(old, new), encoding="utf-8")
    key = new.splitlines()[-1].strip().partition(":")[0]
    with refused("asking.yaml:", f"llm.{key}"):
        in_sandbox(file)


def test_replaced_models_may_be_missing(folder: Path) -> None:
    file = folder / "mine.yaml"
    file.write_text(MINE.replace("roberta-base", "./no/such/folder"), encoding="utf-8")
    assert in_sandbox(file).variants
