"""Metadata of a checkpoint: configuration, tokenizer, headers of weights. Read without torch."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from synthbench.base.errors import UserError
from synthbench.base.user_files import read_json_object
from synthbench.models import reference
from synthbench.models.checkpoint_files import modules
from synthbench.models.headers import Tensor, tensors

EncoderKind = Literal["dense", "sparse", "late-interaction"]
CONFIG, SETTINGS = "config.json", "config_sentence_transformers.json"
TOKENIZER_FILES = ("tokenizer.json", "vocab.*", "*.model", "tekken.json")
_READS_CHARACTERS = ("ByT5Tokenizer", "canine")
"""The tokenizer and the architecture whose tokens are bytes or characters, without a vocabulary's file."""
_FROM_PADDING = frozenset(
    {"camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "mpnet", "roberta"}
    | {"roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"}
)
"""Architectures that count positions from the padding token's id."""
_LEARNED = frozenset({"albert", "bert", "big_bird", "distilbert", "electra", "gpt2"})
"""Other architectures with a learned vector for each position."""
_POSITIONS = ("position_embeddings.weight", "wpe.weight", "embed_positions.weight")
_FROM_TWO = frozenset({"bart", "mbart", "opt", "pegasus_x", "plbart"})
"""Architectures that count positions from 2."""
_EMBEDDINGS = ("word_embeddings.weight", "wte.weight", "embed_tokens.weight", "tok_embeddings.weight")
_STACKS = frozenset({"block", "blocks", "h", "layer", "layers"})
_UNPADDED = frozenset({"gpt2", "gpt_neo", "gpt_neox", "gptj", "llama", "mistral", "qwen2", "qwen3"})
"""Architectures without a padding token unless the configuration names one."""
_HEAD = "ForSequenceClassification"
_OF_WORDS = ("ForMaskedLM", "ForPreTraining")
_SAVED_AS: Mapping[str, EncoderKind] = {
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "late-interaction",
    # PyLate's name, and the architecture that the authors of ColBERT save
    "ColBERT": "late-interaction",
    "HF_ColBERT": "late-interaction",
}
_DTYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "half": "fp16"}
_LAYER_COUNTS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
"""Names of the configured number of layers; transformers maps them all to the first."""
_UNIFORM_LAYERS = frozenset(
    {"bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "gpt2", "llama", "mistral"}
    | {"mpnet", "qwen2", "qwen3", "roberta", "xlm-roberta"}
)
"""Architectures whose layers all have the same tensors."""


@dataclass(frozen=True)
class CheckpointFacts:
    """Metadata from the files of a checkpoint's folder; unless described otherwise, None means not given.

    `config` is the transformer's configuration, {} for other models. `folder` holds the model's weights.
    """

    folder: Path
    config: Mapping[str, Any]
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    is_transformer: bool = True
    saved_as: str = ""
    """The class of sentence-transformers that saved the checkpoint; "" if none or unknown."""
    routes_tasks: bool = False
    """Whether the model reads queries and passages by different modules."""

    @cached_property
    def weights(self) -> Mapping[str, Tensor]:
        """Names, dtypes and shapes of the weights; {} without safetensors."""
        return tensors(self.folder) or tensors(self.folder, "**/*")

    @property
    def kind(self) -> str:
        """The architecture's name, such as bert; "" if the configuration names none."""
        return str(self.config.get("model_type") or "")

    @property
    def dtype(self) -> str | None:
        """The dtype in which transformers loads the model by default: the configured one, else the stored."""
        given = self.config.get("dtype") or self.config.get("torch_dtype")
        if isinstance(given, str):
            name = given.removeprefix("torch.")
            return _DTYPES.get(name, name)
        return next((each.dtype for each in self.weights.values() if each.is_floating), None)

    @property
    def quantisation(self) -> str:
        """The quantisation method of the weights, "" if not quantised."""
        given = self.config.get("quantization_config")
        if not isinstance(given, dict):
            return ""
        return str(given.get("quant_method") or "an unknown method")

    @property
    def encoder(self) -> EncoderKind:
        """The kind of encoder that the checkpoint was saved as; dense if its files don't say."""
        named = (self.saved_as, *self._architectures)
        return next((_SAVED_AS[name] for name in named if name in _SAVED_AS), "dense")

    @property
    def predicts_words(self) -> bool:
        """Whether the checkpoint was saved as a masked language model."""
        return any(name.endswith(_OF_WORDS) for name in self._architectures)

    @property
    def is_t5_encoder(self) -> bool:
        """Whether the checkpoint was saved as the encoder of a T5 or mT5, without its decoder."""
        return any(name.endswith("T5EncoderModel") for name in self._architectures)

    @property
    def _architectures(self) -> list[str]:
        given = self.config.get("architectures")
        return list(map(str, given)) if isinstance(given, list) else []

    @property
    def num_layers(self) -> int | None:
        """The configured number of layers."""
        return first_count(self.config, *_LAYER_COUNTS)

    @property
    def outputs(self) -> int | None:
        """Number of outputs of the classification head, None without one."""
        if not any(name.endswith(_HEAD) for name in self._architectures[:1]):
            return None
        labels = self.config.get("id2label")
        if isinstance(labels, dict):
            return len(labels)
        # transformers' own default
        return first_count(self.config, "num_labels") or 2

    @property
    def positions(self) -> int | None:
        """Number of learned positions that a text can use; None if positions are computed or unknown."""
        padding = self.config.get("pad_token_id")
        first = (padding if isinstance(padding, int) else 1) + 1 if self.kind in _FROM_PADDING else 0
        first = 2 if self.kind in _FROM_TWO else first
        rows = [
            each.shape[0] for name, each in self.weights.items() if name.endswith(_POSITIONS) and each.shape
        ]
        if not rows and not self.weights and self.kind in _FROM_PADDING | _LEARNED:
            rows = [first_count(self.config, "max_position_embeddings", "n_positions") or 0]
        return min(rows) - first if rows and min(rows) > first else None

    @property
    def vocabulary(self) -> int | None:
        """Number of token embeddings; the configured size of the vocabulary if the weights don't show it."""
        rows = [
            each.shape[0] for name, each in self.weights.items() if name.endswith(_EMBEDDINGS) and each.shape
        ]
        return min(rows, default=None) or first_count(self.config, "vocab_size")

    @property
    def pads(self) -> bool | None:
        """Whether the model has a padding token; None if configuration and architecture don't say."""
        if "pad_token_id" in self.config:
            return self.config["pad_token_id"] is not None
        return False if self.kind in _UNPADDED else None

    @property
    def has_tokenizer(self) -> bool:
        """Whether the folder holds a tokenizer's vocabulary, or its tokenizer needs none."""
        if any(True for pattern in TOKENIZER_FILES for _ in self.folder.glob(pattern)):
            return True
        named = object_in(self.folder / "tokenizer_config.json").get("tokenizer_class")
        return self.kind in _READS_CHARACTERS or named in _READS_CHARACTERS

    @cached_property
    def num_tokens(self) -> int | None:
        """1 + the largest token id that any text can contain; None without a readable tokenizer.json."""
        file = self.folder / "tokenizer.json"
        try:
            return _num_tokens(read_json_object(file)) if file.is_file() else None
        except (OSError, UserError):
            return None

    def lacks(self, num_layers: int | None = None) -> str:
        """Return the name of a layer or of a layer's tensor that the weights lack, else "".

        Checks the first `num_layers` layers (None: all), and only architectures whose layers are alike.
        """
        wanted = self.num_layers if num_layers is None else num_layers
        if self.kind not in _UNIFORM_LAYERS or wanted is None or not self.weights:
            return ""
        stacks: dict[str, dict[int, set[str]]] = {}
        for name in self.weights:
            if (found := _in_layer(name)) is not None:
                prefix, number, part = found
                stacks.setdefault(prefix, {}).setdefault(number, set()).add(part)
        # Other tensor names are not checked here; the loader reports missing weights.
        for prefix, layers in stacks.items():
            parts = set().union(*layers.values())
            for number in range(min(wanted, self.num_layers or wanted)):
                if number not in layers:
                    return f"{prefix}.{number}"
                if missing := min(parts - layers[number], default=""):
                    return f"{prefix}.{number}.{missing}"
        return ""


def _in_layer(name: str) -> tuple[str, int, str] | None:
    """Split a tensor's name into the layers' prefix, the layer's number and the rest; None outside layers."""
    parts = name.split(".")
    for at in range(1, len(parts) - 1):
        if parts[at - 1] in _STACKS and parts[at].isdecimal():
            return ".".join(parts[:at]), int(parts[at]), ".".join(parts[at + 1 :])
    return None


_known: dict[tuple[tuple[str, int, int], ...], CheckpointFacts | None] = {}


def facts_of(model: str, revision: str | None = None, *, asks: bool = False) -> CheckpointFacts | None:
    """Return a model's metadata; None without a configuration on this machine.

    For a hub model, read the local cache; with `asks`, request a few kB from the hub if the cache lacks them.
    Raises UserError if the configuration is invalid.
    """
    folder = reference.described(model, revision, asks=asks)
    return None if folder is None else facts_in(folder)


def facts_in(folder: Path) -> CheckpointFacts | None:
    """Return the metadata in a checkpoint's folder; None without a configuration.

    Raises UserError if the configuration can't be read, is no JSON object or names its architectures wrongly.
    """
    key = tuple(sorted(_described_by(folder)))
    if key not in _known:
        _known[key] = _read(folder)
    return _known[key]


def _described_by(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size (bytes) and modification time (ns) of each file that the metadata are read from."""
    # scandir: a plan asks hundreds of times, and globbing takes ten times as long.
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            file = f"{entry.path}/{CONFIG}" if entry.is_dir() else entry.path
            # The hub's cache may hold links whose files were deleted.
            with suppress(FileNotFoundError, NotADirectoryError):
                if file.endswith((".json", ".safetensors")):
                    status = os.stat(file)  # noqa: PTH116 - a Path for each file would double the time
                    yield file, status.st_size, status.st_mtime_ns


def _read(folder: Path) -> CheckpointFacts | None:
    parts = modules(folder)
    settings = object_in(folder / SETTINGS)
    first = parts[0] if parts else {}
    path = first.get("path")
    inner = folder / path if isinstance(path, str) and ".." not in Path(path).parts else folder
    config = object_in(inner / CONFIG)
    if not isinstance(config.get("architectures"), list | str | None):
        raise UserError(f"{inner / CONFIG}: `architectures` is no list of names")
    is_transformer = not parts or str(first.get("type")).endswith("Transformer")
    own = settings if settings.get("model_type", "SentenceTransformer") == "SentenceTransformer" else {}
    prompts = own.get("prompts")
    named = (
        {str(name): str(text or "") for name, text in prompts.items()} if isinstance(prompts, dict) else {}
    )
    default = own.get("default_prompt_name")
    if not (config or parts):
        return None
    return CheckpointFacts(
        inner,
        config if is_transformer else {},
        named,
        default if isinstance(default, str) else None,
        is_transformer,
        str(settings.get("model_type") or ""),
        any(_routes(each) for each in parts),
    )


def _routes(module: Mapping[str, Any]) -> bool:
    given = module.get("kwargs")
    takes_task = isinstance(given, list) and "task" in given
    return takes_task or str(module.get("type")).rpartition(".")[2] == "Router"


def described(
    facts: CheckpointFacts, num_layers: int | None = None, max_length: int | None = None, dtype: str = "fp32"
) -> Iterator[str]:
    """Yield short remarks for the user on a model that is loaded in `dtype`: architecture, layers, limits.

    `num_layers` and `max_length` are limits from the settings; None: no limit.
    """
    yield facts.kind or "no transformer"
    if facts.num_layers is not None:
        yield f"{facts.num_layers if num_layers is None else f'{num_layers} of {facts.num_layers}'} layers"
    yield dtype if facts.dtype in (None, dtype) else f"{dtype}, by itself {facts.dtype}"
    if facts.outputs is not None:
        yield f"{facts.outputs} output{'' if facts.outputs == 1 else 's'}"
    if facts.positions is not None:
        is_beyond = max_length is not None and max_length > facts.positions
        yield f"{facts.positions:,} positions{f', so max_length {max_length} is cut to them' * is_beyond}"
    if facts.vocabulary is not None:
        yield f"{facts.vocabulary:,} tokens"
    if facts.pads is False:
        yield "no padding token"
    if facts.routes_tasks:
        yield "modules of their own for queries and passages"


def object_in(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file, {} without the file; raises UserError if it holds no JSON object."""
    return read_json_object(file) if file.is_file() else {}


def first_count(config: Mapping[str, Any], *names: str) -> int | None:
    """Return the first value under these names that is a positive whole number, None if there is none."""
    return next((config[name] for name in names if type(config.get(name)) is int and config[name] > 0), None)


def _num_tokens(tokenizer: Mapping[str, Any]) -> int | None:
    """Return 1 + the largest id in the vocabulary and among added tokens that are not special."""
    ids = list(_ids(tokenizer))
    return max(ids) + 1 if ids else None


def _ids(tokenizer: Mapping[str, Any]) -> Iterator[int]:
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):
        yield from range(len(vocabulary))
    elif isinstance(vocabulary, dict):
        yield from (number for number in vocabulary.values() if isinstance(number, int))
    added = tokenizer.get("added_tokens")
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict) and isinstance(token.get("id"), int) and not token.get("special"):
            yield token["id"]
