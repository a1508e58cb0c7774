"""synthbench sandbox build: train the sandbox's checkpoints anew."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import console
from synthbench.errors import UserError

if TYPE_CHECKING:
    from synthbench.auditing.checkpoints import Figures

FIGURES_FILE = "figures.json"


def build(
    output: Annotated[Path, typer.Option(help="New folder for the checkpoints.")] = Path(
        "sandbox-checkpoints"
    ),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 2, help="Of weights, texts and their order.")] = 0,
) -> None:
    """Train the checkpoints that ship with synthbench anew: minutes on two cores.

    They go into a folder of their own, with checksums and the figures by which a build is judged. The same
    seed gives the same files on any number of cores; another seed, like figures.
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

    from synthbench.auditing.checkpoints import measure
    from synthbench.quiet import quiet_transformers
    from synthbench.sandbox.building import CROSS_ENCODER, ENCODER, LM, build_checkpoints
    from synthbench.sandbox.shipped import write_checksums

    build_checkpoints(folder, seed, say=_say)
    torch.set_num_threads(1)  # as the checkpoints are built: the figures, too, are the same everywhere
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
