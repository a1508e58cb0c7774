"""slopus/happy #1297: the command line was logged as it was typed, with the keys in it.

Here a recorded command, as a text or as a list, loses the values of options and variables that name secrets.
"""

import shlex

from synthbench.base.redaction import masked, without_secrets

COMMAND = ["run", "--env", "ANTHROPIC_TOKEN=hush", "--api-key", "hush", "--token=hush", "--port", "80"]


def test_a_command_in_the_log_has_no_keys() -> None:
    kept = ["run", "--env", "ANTHROPIC_TOKEN=***", "--api-key", "***", "--token=***", "--port", "80"]
    assert without_secrets(COMMAND) == kept
    assert masked(shlex.join(COMMAND)) == " ".join(kept)
    assert masked(repr(COMMAND)) == repr(kept)
