"""synthbench sandbox: serve the sandbox's LLM."""

import sys
from typing import Annotated, Literal

import typer

from synthbench.base.errors import UserError
from synthbench.cli.console import INTERRUPTIONS

app = typer.Typer(rich_markup_mode=None)


@app.command("serve")
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on; 127.0.0.1 is this machine alone.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8321,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other answers and faults.")] = 0,
    noise: Annotated[
        float, typer.Option(min=0, max=1, help="Share of answers of the wrong relation or topic.")
    ] = 0.0,
    unread: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of paraphrases and contradictions of another sentence than asked."
        ),
    ] = 0.0,
    habits: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of answers with the prompt's habits: few topics, forms and kinds of change.",
        ),
    ] = 0.6,
    refusals: Annotated[
        float, typer.Option(min=0, max=1, help='Share of answers like "I cannot paraphrase ...".')
    ] = 0.0,
    empty: Annotated[float, typer.Option(min=0, max=1, help="Share of answers without any text.")] = 0.0,
    malformed: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of answers with a preamble, quotes, another numbering or count."
        ),
    ] = 0.0,
    latency: Annotated[float, typer.Option(min=0, max=600, help="Seconds before every answer.")] = 0.0,
    rate_limited: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests refused with 429.")
    ] = 0.0,
    retry_after: Annotated[int, typer.Option(min=0, help="Seconds that such a 429 asks to wait.")] = 1,
    server_errors: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests answered with 500.")
    ] = 0.0,
    drops: Annotated[
        float, typer.Option(min=0, max=1, help="Share of connections closed without an answer.")
    ] = 0.0,
    max_faults_in_a_row: Annotated[
        int, typer.Option(min=1, help="After so many faults a request is answered.")
    ] = 4,
    faults_by: Annotated[
        Literal["attempt", "arrival"],
        typer.Option(help="What a fault depends on: a request's attempt, or its arrival."),
    ] = "attempt",
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="More than so many within 60 s get 429.")
    ] = None,
) -> None:
    """Serve the sandbox's chat model as OpenAI's API does, until Ctrl-C; no key is needed."""
    _serve(host, port, {key: value for key, value in context.params.items() if key not in ("host", "port")})


def _serve(host: str, port: int, given: dict[str, object]) -> None:
    from pydantic import ValidationError

    from synthbench.worlds.sandbox.llm import LLMSettings
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
    from synthbench.worlds.sandbox.llm import MODEL

    message = '{"role": "user", "content": "Paraphrase: A man plays a harp."}'
    body = f'{{"model": "{MODEL}", "messages": [{message}]}}'
    return f"curl {base_url}/chat/completions -H 'Content-Type: application/json' -d '{body}'"
