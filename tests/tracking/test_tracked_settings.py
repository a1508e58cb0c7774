from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench.tracking.payload import settings_of, value_text


def make_run(variant: str, parameters: dict[str, object], **changes: object) -> RunResult:
    run = RunResult(variant=variant, seed=0, identity=variant, scores=(), parameters=parameters)
    return run.model_copy(update=changes)


def names_of(*parameters: dict[str, object]) -> dict[str, str]:
    runs = tuple(make_run(f"v{number}", each) for number, each in enumerate(parameters))
    return dict(settings_of(ExperimentResult(experiment="e", identity="i", runs=runs)).names)


def test_different_settings_are_named_by_the_end_of_their_path() -> None:
    assert names_of(
        {"train.learning_rate": 0.1, "data.silver.sampler.k": 1, "train.epochs": 1},
        {"train.learning_rate": 0.2, "data.silver.sampler.k": 2, "train.epochs": 1},
    ) == {"train.learning_rate": "learning_rate", "data.silver.sampler.k": "sampler.k"}


def test_paths_with_equal_ends_have_longer_names() -> None:
    silver, other = "data.silver.sampler.k", "data.other.sampler.k"
    assert names_of({silver: 1, other: 1}, {silver: 2, other: 2}) == {
        silver: "silver.sampler.k",
        other: "other.sampler.k",
    }


def test_no_setting_has_the_name_of_the_variant_or_an_axis() -> None:
    runs = (
        make_run("a", {"train.seed": 1, "train.rate": 1}, axes={"rate": "low", "method": "x"}),
        make_run("b", {"train.seed": 2, "train.rate": 2}, axes={"rate": "high", "method": "y"}),
    )

    settings = settings_of(ExperimentResult(experiment="e", identity="i", runs=runs))

    assert settings.run(runs[0]) == {
        "variant": "a",
        "rate": "low",
        "axis.method": "x",
        "train.seed": "1",
        "train.rate": "1",
        "seed": "0",
    }


def test_a_setting_that_only_some_rows_have_is_shared_if_its_values_are_equal() -> None:
    runs = (make_run("a", {"data.silver.k": 1}), make_run("b", {}))

    settings = settings_of(ExperimentResult(experiment="e", identity="i", runs=runs))

    assert (settings.names, settings.shared) == ({}, {"data.silver.k": "1"})


def test_trainer_and_base_are_always_tags() -> None:
    data = DatasetSummary(
        part="x2", kind="pair", method="dino", num_records=1, num_failures=0, content_hash="c", stage="s"
    )
    run = make_run("a", {"train.trainer": "simcse", "train.base.model": "m"}, datasets=(data, data))

    settings = settings_of(ExperimentResult(experiment="e", identity="i", runs=(run,)))

    assert settings.row(run) == {"variant": "a", "method": "dino", "trainer": "simcse", "base.model": "m"}
    assert settings.tags(run) == {"variant": "a", "method": "dino", "trainer": "simcse", "base": "m"}


def test_a_row_without_an_axis_has_a_dash_for_it() -> None:
    runs = (make_run("a", {}, axes={"base": "small"}), make_run("b", {}))

    settings = settings_of(ExperimentResult(experiment="e", identity="i", runs=runs))

    assert settings.coordinates(runs[1]) == {"variant": "b", "base": "-"}


def test_long_values_are_truncated_and_remain_distinct() -> None:
    one, other = (value_text(["step"] * 50 + [number]) for number in (1, 2))

    assert len(one) == len(other) == 100
    assert one != other
