"""The dataset card: the README.md that travels with an exported data set."""

import json
from collections.abc import Mapping, Sequence

from synthbench.data.dataset import Manifest
from synthbench.data.records import RecordKind
from synthbench.escaping import markdown_text

LOSSES = {
    RecordKind.SCORED_PAIR: "CosineSimilarityLoss",
    RecordKind.PAIR: "MultipleNegativesRankingLoss",
    RecordKind.TRIPLET: "MultipleNegativesRankingLoss",
    RecordKind.RANKING: "LambdaLoss, with `grades` as its labels",
    RecordKind.SENTENCE: "an unsupervised loss",
}
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def dataset_card(manifest: Manifest, columns: Sequence[str], splits: Mapping[str, int]) -> str:
    """Return the card as Markdown with the YAML head that the Hugging Face hub reads.

    `splits` gives the number of records of each split.
    """
    sections = [
        _head(manifest),
        f"# Synthetic {manifest.kind} data{f' by {manifest.method}' if manifest.method else ''}",
        f"For sentence-transformers' {LOSSES[manifest.kind]}; columns: {_code(columns)}.",
        _table("Split", "Records", splits),
        "## How it was made",
        _facts(manifest),
    ]
    if manifest.dropped or manifest.num_failures:
        counts = manifest.dropped | ({"failures": manifest.num_failures} if manifest.num_failures else {})
        sections += ["## Left out", _table("Reason", "Records", counts)]
    if manifest.measured:
        found = (f"- {markdown_text(name)}: {value:.4g}" for name, value in manifest.measured.items())
        sections += ["## Measured", "\n".join(found)]
    if manifest.config:
        config = json.dumps(manifest.config, indent=1, ensure_ascii=False)
        sections += ["## Configuration", f"```json\n{config}\n```"]
    if manifest.notes:
        sections += ["## Notes", "\n".join(f"- {markdown_text(note)}" for note in manifest.notes)]
    return "\n\n".join(sections) + "\n"


def _head(manifest: Manifest) -> str:
    size = next((name for limit, name in SIZES if manifest.num_records < limit), "10M<n<100M")
    tags = ["synthetic", "sentence-transformers", "synthbench"]
    return "\n".join(["---", f"tags: {json.dumps(tags)}", f"size_categories: {json.dumps([size])}", "---"])


def _facts(manifest: Manifest) -> str:
    facts = {"Method": f"{manifest.method} (version {manifest.version})"} if manifest.method else {}
    facts |= {f"Revision of {name}": revision for name, revision in sorted(manifest.revisions.items())}
    facts |= {f"Source '{role}'": content for role, content in sorted(manifest.sources.items())}
    facts |= {f"Tokens, {name}": str(count) for name, count in sorted(manifest.tokens.items())}
    if manifest.cost_usd:
        facts["Cost"] = f"{manifest.cost_usd:.2f} US dollars"
    facts |= {"Content hash": manifest.content_hash, "Schema version": str(manifest.schema_version)}
    return "\n".join(f"- {markdown_text(name)}: `{_one_line(value)}`" for name, value in facts.items())


def _table(left: str, right: str, rows: Mapping[str, int]) -> str:
    lines = [f"| {left} | {right} |", "|---|---:|"]
    for name, count in rows.items():
        lines.append(f"| {markdown_text(name)} | {count:,} |")
    return "\n".join(lines)


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _one_line(text: str) -> str:
    """Return a text that stands between the marks of code."""
    return " ".join(text.split()).replace("`", "'")
