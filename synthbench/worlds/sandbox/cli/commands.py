"""`synthbench sandbox`: serve the sandbox's LLM, or train its models again."""

import inspect
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from synthbench.base.errors import UserError
from synthbench.cli.console import INTERRUPTIONS, console
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings

if TYPE_CHECKING:
    from synthbench.worlds.sandbox.cli.figures import Figures

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
    """Return the command-line option of a setting, with its description and limits."""
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


FIGURES_FILE = "figures.json"


@app.command("build")
def build(
    output: Annotated[Path, typer.Option(help="New folder for the checkpoints.")] = Path(
        "sandbox-checkpoints"
    ),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 2, help="Seed of weights, texts and their order.")
    ] = 0,
) -> None:
    """Train the shipped checkpoints again, into a new folder: minutes on two cores.

    The folder gets checksums and the figures that measure a build. A seed gives the same files on any number
    of cores; another seed gives similar figures.
    """
    from synthbench.data.exchange import replacing

    if output.exists():
        raise UserError(f"--output {output}: exists already; name a new folder, or remove this one")
    started = time.monotonic()
    with replacing(output) as folder:
        figures = _build(folder, seed)
    _print(figures)
    print(f"checkpoints: {output}, built in {time.monotonic() - started:.0f} s")


def _build(folder: Path, seed: int) -> "Figures":
    import torch

    from synthbench.base.terminal import quiet_transformers
    from synthbench.worlds.sandbox.building import CROSS_ENCODER, ENCODER, LM, build_checkpoints
    from synthbench.worlds.sandbox.cli.figures import measure
    from synthbench.worlds.sandbox.shipped import write_checksums

    build_checkpoints(folder, seed, say=_say)
    torch.set_num_threads(1)  # as in building, so that the figures are the same on every machine
    with quiet_transformers():
        figures = measure(folder / LM, folder / ENCODER)
    write_checksums(folder, (LM, ENCODER, CROSS_ENCODER))
    (folder / FIGURES_FILE).write_text(figures.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return figures


def _say(name: str, line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {name}: {line}", file=sys.stderr, flush=True)


def _print(figures: "Figures") -> None:
    from synthbench.reporting.model.audit_section import confusion_grid
    from synthbench.reporting.render.terminal import terminal_grid

    confusions = {"Task": figures.lm_confusion, "Textbook": figures.lm_textbook_confusion}
    for kind, each in confusions.items():
        print(f"lm: what it writes for each instruction after {kind!r}, sampled plainly, by what it is")
        console().print(terminal_grid(confusion_grid(each)))
    print(f"encoder: Spearman of cosines and true similarities, untrained: {figures.encoder_spearman:.3f}")
