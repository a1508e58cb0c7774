"""The LLM that an experiment names: by its endpoint alone, or with the endpoint's settings."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from synthbench.sandbox.llm.settings import LLMSettings


class SandboxEndpoint(BaseModel):
    """The name by which files know the generated world's chat model."""

    endpoint: Literal["sandbox"] = Field(description="sandbox: the generated world's chat model, run locally")


class SandboxLLM(LLMSettings, SandboxEndpoint):
    """The chat model of the generated world; a run starts it when the first stage needs it."""

    def identity(self) -> Mapping[str, Any]:
        """Return what the identity of a stage holds: the name and what the answers depend on, no address."""
        return {"endpoint": self.endpoint, **self.content()}


def in_full(given: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
    """Return {endpoint: NAME} for the short form, NAME alone; all else as it is."""
    return {"endpoint": given} if isinstance(given, str) else given


AnyLLM = Annotated[SandboxLLM, BeforeValidator(in_full)]
