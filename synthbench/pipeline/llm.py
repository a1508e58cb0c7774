"""The LLM of a run: started when the first stage needs it, ended with the run."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from synthbench.config.llm import LLM, SandboxLLM
from synthbench.plugins import ChatModel
from synthbench.runtime import Progress

SECONDS_TO_ANSWER = 5.0


@contextmanager
def llm_on_demand(settings: LLM | None, progress: Progress) -> Iterator[Callable[[], ChatModel | None]]:
    """Give a function that returns the LLM's address, and starts its server if none is running.

    Without settings there is no LLM; an endpoint with an address is not started, nor a local model, which the
    stage that asks it loads. The function raises UserError if the server does not start.
    """
    with ExitStack() as servers:
        running: list[tuple[ChatModel, Callable[[], bool]]] = []

        def address() -> ChatModel | None:
            if settings is None:
                return None
            if not isinstance(settings, SandboxLLM):
                return settings.address()
            if not running or not running[-1][1]():
                running.append(_start(settings, servers))
                progress.say(f"started the LLM '{settings.endpoint}' at {running[-1][0].base_url}")
            return running[-1][0]

        yield address


def _start(settings: SandboxLLM, servers: ExitStack) -> tuple[ChatModel, Callable[[], bool]]:
    from synthbench.sandbox.llm.process import running_server

    server = servers.enter_context(running_server(settings.server()))
    found = ChatModel(name=settings.endpoint, base_url=server.base_url, model=server.model)
    return found, lambda: server.process.poll() is None


def is_there(llm: ChatModel) -> bool:
    """Tell whether anything listens at the LLM's address; a local model has none, and is there."""
    if not llm.base_url:
        return True
    address = urlsplit(llm.base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False
