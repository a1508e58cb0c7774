"""scikit-learn/scikit-learn #9624: Cohen's kappa of annotators who use a single label is NaN.

Where chance alone would give the same agreement, coefficients are undefined and said to be so; the raw
share of equal answers is still given.
"""

import json

from synthbench.auditing.agreement import agreement


def test_equal_labels_throughout_leave_the_coefficients_undefined() -> None:
    found = agreement([("same", "same"), ("same", "same"), ("same", None)])
    assert (found.raw, found.cohen_kappa, found.krippendorff_alpha) == (1.0, None, None)
    assert found.num_items == 2
    assert "NaN" not in json.dumps(found.model_dump())


def test_two_labels_give_a_chance_corrected_agreement() -> None:
    found = agreement([("a", "a"), ("b", "b"), ("a", "b"), ("b", "b")])
    # By hand: equal 3 of 4, by chance 1/4 * 2/4 + 3/4 * 2/4 = 1/2.
    assert (found.raw, found.cohen_kappa) == (0.75, 0.5)
