"""From the artifacts of a plan to the results that are tracked and reported."""
