"""Read the documents in an answer, a JSON object with a key for each level."""

from collections.abc import Sequence

from synthbench.api import AnswerError, json_object, same_text, text_under


def documents_in(answer: str, keys: Sequence[str], query: str) -> tuple[str, ...]:
    """Return the document of each level, in the order of the keys.

    Raises AnswerError if a document is missing or empty, or equals the query or another document.
    """
    found = json_object(answer, keys)
    known = {same_text(query): "the query"}
    documents = []
    for key in keys:
        text = text_under(found, key)
        if same_text(text) in known:
            raise AnswerError(f"{key}: equal to {known[same_text(text)]}")
        known[same_text(text)] = key
        documents.append(text)
    return tuple(documents)
