"""Linear-time regular expressions for untrusted text (LLM answers, data, logs, files, URLs).

Python's engine backtracks, so a careless pattern takes hours on an answer of 4 MiB. A test checks that every
pattern in `LINEAR` is linear by its structure, and that modules compile no other patterns.
"""

import re

LINEAR: list[re.Pattern[str]] = []
"""All patterns that `linear_pattern` compiled, in import order."""


def linear_pattern(regex: str, flags: int = 0) -> re.Pattern[str]:
    r"""Compile a pattern for untrusted text and add it to `LINEAR`; call this at the top of a module.

    The pattern must be linear by its structure:

    - An unlimited repeat follows the beginning of the text, or a character that the repeat can't match:
      `<\w+>`, not `\w+>`, which starts anew at each letter of a long word.
    - Two unlimited repeats in a row are possessive (`\s*+:?\s*+`), or are separated by a character that the
      second can't match.
    - A repeated group is atomic: `(?>(?:a b)*)`, not `(?:a b)*+`, which Python before 3.11.5 misreads.
    """
    pattern = re.compile(regex, flags)
    LINEAR.append(pattern)
    return pattern
