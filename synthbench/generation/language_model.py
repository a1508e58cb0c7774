"""Name and load a language model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.errors import UserError
from synthbench.base.runtime import device_name, use_threads
from synthbench.base.terminal import quiet_transformers
from synthbench.base.user_files import GivenName
from synthbench.models import reference
from synthbench.models.facts import TOKENIZER_FILES, CheckpointFacts, facts_of
from synthbench.models.loading import Dtype, check_vocabulary, loading_errors, weights_in
from synthbench.models.warm import loaded
from synthbench.worlds import MODEL_PREFIX

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from synthbench.base.runtime import Runtime

LENGTH_LIMITS = ("max_position_embeddings", "sliding_window", "window_size")
ARCHITECTURES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
}


class NamedLanguageModel(BaseModel):
    """A transformers language model as named in an experiment file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())

    model: GivenName = Field(
        min_length=1,
        description="hub id, local folder (relative to the experiment file), `package:module/path` (a"
        " folder in an installed package), or a"
        f" built-in toy model: `{MODEL_PREFIX}lm` (causal) or `{MODEL_PREFIX}encoder` (masked)",
    )
    revision: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{40}$",
        description="full commit hash of a hub model. Default: main",
    )

    def facts(self) -> CheckpointFacts | None:
        """Return the checkpoint's metadata, None if it is not on this machine."""
        return facts_of(self.model, self.revision)

    def fingerprint(self) -> dict[str, str]:
        """Return {model: commit or content hash}; raises UserError if the model can't be found."""
        return reference.fingerprint(self.model, self.revision)

    def check_folder(self) -> None:
        """Raise UserError if a local or packaged model is missing or lacks its configuration or tokenizer.

        Hub models are not checked.
        """
        folder = reference.local(self.model)
        if folder is None:
            return
        if not (folder / "config.json").is_file():
            raise UserError(f"{self.model}: no config.json in {folder}")
        if not any(True for pattern in TOKENIZER_FILES for _ in folder.glob(pattern)):
            raise UserError(
                f"{self.model}: no tokenizer in {folder}: looked for {', '.join(TOKENIZER_FILES)}"
            )

    def _loaded(self, runtime: "Runtime", kind: str, dtype: Dtype) -> "tuple[Any, PreTrainedTokenizerBase]":
        """Load the model onto the runtime's device, as this `kind` of `ARCHITECTURES`, and its tokenizer.

        Raises UserError if the model can't be found or loaded, or has no tokenizer.
        """
        use_threads(runtime)
        folder = reference.resolve(self.model, self.revision)
        device = device_name(runtime)

        def load() -> "tuple[Any, PreTrainedTokenizerBase]":
            tokenizer = self._tokenizer(folder)
            model = self._model(folder, kind, dtype)
            check_vocabulary(self.model, tokenizer, model)
            model.requires_grad_(requires_grad=False)
            return model.to(device).eval(), tokenizer

        return loaded(f"{kind} {folder} {dtype} {device}", load)

    def _model(self, folder: str, kind: str, dtype: Dtype) -> Any:  # noqa: ANN401 - transformers is untyped
        import transformers

        with quiet_transformers(), loading_errors(self.model, folder):
            loaded: Any = getattr(transformers, ARCHITECTURES[kind]).from_pretrained(
                folder, **weights_in(dtype), output_loading_info=True
            )
        model, report = loaded
        if report["missing_keys"]:
            missing = min(report["missing_keys"])
            raise UserError(f"{self.model}: its weights lack '{missing}'; is it a {kind} language model?")
        return model

    def _tokenizer(self, folder: str) -> "PreTrainedTokenizerBase":
        from transformers import AutoTokenizer

        with quiet_transformers(), loading_errors(self.model, folder, "its tokenizer "):
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise UserError(
                f"{self.model}: has no tokenizer; is tokenizer.json or vocab.json missing in its folder?"
            )
        return tokenizer


class LanguageModel(NamedLanguageModel):
    """`language_model:` of an experiment: the causal language model, and its precision."""

    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        "fp32", description="dtype of weights and products; logits, softmax and debiasing are always fp32"
    )

    def rounding_notes(self, texts: str) -> tuple[str, ...]:
        """Return a note for the table: in half precision, texts depend on batch size and device.

        `texts` names the texts in the note. Returns () for fp32.
        """
        if self.dtype == "fp32":
            return ()
        return (
            f"{texts} were written in {self.dtype}. Its rounding depends on batch size and device, which are"
            " no part of a stage's identity: another machine may write other texts, and each row that is"
            " trained on them may score otherwise.",
        )

    def load(self, runtime: "Runtime") -> "CausalModel":
        """Load model and tokenizer onto the runtime's device.

        Raises UserError if the model can't be found or loaded, or has no tokenizer.
        """
        model, tokenizer = self._loaded(runtime, "causal", self.dtype)
        return CausalModel(model, tokenizer, model.device)


@dataclass(frozen=True)
class CausalModel:
    """A causal language model of transformers with its tokenizer, ready to use."""

    model: Any
    tokenizer: "PreTrainedTokenizerBase"
    device: "torch.device"

    @property
    def max_length(self) -> int | None:
        """The maximum length in tokens; None if the configuration names none.

        A sliding window counts as the maximum, since our decoding attends to everything.
        """
        limits = [getattr(self.model.config, name, None) for name in LENGTH_LIMITS]
        return min((int(limit) for limit in limits if limit), default=None)

    @property
    def end_of_text(self) -> tuple[int, ...]:
        """The end-of-text tokens, which are never drawn (as in DINO's authors' code); () if unknown."""
        ids = self.model.generation_config.eos_token_id
        if ids is None:
            ids = self.tokenizer.eos_token_id
        if ids is None:
            return ()
        return tuple(ids) if isinstance(ids, list) else (int(ids),)
