"""Text generation with language models: many texts in one batch, with results independent of batching."""
