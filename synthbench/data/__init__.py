"""Records, the one dataset schema, and what is done with data sets."""
