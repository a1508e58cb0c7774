"""Statistics of scores over seeds and items: intervals, differences, minimum detectable differences."""
