"""The Hugging Face hub and its local cache."""
