"""synthbench sandbox: serve the sandbox's LLM."""

import inspect
import sys
from typing import Annotated

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from synthbench.base.errors import UserError
from synthbench.cli.console import INTERRUPTIONS
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings

app = typer.Typer(rich_markup_mode=None)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 127.0.0.1 is this machine alone.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8321,
    **given: object,
) -> None:
    """Serve the sandbox's chat model as OpenAI's API does, until Ctrl-C; no key is needed."""
    _serve(host, port, given)


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    """Return the option of a setting, with its description and limits."""
    found = {"min": "ge", "max": "le"}
    limits = {
        key: getattr(each, of) for each in field.metadata for key, of in found.items() if hasattr(each, of)
    }
    text = field.description or ""
    option = typer.Option(help=f"{text[:1].upper()}{text[1:]}.", **limits)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[field.annotation, option],
    )


_OWN = inspect.signature(serve).parameters
_OF_SETTINGS = (_option(name, field) for name, field in LLMSettings.model_fields.items())
serve.__signature__ = inspect.Signature([_OWN["host"], _OWN["port"], *_OF_SETTINGS])  # type: ignore[attr-defined]
app.command("serve")(serve)


def _serve(host: str, port: int, given: dict[str, object]) -> None:
    from synthbench.worlds.sandbox.llm.serving import LLMServer

    try:
        settings = LLMSettings.model_validate(given)
    except ValidationError as failure:
        raise UserError(*(_in_words(fault) for fault in failure.errors(include_url=False))) from None
    with LLMServer(settings, host, port, log=sys.stderr) as server:
        print(f"{server.base_url}  try: {_example(server.base_url)}", flush=True)
        try:
            server.serve_forever()
        except INTERRUPTIONS:
            return


def _in_words(fault: object) -> str:
    assert isinstance(fault, dict)
    key = ".".join(str(part) for part in fault["loc"])
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"--{key.replace('_', '-')}: {message}" if key else message


def _example(base_url: str) -> str:
    message = '{"role": "user", "content": "Paraphrase: A man plays a harp."}'
    body = f'{{"model": "{MODEL}", "messages": [{message}]}}'
    return f"curl {base_url}/chat/completions -H 'Content-Type: application/json' -d '{body}'"
