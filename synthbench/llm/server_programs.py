"""Programs that serve a chat model behind OpenAI's API: their command lines, and which are installed."""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.llm.endpoint import Served

HOST = "127.0.0.1"
PORT, MODEL = "{port}", "{model}"
"""Placeholders in a command for the free port and the model."""
VLLM, TRANSFORMERS = "vllm", "transformers"
INSTALL = {VLLM: "pip install vllm", TRANSFORMERS: "pip install 'synthbench[serve]'"}
PACKAGES = {TRANSFORMERS: ("fastapi", "uvicorn")}
IGNORED = {TRANSFORMERS: ("response_format", "reasoning_effort")}
"""Options that a program accepts but ignores."""
_API_DEFAULTS = {
    "do_sample": True,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "repetition_penalty": 1.0,
    "max_new_tokens": 1024,
}
"""OpenAI's sampling defaults, sent to `transformers serve`; keys that a request sets take precedence.

Without `do_sample` transformers would ignore the temperature.
"""


def vllm(model: str, name: str, commit: str | None, start_timeout_s: float) -> Served:
    """Return the settings of a server that runs `vllm serve`; `name` is the model's name in requests.

    `model` is a folder or hub id, read at `commit`. The checkpoint's own sampling defaults are disabled, so
    that answers depend on the request alone.
    """
    at = ("--revision", commit, "--tokenizer-revision", commit) if commit else ()
    command = (VLLM, "serve", model, "--host", HOST, "--port", PORT, "--served-model-name", name)
    rest = (*at, "--generation-config", "vllm")
    return Served((*command, *rest), start_timeout_s, name, install=INSTALL[VLLM])


def transformers(model: str, commit: str | None, start_timeout_s: float) -> Served:
    """Return the settings of a server that runs `transformers serve`.

    Requests name the model by folder or hub id, with `@commit` if given. Each request replaces the
    checkpoint's own sampling defaults by those of OpenAI's API.
    """
    pinned = f"{model}@{commit}" if commit else model
    command = (TRANSFORMERS, "serve", pinned, "--host", HOST, "--port", PORT)
    body = {"generation_config": json.dumps(_API_DEFAULTS)}
    return Served(command, start_timeout_s, pinned, body, INSTALL[TRANSFORMERS], PACKAGES[TRANSFORMERS])


def of_user(command: tuple[str, ...], model: str, start_timeout_s: float) -> Served:
    """Return the settings of a server that runs the user's command, with `{model}` filled in."""
    filled = tuple(part.replace(MODEL, model) for part in command)
    return Served(filled, start_timeout_s, model, lists=True)


def check_program(served: Served, section: str) -> None:
    """Raise UserError if the server's program, or a package that it needs, is missing.

    `section`: the LLM's section in the experiment file.
    """
    what = missing_program(served.command[0], served.packages)
    if not what:
        return
    cure = served.install or "give its path, or put its folder into PATH"
    raise UserError(
        f"{section}.serve: the program '{Path(served.command[0]).name}' {what}: {cure}; cached answers alone"
        f" need none: {section}.offline: true"
    )


def missing_program(program: str, packages: Iterable[str]) -> str:
    """Return why a program can't run, "" if no reason is known."""
    if found_program(program) is None:
        return "is not installed"
    missing = next((name for name in packages if find_spec(name) is None), None)
    return f"needs the Python package {missing}, which is not installed" if missing else ""


def found_program(name: str) -> str | None:
    """Return the path of a program, from this Python's environment or else PATH; None if not found."""
    here = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join([here, os.environ.get("PATH", os.defpath)]))
