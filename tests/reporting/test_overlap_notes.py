"""The footnote on test items whose sentences occur in the training data."""

from synthbench.reporting.model.experiment_notes import overlap_notes
from synthbench.reporting.results import ExperimentResult, Overlap, RunResult

START = "Test pairs that share a sentence with the training data, ignoring case and punctuation: "


def run(variant: str, seed: int = 0, base: str = "", **sharing: int) -> RunResult:
    overlaps = tuple(
        Overlap(
            task=task,
            items="pairs",
            num_items=1379,
            sharing={"exact": 0, "normalised": number},
            whole={},
            as_pairs=0,
            by_part={},
        )
        for task, number in sharing.items()
    )
    axes = {"base": base} if base else {}
    return RunResult(variant=variant, axes=axes, seed=seed, identity="i", scores=(), overlaps=overlaps)


def notes(*runs: RunResult) -> list[str]:
    return list(overlap_notes(ExperimentResult(experiment="e", identity="i", runs=runs)))


def test_rows_with_equal_overlap_share_a_note() -> None:
    assert notes(run("dino", STSb=156, SICK=0), run("dino", seed=1, STSb=156), run("base")) == [
        f"{START}STSb 156 of 1,379."
    ]


def test_rows_with_different_overlap_are_named_with_their_range_over_seeds() -> None:
    runs = (run("dino", STSb=156), run("clean", STSb=0), run("few", STSb=3), run("few", seed=1, STSb=7))
    assert notes(*runs) == [f"{START}STSb 156 of 1,379 (dino); none (clean); STSb 3 to 7 of 1,379 (few)."]


def test_rows_of_a_variant_are_named_separately_only_if_they_differ() -> None:
    alike = [run("dino", base=base, STSb=156) for base in ("static", "bert")]
    differing = [run("gold", base=base, STSb=number) for base, number in (("static", 1), ("bert", 2))]
    assert notes(*alike, *differing) == [
        f"{START}STSb 156 of 1,379 (dino); STSb 1 of 1,379 (gold static); STSb 2 of 1,379 (gold bert)."
    ]


def test_rows_on_different_test_sets_share_a_note_if_their_common_overlaps_agree() -> None:
    runs = [run(name, base=task, **{task: n}) for name in "ab" for task, n in (("STSb", 3), ("SICK", 0))]
    assert notes(*runs) == [f"{START}STSb 3 of 1,379."]
    assert "(" in notes(*runs, run("c", base="STSb", STSb=2))[0]


def test_many_rows_are_merged_into_one_range() -> None:
    assert notes(*(run(f"row{number}", STSb=number) for number in range(9))) == [
        f"{START}STSb 0 to 8 of 1,379."
    ]


def test_without_known_overlap_there_is_no_note() -> None:
    assert notes(run("dino", STSb=0)) == notes(run("dino")) == []
