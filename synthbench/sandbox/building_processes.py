"""Building all checkpoints of the sandbox: the LM in one process, the encoders in another."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from synthbench.child_process import follow_parent
from synthbench.errors import UserError
from synthbench.sandbox.building import Recipe, Recipes, build_cross_encoder, build_encoder, build_lm

LM, ENCODER, CROSS_ENCODER = "lm", "encoder", "cross-encoder"
Say = Callable[[str, str], None]


def build_checkpoints(folder: Path, seed: int, recipes: Recipes | None = None, *, say: Say) -> None:
    """Train "lm", "encoder" and "cross-encoder" into folders of that name; `say` gets a name and a line.

    Each learns on one thread, so that a seed gives the same files whatever the number of cores; matrices so
    small gain little from a second one. `say` is called in the processes, thus must be picklable. What one
    process raises, and Ctrl-C here, end both. Raises UserError if one is killed.
    """
    recipes = recipes or Recipes()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, _start, (os.getpid(),)) as pool:
        try:
            lm = pool.submit(_build_lm, folder / LM, seed, recipes.lm, say)
            encoders = pool.submit(_build_encoders, folder, seed, recipes, say)
            for finished in as_completed([lm, encoders]):
                finished.result()
        except BrokenProcessPool:
            raise UserError("a process that builds was killed (out of memory?); nothing was kept") from None
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _start(parent: int) -> None:
    import torch

    follow_parent(parent)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)


def _build_lm(folder: Path, seed: int, recipe: Recipe, say: Say) -> None:
    from synthbench.quiet import quiet_transformers

    with quiet_transformers():
        build_lm(folder, seed, recipe, say=partial(say, LM))


def _build_encoders(folder: Path, seed: int, recipes: Recipes, say: Say) -> None:
    from synthbench.quiet import quiet_transformers

    with quiet_transformers():
        build_encoder(folder / ENCODER, seed, recipes.encoder, say=partial(say, ENCODER))
        build_cross_encoder(
            folder / CROSS_ENCODER,
            seed,
            recipes.cross_encoder,
            encoder=folder / ENCODER,
            say=partial(say, CROSS_ENCODER),
        )
