"""Results, models and data sets, written in the formats of other programs."""
