"""Sentences that differ in nothing but their writing."""


def normalised(text: str) -> str:
    """Return the text without case, and without white space and full stops at its ends."""
    return text.strip().lower().rstrip(". ")
