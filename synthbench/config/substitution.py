"""Profiles replace model ids by others, so that a paper's experiment runs with small models."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from synthbench.config.documents import Document, KeyPath
from synthbench.config.problems import Problems


def substitute_models(document: Document, table: Mapping[str, str], problems: Problems) -> Document:
    """Replace every `model:` by what the table's first matching pattern names, and drop its `revision:`.

    `select` is left as it is: its values stand in the candidates' own sections.

    An id that no pattern matches is a problem, unless it is one of the table's replacements. Without a table
    nothing changes.
    """
    if not table:
        return document

    def replaced(value: Any, path: KeyPath) -> Any:  # noqa: ANN401
        if isinstance(value, list):
            return [replaced(child, (*path, index)) for index, child in enumerate(value)]
        if not isinstance(value, dict):
            return value
        result = {key: replaced(child, (*path, key)) for key, child in value.items()}
        model = result.get("model")
        if isinstance(model, str) and model not in table.values():
            substitute = next((new for old, new in table.items() if fnmatchcase(model, old)), None)
            if substitute is None:
                problems.add(document, (*path, "model"), f"the profile has no substitute for '{model}'")
            else:
                result["model"] = substitute
                result.pop("revision", None)
        return result

    data = {key: v if key == "select" else replaced(v, (key,)) for key, v in document.data.items()}
    return Document(data, document.places)
