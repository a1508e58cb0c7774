"""A value of an axis may patch single variants: an amount that depends on data set and method."""

from experiment_files import ExperimentFile
from wording import worded

GRID = """
grid:
  data_set:
    first:
      train.strength: 0.1
    second:
      train.strength: 0.2
      variants:
        silver: {data.silver.size: 7, train.strength: 0.9}
"""


def strengths(experiment: ExperimentFile, *assignments: str) -> dict[str, object]:
    rows = experiment.load(*assignments).variants
    return {row.label: row.parameters["train.strength"] for row in rows}


def test_a_patch_changes_one_variant_at_one_value_after_the_variants_own_patch(
    experiment: ExperimentFile,
) -> None:
    experiment.change("      size: 3\n", "      size: 3\n    train.strength: 0.5\n").append(GRID)
    sizes = {
        row.label: row.parameters["data.silver.size"]
        for row in experiment.load().variants
        if row.name == "silver"
    }
    assert sizes == {"silver [data_set=first]": 3, "silver [data_set=second]": 7}
    assert strengths(experiment) == {
        "plain [data_set=first]": 0.1,
        "plain [data_set=second]": 0.2,
        "silver [data_set=first]": 0.5,
        "silver [data_set=second]": 0.9,
    }


def test_overrides_apply_after_patches(experiment: ExperimentFile) -> None:
    experiment.append(GRID)
    assert strengths(experiment, "train.strength=0.3")["silver [data_set=second]"] == 0.3


def test_a_patch_may_name_a_variant_that_an_override_removed(experiment: ExperimentFile) -> None:
    experiment.append(GRID)
    assert list(strengths(experiment, "variants.silver=null")) == [
        "plain [data_set=first]",
        "plain [data_set=second]",
    ]


def test_an_unknown_variant_or_invalid_patch_is_reported_with_its_line(
    experiment: ExperimentFile,
) -> None:
    experiment.append(GRID).change("        silver: {", "        plain: 3\n        silvr: {")
    line = experiment.line("plain: 3")
    worded(
        experiment.faults(),
        f"study.yaml:{line}",
        "grid.data_set.second.variants.plain",
        f"study.yaml:{line + 1}",
        "grid.data_set.second.variants.silvr",
        "'silvr'",
        "'silver'",
    )


def test_variants_of_a_value_are_a_mapping(experiment: ExperimentFile) -> None:
    experiment.append("grid:\n  data_set:\n    first: {variants: [silver], train.strength: 0.1}\n")
    (message,) = experiment.faults()
    assert "grid.data_set.first.variants: must be a mapping: variant -> patch" in message


def test_null_for_a_judges_grades_is_refused_in_the_file_and_in_overrides(
    experiment: ExperimentFile,
) -> None:
    judged = "variants.silver.data.silver.labeller.judge"
    assert any("write yes-no" in each for each in experiment.faults(f"{judged}.grades=null"))
    experiment.change("      size: 3\n", "      size: 3\n    data.silver.labeller: {judge: {grades: null}}\n")
    line = experiment.line("grades: null")
    worded(experiment.faults(), f":{line}:", "judge.grades", "yes-no")
