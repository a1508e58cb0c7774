"""Records, the dataset schema, and operations on data sets."""
