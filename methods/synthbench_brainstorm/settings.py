"""Settings of both methods: seed, prompts, sampling parameters, and notes for tables."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from synthbench.api import (
    AS_SENT,
    ChatSampling,
    Component,
    GivenName,
    Temperature,
    TopP,
    own_path,
    readable,
)
from synthbench_brainstorm.prompts import (
    PROMPTS,
    PROMPTS_NAME,
    Category,
    CategoryPrompts,
    prompts,
)
from synthbench_brainstorm.requests import Chats


class OpenSampling(ChatSampling):
    """Sampling at temperature 1 and top-p 1, for diversity (appendix C of the paper)."""

    temperature: Temperature = Field(1.0, description=AS_SENT)
    top_p: TopP = Field(1.0, description=AS_SENT)


PromptsFile = Annotated[GivenName | None, readable(prompts)]


class WithPrompts(Component):
    """Seed and prompts of both steps, and the sampling of tasks."""

    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the LLM's answers")
    prompt_file: PromptsFile = Field(
        None, description="YAML file of prompts by category. Default: the reconstructed prompts"
    )
    task_sampling: OpenSampling = Field(OpenSampling(), description="sampling of tasks")

    def table_notes(self) -> tuple[str, ...]:
        """Return a note on the origin of the prompts."""
        if self.prompt_file is not None:
            return (f"Prompts for tasks and records: {self.prompt_file}.",)
        return (f"Prompts for tasks and records: {PROMPTS_NAME}, in our own words.",)

    def revisions(self) -> Mapping[str, str]:
        """Return the content hash of the prompts."""
        name = PROMPTS_NAME if self.prompt_file is None else "prompt file"
        return {name: PROMPTS.fingerprint(own_path(self.prompt_file))}

    def prompts_of(self, category: Category) -> CategoryPrompts | None:
        """Return the prompts of a category, None if the file has none."""
        return prompts(own_path(self.prompt_file)).of(category)

    def check_category(self, category: Category, *, has_tasks: bool = False) -> None:
        """Raise ValueError if the file has no prompts for a category, or none for its tasks."""
        found = self.prompts_of(category)
        if found is None:
            raise ValueError(f"{self.prompt_file} has no prompts for '{category}'")
        if has_tasks and found.tasks is None:
            raise ValueError(f"'{category}' has one instruction for all records, no tasks of its own")

    def chats(self, category: Category, languages: tuple[str, ...] = ("English",)) -> Chats:
        """Return the requests of a category with prompts."""
        found = self.prompts_of(category)
        assert found is not None
        return Chats(category, found, self.seed, languages)


def provenance(method: str, generator: str, seed: int, category: Category) -> dict[str, Any]:
    """Return the shared columns of a method's records; `subset` is the category."""
    return {"method": method, "generator": generator, "seed": seed, "subset": category.value}
