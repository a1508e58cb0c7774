"""A local Hugging Face cache filled with tiny checkpoints and small data sets under real names.

Laid out as huggingface_hub lays it out, so that what is tested is the ordinary way of loading, offline.
"""

import csv
import gzip
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Rows = Sequence[Mapping[str, Any]]

_SUBJECTS = ("a man", "a woman", "the girl", "two boys", "the dog", "a small cat")
_VERBS = ("plays", "holds", "sees", "carries", "paints", "eats")
_OBJECTS = ("the guitar", "a red ball", "the piano", "an apple", "some bread", "a long rope")
SENTENCES = tuple(
    f"{subject} {verb} {thing}." for subject in _SUBJECTS for verb in _VERBS for thing in _OBJECTS
)

QUOTE_LOGIT = 4.0
"""Added to a quotation mark's logit, where a word's have a deviation of about 1.7."""


@dataclass(frozen=True)
class HubCache:
    """A folder to be used as HF_HOME."""

    root: Path

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which a process uses this cache alone."""
        return {
            "HF_HOME": str(self.root),
            "HF_HUB_CACHE": str(self.root / "hub"),
            "HF_DATASETS_CACHE": str(self.root / "datasets"),
            "HF_HUB_OFFLINE": "1",
        }

    def add_dataset(self, name: str, revision: str, files: Mapping[str, Rows]) -> Path:
        """Add data files as their names say: .parquet, .csv, .tsv, .txt, .jsonl, .json.gz, .jsonl.gz."""
        with tempfile.TemporaryDirectory() as folder:
            for path, rows in files.items():
                _write_rows(Path(folder) / path, rows)
            return self._add("datasets", name, revision, Path(folder))

    def add_model(self, name: str, revision: str, build: Callable[[Path], None]) -> Path:
        """Add the model that `build` writes into its folder."""
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder))
            return self._add("models", name, revision, Path(folder))

    def _add(self, kind: str, name: str, revision: str, folder: Path) -> Path:
        assert len(revision) == 40, "a full commit hash"
        repository = self.root / "hub" / f"{kind}--{name.replace('/', '--')}"
        snapshot = repository / "snapshots" / revision
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = path.read_bytes()
            blob = repository / "blobs" / _blob_name(path, content)
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
            link = snapshot / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(Path(*[".."] * (len(link.relative_to(repository).parts) - 1), "blobs", blob.name))
        reference = repository / "refs" / "main"
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(revision, encoding="utf-8")
        return snapshot


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubCache:
    """Give an empty cache that this process, offline, and its children use during the test."""
    cache = HubCache(tmp_path / "huggingface")
    use(cache, monkeypatch)
    return cache


def use(cache: HubCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point this process and its children at a cache; only this knows the libraries' constants."""
    # Imported before the environment changes, since these modules read it once.
    import datasets.config
    import huggingface_hub.constants

    for name, value in cache.environment().items():
        monkeypatch.setenv(name, value)
    hub = huggingface_hub.constants
    monkeypatch.setattr(hub, "HF_HOME", str(cache.root))
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(cache.root / "hub"))
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    folder = cache.root / "datasets"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", folder / "downloads")
    monkeypatch.setattr(datasets.config, "EXTRACTED_DATASETS_PATH", folder / "downloads" / "extracted")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def tiny_bert(path: Path, *, weights: float = 0.02) -> None:
    """Write a random BERT of 3 layers and 32 dimensions with a WordPiece tokenizer and masked-LM head.

    `weights` is their standard deviation, that of a head put on the model included.
    """
    import transformers

    vocabulary = _wordpieces(path)
    settings = transformers.BertConfig(
        vocab_size=vocabulary,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=weights,
        **_TINY,
    )
    _save(transformers.BertForMaskedLM, settings, path)


def tiny_roberta(path: Path) -> None:
    """Write a random RoBERTa of 3 layers and 32 dimensions with a byte-level BPE tokenizer."""
    import transformers

    special = {
        "bos_token": "<s>",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    backend = _byte_pairs(list(special.values()))
    tokenizer = transformers.RobertaTokenizerFast(tokenizer_object=backend, model_max_length=64, **special)
    tokenizer.save_pretrained(path)
    settings = transformers.RobertaConfig(
        vocab_size=len(tokenizer),
        intermediate_size=64,
        max_position_embeddings=66,
        type_vocab_size=1,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        **_TINY,
    )
    _save(transformers.RobertaForMaskedLM, settings, path)


def tiny_gpt2(path: Path) -> None:
    """Write a random GPT-2 of 2 layers and 32 dimensions with a byte-level BPE tokenizer."""
    import transformers

    end = "<|endoftext|>"
    tokenizer = transformers.GPT2TokenizerFast(
        tokenizer_object=_byte_pairs([end]),
        model_max_length=128,
        bos_token=end,
        eos_token=end,
        unk_token=end,
    )
    tokenizer.save_pretrained(path)
    settings = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=128,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    _save(transformers.GPT2LMHeadModel, settings, path)


def quoting_gpt2(path: Path, n_positions: int = 512) -> None:
    """Write a random GPT-2 that prefers some words, and a quotation mark after a few of them.

    `tiny_gpt2` gives every token the same chance, so that it almost never closes a quotation.
    """
    import torch
    import transformers

    tiny_gpt2(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    settings = transformers.GPT2Config.from_pretrained(path, n_positions=n_positions, initializer_range=0.3)
    quote = tokenizer.convert_tokens_to_ids('"')
    with _seeded(), torch.no_grad():
        model = transformers.GPT2LMHeadModel(settings)
        embeddings = model.transformer.wte.weight
        pieces = [text.strip("Ġ") for text in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
        is_word = torch.tensor([len(piece) > 1 and piece.isascii() and piece.isalpha() for piece in pieces])
        embeddings[~is_word] *= 0.1
        embeddings[quote] *= 10
        model.transformer.ln_f.bias += QUOTE_LOGIT * embeddings[quote] / embeddings[quote].square().sum()
        model.save_pretrained(path)
    tokenizer.model_max_length = n_positions
    tokenizer.save_pretrained(path)


CHAT_TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}] {{ message.content }} {% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


def chatting_gpt2(path: Path) -> None:
    """Write a longer `quoting_gpt2` with a chat template."""
    import transformers

    quoting_gpt2(path, n_positions=2048)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(path)


def tiny_word_vectors(path: Path) -> None:
    """Write the mean of random word vectors, in the form in which sentence-transformers released GloVe's."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

    words = sorted({word for sentence in SENTENCES for word in sentence.rstrip(".").split()})
    with _seeded():
        weights = torch.randn(len(words), 16)
    vectors = WordEmbeddings(WhitespaceTokenizer(words), weights)
    model = SentenceTransformer(modules=[vectors, Pooling(16, "mean")], device="cpu")
    model.save(str(path), create_model_card=False)


def tiny_sentence_transformer(path: Path) -> None:
    """Write a mean-pooled, normalised sentence encoder over `tiny_bert`."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    with tempfile.TemporaryDirectory() as folder, _seeded():
        tiny_bert(Path(folder))
        encoder = Transformer(folder)
        pooling = Pooling(encoder.get_embedding_dimension(), "mean")
        model = SentenceTransformer(modules=[encoder, pooling, Normalize()], device="cpu")
        model.save(str(path), create_model_card=False)


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a shared `chatting_gpt2`; tests must not change it."""
    folder = tmp_path_factory.mktemp("chat_model")
    chatting_gpt2(folder)
    return folder


_TINY: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}


@contextmanager
def _seeded() -> Iterator[None]:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def _save(architecture: Any, settings: Any, path: Path) -> None:
    with _seeded():
        architecture(settings).save_pretrained(path)


def _wordpieces(path: Path) -> int:
    """Write a tokenizer of all words and letters in the sentences (a trained one differs from run to run)."""
    import transformers
    from tokenizers import BertWordPieceTokenizer

    words = dict.fromkeys(word for sentence in SENTENCES for word in sentence.replace(".", " .").split())
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys([*pieces, *words]))}
    backend = BertWordPieceTokenizer(vocabulary, lowercase=True)._tokenizer
    tokenizer = transformers.BertTokenizerFast(tokenizer_object=backend, model_max_length=64)
    tokenizer.save_pretrained(path)
    return len(vocabulary)


def _byte_pairs(special: list[str]) -> Any:
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES, vocab_size=400, special_tokens=special, show_progress=False)
    return trained._tokenizer


def _write_rows(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
        return
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
        return
    if path.suffix == ".txt":
        path.write_text("".join(f"{row['sentence']}\n" for row in rows), encoding="utf-8")
        return
    text = "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _blob_name(path: Path, content: bytes) -> str:
    """Name a blob as the hub's ETag does: SHA-256 for large-file storage, git's own hash for the rest."""
    if path.suffix in (".gz", ".parquet", ".safetensors", ".bin"):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
