"""AugSBERT (Thakur et al. 2021): silver labels of a cross-encoder on sampled pairs of gold sentences."""
