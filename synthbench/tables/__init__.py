"""Strict reading of files that users provide: numbers, texts and lines."""
