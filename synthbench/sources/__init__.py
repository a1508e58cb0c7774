"""Sources of sentences and gold pairs: SentEval folders, the Hugging Face hub, plain files."""
