"""Settings of both methods: seed, prompts, sampling parameters, and notes for tables."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from synthbench.api import Method, OpenSampling, ShippedPrompts, WithPrompts
from synthbench_brainstorm.prompts import SHIPPED, BrainstormPrompts, Category, prompts_of
from synthbench_brainstorm.requests import Chats

_FIRST_FILE = "7acf10c43da541b7704698f34d028017862140980cff6afe88bbfc4744d9cc11"
"""The hash in identities for the shipped prompts: a former file's, kept so that identities don't change."""


def _is_gone(given: object) -> None:
    if given is not None:
        raise ValueError("is gone; the key is now `prompts`, and the file's form is another")


_Removed = Annotated[None, BeforeValidator(_is_gone)]


class BrainstormSettings(WithPrompts[BrainstormPrompts], Method):
    """Seed and prompts of both steps, and the sampling of tasks."""

    shipped: ClassVar[ShippedPrompts[BrainstormPrompts]] = SHIPPED
    asks_for: ClassVar[str] = "tasks and records"
    is_shardable = True

    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the LLM's answers")
    prompt_file: _Removed = Field(None, description="removed: use `prompts`")
    # Both steps sample at temperature 1 and top-p 1 (appendix C of the paper).
    task_sampling: OpenSampling = Field(OpenSampling(), description="sampling of tasks")

    def revisions(self) -> Mapping[str, str]:
        """Return a fixed hash for the identity if a shipped prompt is used, else {}."""
        is_used = self.shipped.shipped_among(self.prompts, self.prompt_names())
        return {"reconstructed prompts": _FIRST_FILE} if is_used else {}

    def chats(self, category: Category, languages: tuple[str, ...] = ("English",)) -> Chats:
        """Return the requests of a category."""
        return Chats(category, prompts_of(self.all_prompts, category), self.seed, languages)


def provenance(method: str, generator: str, seed: int, category: Category) -> dict[str, Any]:
    """Return the shared columns of a method's records; `subset` is the category."""
    return {"method": method, "generator": generator, "seed": seed, "subset": category.value}
