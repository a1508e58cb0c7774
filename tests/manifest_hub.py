"""A hub on loopback that serves what `hub_manifests.yaml` lists: real names, files, formats and columns.

Contents are tiny: random weights in the checkpoint's own layout, and a few rows with the listed columns.
"""

import csv
import gzip
import hashlib
import io
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import filter as fnmatch_filter
from fnmatch import fnmatch
from functools import cache, partial
from http.server import BaseHTTPRequestHandler
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml
from hub_cache import SENTENCES, quoting_gpt2, tiny_bert, tiny_roberta
from loopback import serving

from synthbench.sources.tasks import TASKS

MANIFESTS = Path(__file__).with_name("hub_manifests.yaml")
ROWS = {"pair-class": 400, "test/en-de": 60, "test": 20}
"""Rows by a part of the file's name; the first match counts, other files have 24.

A tenth of the pairs has a score above 0.9; they are languages_syncse's translations.
"""
_OTHER_ROWS = 24
_NOT_READ = (".msgpack", ".h5", ".ot", ".onnx", ".tar", ".zip")
"""Files that nothing downloads."""


@dataclass(frozen=True, eq=False)
class Held:
    """A repository at a commit: the names it is found under, and its files' contents."""

    kind: str
    names: tuple[str, ...]
    commit: str
    is_main: bool
    columns: Mapping[str, Sequence[str] | None]
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its present name."""
        return self.names[-1]

    def contents(self) -> Mapping[str, bytes]:
        """Return the files, which are made once in a process."""
        return _model(self) if self.kind == "models" else _data(self)


@cache
def held() -> tuple[Held, ...]:
    """Return all repositories of the manifests."""
    document = yaml.safe_load(MANIFESTS.read_text(encoding="utf-8"))
    return tuple(
        Held(
            kind,
            _names(key.partition("@")[0], given),
            given["commit"].ljust(40, "0"),
            bool(given.get("main")),
            given.get("columns", {}),
            tuple(given["files"]),
        )
        for kind in ("models", "datasets")
        for key, given in document[kind].items()
    )


def _names(key: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((given.get("former_name", key), key, given.get("repository", key))))


@dataclass
class ManifestHub:
    """The running hub; `asked` are its requests, `gated` the names that it gives to nobody."""

    address: str = ""
    asked: list[str] = field(default_factory=list)
    gated: set[str] = field(default_factory=set)

    def environment(self, home: Path) -> dict[str, str]:
        """Return the environment of a process that takes this hub for the real one."""
        return {
            "HF_ENDPOINT": self.address,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "HF_HUB_OFFLINE": "0",
        }


@contextmanager
def manifest_hub() -> Iterator[ManifestHub]:
    """Start the hub."""
    hub = ManifestHub()

    class Handler(_Handler):
        of = hub

    with serving(Handler) as hub.address:
        yield hub


def use_hub(hub: ManifestHub, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process and its children take the hub for the real one."""
    import datasets.config
    from huggingface_hub import constants

    for name, value in hub.environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(constants, "ENDPOINT", hub.address)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HOME", str(home))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "datasets")


class _Handler(BaseHTTPRequestHandler):
    of: ManifestHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        path = unquote(address.path).strip("/")
        self.of.asked.append(f"{self.command} /{path}")
        kind, _, rest = path.removeprefix("api/").partition("/")
        if not path:
            self._send(200, b"a hub")
        elif not path.startswith("api/"):
            kind = "datasets" if path.startswith("datasets/") else "models"
            name, _, file = path.removeprefix("datasets/").partition("/resolve/")
            self._file(kind, name, *file.split("/", 1))
        elif kind not in ("models", "datasets"):
            self._error(404, "NotFound", "no such address")
        elif not rest:
            self._list(kind, parse_qs(address.query))
        else:
            self._describe(kind, rest)

    def _list(self, kind: str, query: Mapping[str, list[str]]) -> None:
        owner, part = query.get("author", [""])[0], query.get("search", [""])[0]
        names = dict.fromkeys(each.name for each in held() if each.kind == kind)
        found = [name for name in names if name.startswith(f"{owner}/" if owner else "") and part in name]
        self._json(200, [{"id": name} for name in found])

    def _describe(self, kind: str, rest: str) -> None:
        name, revision, what = rest, "main", "info"
        for word in ("/revision/", "/tree/", "/auth-check"):
            if word in rest:
                name, _, revision = rest.partition(word)
                what = word.strip("/")
        revision, _, folder = revision.partition("/")
        if self._is_moved(kind, name):
            return
        if what == "auth-check":
            if name in self.of.gated:
                self._error(403, "GatedRepo", "Access to this repository is restricted")
            else:
                self._json(200, {})
        elif (repository := self._find(kind, name, revision)) is None:
            return
        elif what == "tree":
            inside = f"{folder}/" if folder else ""
            files = repository.contents().items()
            entries = [_entry(path, content) for path, content in files if path.startswith(inside)]
            if entries:
                self._json(200, entries)
            else:
                self._error(404, "EntryNotFound", f"{folder} does not exist")
        else:
            siblings = [
                {"rfilename": path, "size": len(content)} for path, content in repository.contents().items()
            ]
            gated = "auto" if name in self.of.gated else False
            self._json(200, {"id": name, "sha": repository.commit, "siblings": siblings, "gated": gated})

    def _is_moved(self, kind: str, name: str) -> bool:
        """Redirect from a former name to the present one, as the hub does; return whether it was one."""
        present = next((each.name for each in held() if each.kind == kind and name in each.names), name)
        if present != name:
            self._send(307, b"", {"Location": self.path.replace(name, present, 1)})
        return present != name

    def _file(self, kind: str, name: str, revision: str, path: str) -> None:
        if self._is_moved(kind, name):
            return
        repository = self._find(kind, name, revision)
        if repository is None:
            return
        if name in self.of.gated:
            self._error(403, "GatedRepo", "Access to this repository is restricted")
        elif path not in repository.files:
            self._error(404, "EntryNotFound", "Entry not found")
        else:
            content = repository.contents()[path]
            headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{_etag(content)}"'}
            self._send(200, content, headers)

    def _find(self, kind: str, name: str, revision: str) -> Held | None:
        named = [each for each in held() if each.kind == kind and name in each.names]
        found = [each for each in named if revision == each.commit or (revision == "main" and each.is_main)]
        if not named:
            self._error(404, "RepoNotFound", "HubRepository not found")
        elif not found:
            self._error(404, "RevisionNotFound", "Invalid rev id")
        return found[0] if found else None

    def _error(self, status: int, code: str, text: str) -> None:
        self._json(status, {"error": text}, {"X-Error-Code": code, "X-Error-Message": text})

    def _json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": _etag(content)}


def _etag(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


_OLD_POOLING = {
    "pooling_mode_cls_token": False,
    "pooling_mode_mean_tokens": True,
    "pooling_mode_max_tokens": False,
    "pooling_mode_mean_sqrt_len_tokens": False,
}
_VERSIONS = {"sentence_transformers": "2.0.0", "transformers": "4.6.1", "pytorch": "1.8.1"}
WORD_DIMENSION = 16


def _tiny_t5(path: Path) -> None:
    """Write a random T5 whose tokenizer is a SentencePiece model alone, as its makers did in 2021."""
    import sentencepiece
    import torch
    import transformers

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=80, hard_vocab_limit=False,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    (path / "spiece.model").write_bytes(model.getvalue())
    extra = [f"<extra_id_{number}>" for number in range(100)]
    special = {
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "additional_special_tokens": extra,
    }
    (path / "special_tokens_map.json").write_text(json.dumps(special), encoding="utf-8")
    settings = {**special, "extra_ids": 100, "model_max_length": 512}
    (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    config = transformers.T5Config(
        vocab_size=192, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    torch.manual_seed(0)
    transformers.T5ForConditionalGeneration(config).save_pretrained(path)


def _tiny_distilbert(path: Path) -> None:
    import torch
    import transformers

    tiny_bert(path)
    (path / "model.safetensors").unlink()
    vocabulary = json.loads((path / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    config = transformers.DistilBertConfig(
        vocab_size=vocabulary, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64
    )
    torch.manual_seed(0)
    transformers.DistilBertModel(config).save_pretrained(path)


def _scoring_bert(path: Path) -> None:
    import torch
    import transformers

    tiny_bert(path)
    config = transformers.BertConfig.from_pretrained(path, num_labels=1)
    torch.manual_seed(0)
    transformers.BertForSequenceClassification(config).save_pretrained(path)


def _old_word_vectors(path: Path) -> None:
    """Write the mean of random word vectors as sentence-transformers 2.0 did: pickled, in a module folder."""
    import torch

    words = sorted({word for sentence in SENTENCES for word in sentence.rstrip(".").split()})
    inner = path / "0_WordEmbeddings"
    inner.mkdir()
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(len(words), WORD_DIMENSION, generator=generator)
    torch.save({"emb_layer.weight": weights}, inner / "pytorch_model.bin")
    tokenizer = "sentence_transformers.models.tokenizer.WhitespaceTokenizer.WhitespaceTokenizer"
    _write_json(
        inner / "whitespacetokenizer_config.json",
        {"vocab": words, "stop_words": ["a"], "do_lower_case": False},
    )
    _write_json(
        inner / "wordembedding_config.json",
        {"tokenizer_class": tokenizer, "update_embeddings": False, "max_seq_length": 1_000_000},
    )
    _write_modules(path, "WordEmbeddings", "0_WordEmbeddings", WORD_DIMENSION)


def _write_modules(path: Path, first: str, folder: str, dimension: int) -> None:
    listed = [(first, folder), ("Pooling", "1_Pooling")]
    modules = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, place) in enumerate(listed)
    ]
    _write_json(path / "modules.json", modules)
    _write_json(path / "config_sentence_transformers.json", {"__version__": _VERSIONS})
    (path / "1_Pooling").mkdir(exist_ok=True)
    _write_json(path / "1_Pooling" / "config.json", {"word_embedding_dimension": dimension, **_OLD_POOLING})


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def _splade(path: Path) -> None:
    """Write a BERT as sentence-transformers 5 saved a SparseEncoder."""
    tiny_bert(path, weights=0.5)
    kinds = (("MLMTransformer", ""), ("SpladePooling", "1_SpladePooling"))
    package = "sentence_transformers.sparse_encoder.models"
    modules = [
        {"idx": number, "name": str(number), "path": place, "type": f"{package}.{kind}"}
        for number, (kind, place) in enumerate(kinds)
    ]
    _write_json(path / "modules.json", modules)
    settings = {
        "model_type": "SparseEncoder",
        "__version__": {"sentence_transformers": "5.0.0"},
        "prompts": {"query": "", "document": ""},
        "default_prompt_name": None,
        "similarity_fn_name": "dot",
    }
    _write_json(path / "config_sentence_transformers.json", settings)
    (path / "1_SpladePooling").mkdir()
    size = json.loads((path / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    pooling = {"pooling_strategy": "max", "activation_function": "relu", "word_embedding_dimension": size}
    _write_json(path / "1_SpladePooling" / "config.json", pooling)


def _colbert(path: Path) -> None:
    """Write a BERT with a projection and settings, as the authors of ColBERT save it."""
    import torch
    from safetensors.torch import load_file, save_file

    tiny_bert(path, weights=0.5)
    weights = load_file(path / "model.safetensors")
    inner = {name: value for name, value in weights.items() if name.startswith("bert.")}
    projection = torch.randn(128, 32, generator=torch.Generator().manual_seed(0))
    save_file({**inner, "linear.weight": projection}, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    _write_json(path / "config.json", {**config, "architectures": ["HF_ColBERT"]})
    settings = {
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_maxlen": 32,
        "doc_maxlen": 180,
        "dim": 128,
        "similarity": "cosine",
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
    }
    _write_json(path / "artifact.metadata", settings)


BUILDERS: Mapping[str, Callable[[Path], None]] = {
    "sparse-encoder/": _splade,
    "colbert-ir/": _colbert,
    "query-gen": _tiny_t5,
    "word_embeddings": _old_word_vectors,
    "distilbert": _tiny_distilbert,
    "cross-encoder/": _scoring_bert,
    "gpt2": quoting_gpt2,
    "mistralai/": quoting_gpt2,
    "roberta": tiny_roberta,
    # Spreads scores like a trained model: KDE would keep no pair if all scores were nearly equal.
    "": partial(tiny_bert, weights=0.5),
}
"""Part of a name -> builder of a checkpoint of its architecture; the first match counts."""


_SHARDED = "model.safetensors.index.json"


def _into_shards(folder: Path, names: Sequence[str]) -> None:
    """Write the weights once more, divided among several files."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    places = dict(zip(weights, cycle(names), strict=False))
    for name in names:
        part = {key: weights[key] for key, place in places.items() if place == name}
        save_file(part, folder / name, {"format": "pt"})
    _write_json(folder / _SHARDED, {"metadata": {}, "weight_map": places})


@cache
def _model(repository: Held) -> Mapping[str, bytes]:
    build = next(build for part, build in BUILDERS.items() if part in repository.name)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        if "modules.json" in repository.files and not (folder / "modules.json").exists():
            _write_modules(folder, "Transformer", "", 32)
        if _SHARDED in repository.files:
            _into_shards(folder, fnmatch_filter(repository.files, "model-*.safetensors"))
        return {file: _content(folder, file) for file in repository.files}


def _content(built: Path, file: str) -> bytes:
    """Return a listed file, made of what the builder wrote in today's format."""
    path = built / file
    if path.suffix in _NOT_READ or fnmatch(file, "pytorch_model-*.bin"):
        return b"not read"
    if path.name == "pytorch_model.bin" and not path.exists():
        return _pickled(path.with_name("model.safetensors"))
    if path.name in ("vocab.txt", "vocab.json", "merges.txt"):
        return _vocabulary(built / "tokenizer.json", path.name)
    if path.name == "tokenizer_config.json" and "spiece.model" not in {each.name for each in built.iterdir()}:
        return b'{"model_max_length": 64}'
    if path.name == "sentence_bert_config.json":
        return b'{"max_seq_length": 64, "do_lower_case": false}'
    if path.name in ("sentencepiece.bpe.model", "tokenizer.model"):
        return b"beside tokenizer.json"
    if path.name in (
        "data_config.json",
        "added_tokens.json",
        "dict.txt",
        "generation_config_for_text_generation.json",
        "pytorch_model.bin.index.json",
    ):
        return b"{}"
    if path.name == "special_tokens_map.json" and not path.exists():
        return b"{}"
    return path.read_bytes()


def _pickled(weights: Path) -> bytes:
    import torch
    from safetensors.torch import load_file

    buffer = io.BytesIO()
    torch.save(load_file(weights), buffer)
    return buffer.getvalue()


def _vocabulary(tokenizer: Path, name: str) -> bytes:
    model = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]
    if name == "vocab.json":
        return json.dumps(model["vocab"], ensure_ascii=False).encode()
    if name == "merges.txt":
        return "\n".join(["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]).encode()
    return "".join(f"{word}\n" for word in sorted(model["vocab"], key=model["vocab"].get)).encode()


@cache
def _data(repository: Held) -> Mapping[str, bytes]:
    return {file: _table(repository, file) for file in repository.files}


def _table(repository: Held, file: str) -> bytes:
    if file.endswith((*_NOT_READ, ".md", ".py")):
        return b"not read"
    columns = next(columns for pattern, columns in repository.columns.items() if fnmatch(file, pattern))
    number = next((size for part, size in ROWS.items() if part in file), _OTHER_ROWS)
    draw = random.Random(f"{repository.name}/{file}")
    if columns is None:
        return "".join(f"{text}\n" for text in draw.sample(SENTENCES, number)).encode()
    first = number * int(shard[1]) if (shard := re.search(r"-(\d+)-of-\d+\.", file)) else 0
    rows = [
        {name: _cell(repository, name, row, draw) for name in columns} for row in range(first, first + number)
    ]
    return _written(file, rows)


def _cell(repository: Held, column: str, row: int, draw: random.Random) -> Any:
    high = next((task.score_range for task in TASKS.values() if task.hub_id == repository.name), (0, 1))
    cells: Mapping[str, Callable[[], Any]] = {
        "score": lambda: 1 if "*.tsv" in repository.columns else round(draw.uniform(*high), 2),
        "label": lambda: row % 2,
        "positive": lambda: draw.sample(SENTENCES, 1),
        "negative": lambda: draw.sample(SENTENCES, 3),
        "_id": lambda: str(row),
        "query-id": lambda: str(row % _OTHER_ROWS),
        "corpus-id": lambda: str(row),
        "title": lambda: f"Title {row}",
    }
    return cells.get(column, lambda: f"{draw.choice(SENTENCES).rstrip('.')} {row}.")()


def _written(file: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    suffix = Path(file.removesuffix(".gz")).suffix
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), buffer)
        return buffer.getvalue()
    if suffix in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), delimiter="," if suffix == ".csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return gzip.compress(lines, mtime=0) if file.endswith(".gz") else lines
