"""Where sentences and gold pairs come from: SentEval folders, the Hugging Face hub, plain files."""
