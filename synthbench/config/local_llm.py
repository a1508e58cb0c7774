"""A local chat model as the LLM that an experiment names."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.config.wording import COMMIT_PATTERN
from synthbench.errors import UserError
from synthbench.generation.language_model import LanguageModel
from synthbench.given_files import GivenName, path_of, read_json_object
from synthbench.llm.endpoint import BATCHES_AT_ONCE, Endpoint, LocalChat, Pacing
from synthbench.models import reference
from synthbench.plugins import ChatModel

NAME = "local"
_TEMPLATE_FILE = "chat_template.jinja"
_TOKENIZER_FILE = "tokenizer_config.json"


class LocalLLM(BaseModel):
    """A chat model that runs in the process of the stage that asks it, through transformers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    local: GivenName = Field(
        min_length=1,
        description="hub id, local folder (relative to the experiment file) or `package:module/path` of a"
        " model with a chat template",
    )
    revision: str | None = Field(
        None, pattern=COMMIT_PATTERN, description="full commit hash of a hub model; null: its main branch"
    )
    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        "fp32", description="of weights and products; softmax and what follows are fp32 at least"
    )
    max_new_tokens: int = Field(
        512, ge=1, description="longest answer in tokens to a request that names no `max_tokens`"
    )
    batch_size: int = Field(
        16, ge=1, le=256, description="most answers written side by side; fewer where the memory gives out"
    )
    max_failure_rate: float = Field(
        0.2, ge=0, le=1, description="a larger share of requests that fail for good stops the run"
    )
    offline: bool = Field(False, description="take answers from the cache alone, and load no model")

    @property
    def endpoint(self) -> str:
        """What it is called."""
        return NAME

    @property
    def chat(self) -> LocalChat:
        """The model and how it answers."""
        model = LanguageModel(model=self.local, revision=self.revision, dtype=self.dtype)
        return LocalChat(model, self.max_new_tokens, self.batch_size)

    def table_notes(self) -> tuple[str, ...]:
        """Tell what the precision may do to the answers."""
        return self.chat.language_model.rounding_notes("The LLM's answers")

    def identity(self) -> Mapping[str, Any]:
        """Return what the identity of a stage holds beside the model's commit or content hash."""
        return {
            "endpoint": NAME,
            "model": self.local,
            "dtype": self.dtype,
            "max_new_tokens": self.max_new_tokens,
        }

    def revisions(self) -> Mapping[str, str]:
        """Return {model: commit or content hash}; raises UserError if the model can't be found."""
        return reference.fingerprint(self.local, self.revision)

    def address(self) -> ChatModel:
        """Return what it is called: a folder by its name alone, wherever it lies. It has no address."""
        folder = path_of(self.local)
        return ChatModel(NAME, "", folder.resolve().name if folder.is_dir() else self.local)

    def at(self, address: ChatModel) -> Endpoint:
        """Return it as an endpoint, whose name tells its answers from those of other weights.

        Raises UserError if the model can't be found.
        """
        (revision,) = self.revisions().values()
        name = f"{NAME} (revision={revision}, dtype={self.dtype}, max_new_tokens={self.max_new_tokens})"
        pacing = Pacing(
            concurrency=BATCHES_AT_ONCE * self.batch_size,
            max_failure_rate=self.max_failure_rate,
            offline=self.offline,
        )
        return Endpoint(name, "", address.model, pacing=pacing, local=self.chat)

    def check_folder(self) -> None:
        """Raise UserError if a local or packaged model is missing or lacks what a chat model needs.

        A model of the hub is not looked at.
        """
        self.chat.language_model.check_folder()
        folder = reference.local(self.local)
        if folder is None or (folder / _TEMPLATE_FILE).is_file():
            return
        file = folder / _TOKENIZER_FILE
        if not file.is_file() or not read_json_object(file).get("chat_template"):
            raise UserError(
                f"{self.local}: no chat template in {folder}: looked for {_TEMPLATE_FILE}, and for"
                f" chat_template in {_TOKENIZER_FILE}; a model that follows instructions has one"
            )
