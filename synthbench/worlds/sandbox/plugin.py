"""The sandbox's entry point: synthbench uses the sandbox only through this `World`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synthbench.worlds.contract import Oracle, RunningLLM, World, WorldLLMSettings
from synthbench.worlds.sandbox import VERSION, shipped
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.source import KINDS, SetOptions

if TYPE_CHECKING:
    from typer import Typer


@contextmanager
def _running_llm(settings: WorldLLMSettings) -> Iterator[RunningLLM]:
    from synthbench.worlds.sandbox.llm.process import running_server

    assert isinstance(settings, LLMSettings)
    with running_server(settings) as server:
        yield RunningLLM(server.base_url, server.model, lambda: server.process.poll() is None)


def _oracle() -> Oracle:
    from synthbench.worlds.sandbox import oracle

    return oracle


def _commands() -> "Typer":
    from synthbench.worlds.sandbox.cli.commands import app

    return app


SANDBOX = World(
    version=VERSION,
    sets=SetOptions,
    set_kinds=KINDS,
    llm_settings=LLMSettings,
    llm_model=MODEL,
    running_llm=_running_llm,
    model_folder=shipped.folder,
    oracle=_oracle,
    commands=_commands,
)
