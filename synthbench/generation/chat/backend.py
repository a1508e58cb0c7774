"""Who answers: an endpoint over the network, or a model in this process."""

from types import TracebackType
from typing import Protocol, Self

from synthbench.generation.chat.cache import Answer
from synthbench.generation.chat.requests import ChatRequest


class Backend(Protocol):
    """Asked by one event loop, many requests at a time; leaving it ends what is under way."""

    async def __aenter__(self) -> Self:
        """Get ready."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what is under way."""

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; `attempt` is what nobody else's attempt is called.

        Raises FailedAttemptError, or UserError if no request can succeed.
        """
