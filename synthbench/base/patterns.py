"""Patterns that read text from outside: LLM answers, data, logs, files, URLs. Their time grows with the text.

Python's engine tries one way after another, so a careless pattern takes hours on an answer of 4 MiB. A test
checks that every pattern here is linear by its structure, and that no module compiles one past this list.
"""

import re

LINEAR: list[re.Pattern[str]] = []
"""All patterns that were made by `linear_pattern`, in the order of import."""


def linear_pattern(regex: str, flags: int = 0) -> re.Pattern[str]:
    r"""Compile a pattern for text from outside and list it; make it at the top of a module.

    It must be linear by its structure:

    - A repeat without a limit follows the beginning of the text, or a character that it can't match itself:
      `<\w+>`, not `\w+>`, which starts anew at each letter of a long word.
    - Two such repeats in a row are possessive (`\s*+:?\s*+`), or a character stands between them that the
      second can't match.
    - A repeated group is possessive.
    """
    pattern = re.compile(regex, flags)
    LINEAR.append(pattern)
    return pattern
