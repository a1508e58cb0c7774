"""Agreement, against worked examples of the literature."""

import pytest

from synthbench.auditing.agreement import agreement, cohen_kappa, krippendorff_alpha, raw_agreement

MISSING = "."


def rows(*annotators: str) -> list[tuple[str | None, ...]]:
    """Return one row for each item, given one line of answers for each annotator."""
    columns = [[None if answer == MISSING else answer for answer in line.split()] for line in annotators]
    return list(zip(*columns, strict=True))


# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", sections A, B and C.
BINARY = rows("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0")
NOMINAL = rows("a a b b d c c c e d d a", "b a b b b c c c e d d d")
WITH_MISSING = rows(
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)


@pytest.mark.parametrize(("answers", "alpha"), [(BINARY, 0.095), (NOMINAL, 0.692), (WITH_MISSING, 0.743)])
def test_alpha_equals_the_published_example(answers: list[tuple[str | None, ...]], alpha: float) -> None:
    assert krippendorff_alpha(answers) == pytest.approx(alpha, abs=0.0005)


def test_kappa_of_a_table_worked_out_by_hand() -> None:
    # 20 both yes, 15 both no, 5 and 10 mixed: observed .7, by chance .5 * .6 + .5 * .4 = .5, kappa .2 / .5.
    answers = rows("y " * 25 + "n " * 25, "y " * 20 + "n " * 5 + "y " * 10 + "n " * 15)
    assert cohen_kappa(answers) == pytest.approx(0.4)
    assert raw_agreement(answers) == pytest.approx(0.7)


def test_raw_agreement_is_the_share_of_equal_pairs_of_answers() -> None:
    # Item 1 has three pairs of answers, one of them equal; item 2 has one pair, equal; item 3 none.
    assert raw_agreement(rows("a a a", "a a .", "b . .")) == pytest.approx(2 / 4)


def test_items_with_a_single_answer_do_not_count_in_agreement() -> None:
    found = agreement(rows("a b c", "a b ."))
    assert (found.num_annotators, found.num_items) == (2, 2)
    assert (found.raw, found.cohen_kappa, found.krippendorff_alpha) == (1.0, 1.0, 1.0)


def test_equal_labels_throughout_leave_the_coefficients_undefined() -> None:
    found = agreement(rows("safe safe", "safe safe"))
    assert (found.raw, found.cohen_kappa, found.krippendorff_alpha) == (1.0, None, None)
    assert agreement(rows("safe .", ". safe")).raw is None


def test_kappa_is_for_two_annotators_only() -> None:
    assert agreement(WITH_MISSING).cohen_kappa is None
