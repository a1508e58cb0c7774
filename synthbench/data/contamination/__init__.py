"""Test sentences that stand in training data: what they are found by, and how many there are."""
