"""Plans of experiment files: sharing, selection, resumption, display and results."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import FakeMethod, FakeTrainer, Lines, work_done
from wording import refused

from synthbench.base.errors import UserError
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.local_executors import InProcess
from synthbench.engine.plan import Plan, statuses
from synthbench.engine.runner import Runner, RunReport, matching
from synthbench.engine.store import Store
from synthbench.estimates.costs import costs
from synthbench.pipeline.planning import make_plan
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.results.collect import collect

SELECT = "size: 3\n    select: {over: {train.strength: [0.25, 0.75, 0.75, 0.5]}}"


def run(plan: Plan, store: Store, *force: str) -> tuple[RunReport, list[str]]:
    lines = Lines()
    report = Runner(store, InProcess(), RUNTIME, lines).run(plan, matching(plan, force))
    store.addresses.remember(plan.experiment.name, plan.addresses)
    return report, lines.said


def run_file(experiment: ExperimentFile, store: Store, *assignments: str) -> list[str]:
    report, _ = run(make_plan(experiment.load(*assignments)), store)
    assert not report.failed
    return [stage.kind for stage in report.executed]


def states(experiment: ExperimentFile, store: Store, *assignments: str) -> dict[str, tuple[str, str]]:
    found = statuses(make_plan(experiment.load(*assignments)), store)
    return {str(status.stage): (status.state, status.why) for status in found}


def test_variants_and_seeds_compute_their_common_stages_once(
    experiment: ExperimentFile, store: Store, work_log: Path
) -> None:
    kinds = run_file(experiment, store)
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "source": 3,
        "generate": 1,
        "train": 4,
        "evaluate": 4,
    }
    assert run_file(experiment, store) == []
    assert len([line for line in work_done(work_log) if line.startswith("train")]) == 4


def test_a_run_prints_the_outcome_of_a_generation(experiment: ExperimentFile, store: Store) -> None:
    _, said = run(make_plan(experiment.load()), store)
    assert "  3 scored_pair records; failures: 1 (1 × refused); dropped: 2 × too short" in said


def test_another_experiment_in_the_same_store_computes_only_new_stages(
    experiment: ExperimentFile, store: Store
) -> None:
    run_file(experiment, store)
    experiment.change("experiment: study", "experiment: other").change("size: 3", "size: 4")
    kinds = run_file(experiment, store)
    assert sorted(set(kinds)) == ["evaluate", "generate", "train"]
    assert kinds.count("train") == 2


def test_runtime_settings_change_no_identity(experiment: ExperimentFile) -> None:
    before = make_plan(experiment.load()).stages.keys()
    after = make_plan(experiment.load("runtime={device: cuda, threads: 3, batch_tokens: 64}")).stages.keys()
    assert before == after


def test_the_order_of_entries_in_a_file_changes_no_identity(experiment: ExperimentFile) -> None:
    experiment.change("sources: {gold: gold}", "sources: {gold: gold, dev: dev}")
    before = make_plan(experiment.load()).stages.keys()
    experiment.change("sources: {gold: gold, dev: dev}", "sources: {dev: dev, gold: gold}")
    experiment.change(
        "    base: {model: org/small}\n    strength: 0.5\n",
        "    strength: 0.5\n    base: {model: org/small}\n",
    )
    assert make_plan(experiment.load()).stages.keys() == before


def test_a_whole_number_equals_the_same_fraction(experiment: ExperimentFile) -> None:
    one, other = (make_plan(experiment.load(f"train.strength={text}")) for text in ("1", "1.0"))
    assert one.stages.keys() == other.stages.keys()


def test_a_model_is_loaded_once_and_a_new_task_is_scored_alone(
    experiment: ExperimentFile, store: Store, work_log: Path
) -> None:
    experiment.change("tasks: [test]", "tasks: [test, gold]")
    run_file(experiment, store, "seeds=[0]", "variants=null", "baseline=null")
    done = [line for line in work_done(work_log) if not line.startswith("train")]
    assert done.count("load 0.5") == 1
    assert done.index("load 0.5") < done.index("evaluate 5 pairs") < done.index("evaluate 4 pairs")
    experiment.change("tasks: [test, gold]", "tasks: [test, gold, dev]")
    assert run_file(experiment, store, "seeds=[0]", "variants=null", "baseline=null") == ["evaluate"]
    assert work_done(work_log)[-2:] == ["load 0.5", "evaluate 3 pairs"]


def test_a_deterministic_trainer_runs_with_the_first_seed_only(experiment: ExperimentFile) -> None:
    experiment.change("trainer: fake\n", "trainer: none\n").change("    gold: {source: gold}", "    {}")
    plan = make_plan(experiment.load("variants=null"))
    assert [run.label for run in plan.runs] == ["plain seed 0"]


def test_a_row_with_varying_data_is_seeded_despite_a_deterministic_trainer(
    experiment: ExperimentFile, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(FakeTrainer, "is_seeded", False)
    once, anew = (make_plan(experiment.load(*given)) for given in ((), ("vary=[generation]",)))
    assert [planned.label for planned in once.runs] == ["plain seed 0", "silver seed 0"]
    assert [planned.seed for planned in anew.runs] == [0, 1, 0, 1]
    run(anew, store)
    assert {result.is_seeded for result in collect(anew, Artifacts(store)).runs} == {True}


def test_seeds_share_generated_data_and_samples_unless_these_vary(
    experiment: ExperimentFile,
) -> None:
    experiment.change(
        "{file: gold.tsv, kind: scored_pair}",
        "{file: gold.tsv, kind: scored_pair, sample: {size: 2, seed: 7}}",
    )

    def drawn(*assignments: str) -> tuple[list[int], list[int]]:
        stages = make_plan(experiment.load("seeds=[0, 3]", *assignments)).stages.values()
        configs = {
            kind: [s.operation.config() for s in stages if s.kind == kind] for kind in ("source", "generate")
        }
        samples = [config["sample"]["seed"] for config in configs["source"] if config["sample"]]
        return sorted(samples), sorted(config["seed"] for config in configs["generate"])

    assert drawn() == ([7], [0])
    assert drawn("vary=[generation]") == ([7], [0, 3])
    assert drawn("vary=[sample]") == ([7, 10], [0, 0])
    assert drawn("vary=[sample, generation]") == ([7, 10], [0, 3])


def test_the_first_candidate_with_the_best_dev_score_is_tested(
    experiment: ExperimentFile, store: Store, work_log: Path
) -> None:
    experiment.change("size: 3", SELECT)
    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    result = collect(plan, Artifacts(store))
    silver = result.runs[1]
    assert silver.chosen == {"train.strength": 0.75}
    assert (silver.dev_score, silver.scores[0].scores) == (0.75, {"value": 0.75})
    loads = sorted(line for line in work_done(work_log) if line.startswith("load"))
    assert loads == ["load 0.5", "load 0.75"]
    assert silver.parameters["train.strength"] == [0.25, 0.75, 0.75, 0.5]


def test_a_selection_whose_model_is_gone_is_repeated_before_the_model_is_needed(
    experiment: ExperimentFile, store: Store
) -> None:
    experiment.change("size: 3", SELECT)
    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    winner = plan.runs[1].candidates[1]
    store.discard(winner.identity)
    experiment.change("tasks: [test]", "tasks: [test, gold]")
    later = make_plan(experiment.load("seeds=[0]"))
    found = {status.stage.identity: (status.state, status.why) for status in statuses(later, store)}
    assert found[winner.identity][0] == "to run"
    assert found[later.runs[1].model.identity] == ("to run", "the model that it chose is gone")
    report, _ = run(later, store)
    assert not report.failed
    executed = [stage.kind for stage in report.executed]
    assert {kind: executed.count(kind) for kind in executed} == {"train": 1, "select": 1, "evaluate": 2}


def test_a_candidate_that_was_not_selected_may_be_deleted(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("size: 3", SELECT)
    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    store.discard(plan.runs[1].candidates[0].identity)
    experiment.change("tasks: [test]", "tasks: [test, gold]")
    assert run_file(experiment, store, "seeds=[0]") == ["evaluate", "evaluate"]


def test_damage_to_the_selected_model_is_found(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("size: 3", SELECT)
    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    (store.folder(plan.runs[1].candidates[1].identity) / "model.json").write_text("{}")
    report, said = run(plan, store)
    assert [stage.kind for stage in report.executed] == ["train", "select"]
    assert "is damaged (model.json has 2 bytes" in said[0]


def test_forcing_a_kind_executes_it_and_its_dependants(experiment: ExperimentFile, store: Store) -> None:
    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    report, _ = run(plan, store, "generate")
    assert [stage.kind for stage in report.executed] == ["generate", "train", "evaluate"]
    report, _ = run(plan, store, "evaluate * on test")
    assert [stage.kind for stage in report.executed] == ["evaluate", "evaluate"]
    with refused("--force", "'train'"):
        matching(plan, ["trian"])


def test_a_plan_has_the_status_of_each_stage(experiment: ExperimentFile, store: Store) -> None:
    assert set(states(experiment, store).values()) == {("to run", "")}
    run_file(experiment, store)
    assert set(states(experiment, store).values()) == {("cached", "")}


def test_a_plan_leaves_no_trace(experiment: ExperimentFile, store: Store) -> None:
    states(experiment, store)
    assert not store.root.exists()
    run_file(experiment, store)
    before = sorted(path for path in store.root.rglob("*"))
    states(experiment, store, "train.strength=0.9")
    assert sorted(path for path in store.root.rglob("*")) == before


def test_a_stage_is_stale_because_of_its_own_setting_and_the_next_because_of_its_input(
    experiment: ExperimentFile, store: Store
) -> None:
    run_file(experiment, store)
    found = states(experiment, store, "train.strength=0.75")
    assert found["train plain seed 0"] == ("stale", "strength 0.5 -> 0.75")
    assert found["evaluate plain seed 0 on test"] == ("stale", "input changed: model")
    assert found["source test"] == ("cached", "")


def test_a_changed_file_makes_its_source_stale(experiment: ExperimentFile, store: Store) -> None:
    run_file(experiment, store)
    file = experiment.folder / "dev.tsv"
    file.write_text(file.read_text().replace("dev a0", "dev A0"))
    found = states(experiment, store)
    assert found["source dev"] == ("stale", "changed outside: dev.tsv")
    assert found["train plain seed 0"] == ("stale", "input changed: dev:0")
    assert found["source gold"] == ("cached", "")


def test_a_new_version_of_a_component_makes_its_stages_stale(
    experiment: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file(experiment, store)
    monkeypatch.setattr(FakeTrainer, "version", 2)
    assert states(experiment, store)["train plain seed 0"] == ("stale", "version 1 -> 2")
    assert run_file(experiment, store).count("train") == 4


def test_stages_are_resumable_damaged_or_not_needed(experiment: ExperimentFile, store: Store) -> None:
    plan = make_plan(experiment.load("seeds=[0]"))
    by_name = {str(stage): stage for stage in plan.stages.values()}
    store.workspace(by_name["train plain seed 0"].identity)
    assert states(experiment, store, "seeds=[0]")["train plain seed 0"] == (
        "resumable",
        "begun by an earlier run",
    )
    run(plan, store)
    store.discard(by_name["source gold"].identity)
    (store.folder(by_name["train plain seed 0"].identity) / "model.json").unlink()
    found = states(experiment, store, "seeds=[0]")
    assert found["train plain seed 0"] == ("damaged", "model.json is missing")
    assert found["source gold"][0] == "to run"
    run(plan, store)
    store.discard(by_name["source gold"].identity)
    found = states(experiment, store, "seeds=[0]")
    assert found["source gold"] == ("not needed", "what depends on it is cached")


def test_work_begun_under_changed_settings_is_resumable_rather_than_stale(
    experiment: ExperimentFile, store: Store
) -> None:
    run_file(experiment, store)
    changed = make_plan(experiment.load("train.strength=0.75"))
    store.workspace(changed.runs[0].model.identity)
    assert states(experiment, store, "train.strength=0.75")["train plain seed 0"][0] == "resumable"


def test_a_plan_counts_the_runs_that_need_a_stage(experiment: ExperimentFile, store: Store) -> None:
    found = {str(status.stage): status.num_runs for status in statuses(make_plan(experiment.load()), store)}
    assert found["source test"] == 4
    assert found["generate fake for silver seed 0"] == 2
    assert found["train plain seed 1"] == 1


def test_all_missing_inputs_are_named_first(experiment: ExperimentFile) -> None:
    for name in ("gold.tsv", "test.tsv"):
        (experiment.folder / name).unlink()
    with pytest.raises(UserError) as caught:
        make_plan(experiment.load())
    assert len(caught.value.messages) == 2
    assert re.search(r"\.yaml:\d+: sources\.gold: .*gold\.tsv: no such file", caught.value.messages[0])


def test_a_missing_optional_task_is_left_out_with_a_note(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("tasks: [test]", "tasks: [test]\n      if_found: [extra]")
    experiment.change("seeds:", "  extra: {file: extra.tsv, kind: scored_pair, split: test}\nseeds:")
    plan = make_plan(experiment.load())
    run(plan, store)
    result = collect(plan, Artifacts(store))
    assert plan.missing_tasks == ("extra",)
    assert result.tasks == ("test",)
    assert result.notes == ("extra: no data found, left out",)


def test_pairs_in_gold_data_are_left_out_of_a_task_and_counted(
    experiment: ExperimentFile, store: Store
) -> None:
    rows = "gold b1\tgold a1\t0.5\nnew a\tnew b\t0.5\nother a\tother b\t1.0\n"
    (experiment.folder / "test.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}")
    experiment.change("tasks: [test]", "tasks: [test]\n      exclude: [gold]")
    plan = make_plan(experiment.load("seeds=[0]"))
    run(plan, store)
    (scores,) = collect(plan, Artifacts(store)).runs[0].scores
    assert (scores.num_items, scores.num_dropped) == (2, 1)


def test_results_equal_the_stages_output(experiment: ExperimentFile, store: Store) -> None:
    plan = make_plan(experiment.load())
    run(plan, store)
    result = collect(plan, Artifacts(store))
    assert (result.experiment, result.tasks, result.failures) == ("study", ("test",), ())
    assert [(one.variant, one.seed) for one in result.runs] == [
        ("plain", 0),
        ("plain", 1),
        ("silver", 0),
        ("silver", 1),
    ]
    silver = result.runs[2]
    assert (silver.dev_score, silver.num_steps, silver.history) == (0.5, 7, ((7, "loss", 0.25),))
    (scores,) = silver.scores
    assert (scores.task, scores.evaluator, scores.main_score) == ("test", "fake", "value")
    assert (scores.scores, scores.num_items, scores.num_dropped) == ({"value": 0.5}, 5, 0)
    assert Path(scores.items_file).is_file()
    gold, made = silver.datasets
    assert (gold.part, gold.method, gold.num_records) == ("gold", "", 4)
    assert (made.part, made.method, made.num_records, made.num_failures) == ("silver", "fake", 3, 1)
    assert made.dropped == {"too short": 2}
    assert silver.parameters["data.silver.size"] == 3
    assert len({one.identity for one in result.runs}) == 4
    assert result == collect(plan, Artifacts(store))


def test_results_describe_how_each_score_was_measured(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("kind: scored_pair, split: test}", "kind: scored_pair, split: test, sample: {size: 2}}")
    experiment.change("evaluator: fake\n", "evaluator: learner\n      factor: 0.5\n      dev: [dev]\n")
    plan = make_plan(experiment.load(seeds=(0,)))
    run(plan, store)

    (score,) = collect(plan, Artifacts(store)).runs[0].scores

    assert (score.settings, score.split, score.drawn) == ({"factor": 0.5}, "test", "a random sample of 2")


def test_results_name_the_rows_that_overrides_did_not_change(
    experiment: ExperimentFile, store: Store
) -> None:
    loaded = replace(experiment.load(), rows_of_file=frozenset({"plain"}))
    plan = make_plan(loaded)
    run(plan, store)

    assert {one.variant: one.is_of_file for one in collect(plan, Artifacts(store)).runs} == {
        "plain": True,
        "silver": False,
    }


def test_an_unfinished_run_is_named_and_left_out(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("      size: 3\n", "      size: 3\n    train.fails: user\n")
    plan = make_plan(experiment.load("seeds=[0]"))
    report, _ = run(plan, store)
    assert report.only_user_errors
    result = collect(plan, Artifacts(store), ("train silver: it never works",))
    assert [one.variant for one in result.runs] == ["plain"]
    assert result.failures == ("train silver: it never works", "silver seed 0 is not finished")


def test_a_model_required_by_a_method_is_planned_before_the_method(
    experiment: ExperimentFile, store: Store
) -> None:
    experiment.change("sources: {gold: gold}", "sources: {gold: gold, dev: dev}")
    experiment.change("size: 3", "size: 3\n      labeller: {model: org/judge}")
    plan = make_plan(experiment.load("seeds=[0]"))
    labels = [str(stage) for stage in plan.stages.values()]
    need = "train labeller of fake for silver seed 0"
    assert labels.index(need) < labels.index("generate fake for silver seed 0")
    report, _ = run(plan, store)
    assert need in [str(stage) for stage in report.executed]


def test_a_plan_needs_only_a_methods_sources_if_its_model_is_cached(
    experiment: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeMethod, "cost", lambda self, sizes: (f"{self.size} of {dict(sizes)}",))
    experiment.change("size: 3", "size: 3\n      labeller: {model: org/judge}")
    run(make_plan(experiment.load("seeds=[0]")), store)
    plan = make_plan(experiment.load("seeds=[0]", "data.silver.size=2", variants=("silver",)))
    ((_, lines),) = costs(statuses(plan, store), store)
    assert lines == ("2 of {'gold': 4}",)


def test_the_identity_of_a_test_set_includes_the_evaluators_training_data(
    experiment: ExperimentFile, store: Store
) -> None:
    experiment.change("evaluator: fake\n", "evaluator: learner\n      train: [gold]\n      dev: [dev]\n")
    plan = make_plan(experiment.load(seeds=(0,)))
    run(plan, store)
    (score, *_) = collect(plan, Artifacts(store)).runs[0].scores
    assert (score.num_items, score.scores) == (5, {"value": 0.5, "train": 4.0, "dev": 3.0})


def test_a_task_that_is_its_own_dev_set_is_added_once(experiment: ExperimentFile, store: Store) -> None:
    experiment.change(
        "evaluator: fake\n", "evaluator: learner\n      dev: [dev]\n      exclude: [gold]\n"
    ).change("tasks: [test]", "tasks: [dev]")
    experiment.change("  test: {file: test.tsv, kind: scored_pair, split: test}\n", "").change(
        "columns: [test]", "columns: [dev]"
    )
    plan = make_plan(experiment.load(seeds=(0,)))
    run(plan, store)
    (score, *_) = collect(plan, Artifacts(store)).runs[0].scores
    assert score.scores["dev"] == 3


def test_an_optional_task_without_its_training_data_is_left_out(
    experiment: ExperimentFile,
) -> None:
    experiment.change("evaluator: fake\n", "evaluator: learner\n      train: [gold]\n      dev: [gone]\n")
    experiment.change("tasks: [test]", "if_found: [test]")
    experiment.change("seeds:", "  gone: {file: gone.tsv, kind: scored_pair}\nseeds:")
    plan = make_plan(experiment.load(seeds=(0,)))
    assert plan.missing_tasks == ("test",)
    experiment.change("if_found: [test]", "tasks: [test]")
    with refused("sources.gone", "gone.tsv"):
        make_plan(experiment.load(seeds=(0,)))


def test_a_step_compares_with_an_optional_task_whose_training_data_alone_are_missing(
    experiment: ExperimentFile,
) -> None:
    experiment.change("evaluator: fake\n", "evaluator: learner\n      train: [gone]\n      dev: [gold]\n")
    experiment.change("tasks: [test]", "if_found: [test]")
    experiment.change("seeds:", "  gone: {file: gone.tsv, kind: scored_pair}\nseeds:")
    overlap = "prepare: [{step: drop-overlap, sources: [test, gone]}]"
    experiment.change("gold: {source: gold}\n", f"gold: {{source: gold, {overlap}}}\n")
    plan = make_plan(experiment.load(seeds=(0,)))
    (prepared,) = {tuple(stage.inputs) for stage in plan.stages.values() if stage.kind == "prepare"}
    assert prepared == ("data", "against:test")
    assert plan.missing_tasks == ("test",)


def test_seed_optimisation_continues_only_the_best_seed_on_dev(
    experiment: ExperimentFile, store: Store, work_log: Path
) -> None:
    experiment.change("trainer: fake\n", "trainer: pausing\n    seed_optimization: {seeds: 3, at: 0.25}\n")
    plan = make_plan(experiment.load(variants=("plain",)))
    run(plan, store)
    # Dev scores of seeds 0 to 5: 0, 0.3, 0.1, 0.4, 0.2, 0.
    trained = [line for line in work_done(work_log) if line.startswith("train")]
    assert sorted(trained) == sorted(
        [f"train seed {seed} from 0.0 to 0.25" for seed in range(6)]
        + [f"train seed {seed} from 0.25 to 1.0" for seed in (1, 3)]
    )
    result = collect(plan, Artifacts(store))
    assert [each.chosen for each in result.runs] == [{"train.seed": 1}, {"train.seed": 3}]
    assert [each.scores[0].scores["value"] for each in result.runs] == [0.3, 0.4]
    notes = build_table(Analysis(result)).notes
    assert not any("train.seed" in note for note in notes)
    assert (
        "Seed optimisation (plain): of 3 trainings per seed, only the best on dev after 25% of the steps was"
        " finished, which saved 50% of all steps." in notes
    )
    assert run(make_plan(experiment.load(variants=("plain",))), store)[0].executed == []
