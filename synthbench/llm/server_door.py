"""Where the processes of a run ask for the address of a server that the run starts when it is needed."""

from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

from synthbench.base.errors import UserError


@dataclass(frozen=True)
class RunningServer:
    """A server that answers: its base URL, and what requests call its model."""

    base_url: str
    model_id: str


@dataclass(frozen=True)
class ServerDoor:
    """Asks the process of the run, which listens at `address`, for one of its servers."""

    address: str
    key: bytes
    server: str

    def server_if_ready(self) -> RunningServer | None:
        """Return the server, None while it starts; the first call has it started.

        Raises UserError if it did not start.
        """
        try:
            with Client(self.address, authkey=self.key) as line:
                line.send(self.server)
                answer = line.recv()
        except (OSError, EOFError, AuthenticationError):
            raise UserError(
                "the run that starts the LLM's server is gone; run the same command again"
            ) from None
        if isinstance(answer, str):
            raise UserError(answer)
        return answer if isinstance(answer, RunningServer) else None
