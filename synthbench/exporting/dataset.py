"""Export synthetic data as a folder that `datasets.load_dataset` reads, with card and lineage."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError, did_you_mean
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import USUAL_CLASS, size_category, split_tables
from synthbench.data.records import RecordKind
from synthbench.data.training_columns import TrainingColumns
from synthbench.exporting import facts
from synthbench.exporting.cards import Statements, card, common_facts, write_texts
from synthbench.exporting.facts import ExportedPart
from synthbench.exporting.model import UNKNOWN
from synthbench.exporting.subject import ANY, Subject
from synthbench.exporting.training_code import USUAL_BASE, training_code

if TYPE_CHECKING:
    import pyarrow as pa

    Tables = Mapping[str, Mapping[str, pa.Table]]

DATA_FOLDER, PROVENANCE = "data", "provenance"
FOLDERS = {"default": DATA_FOLDER, PROVENANCE: PROVENANCE}
"""Configuration -> folder. `default` has the columns for training, `provenance` the rows' other columns."""


def part_named(subject: Subject, name: str, seed: str) -> ExportedPart:
    """Return the named part of the run's data; with "" the only part that a method made.

    Raises UserError if no part has this name, if no method made the part, or if `name` is "" and the number
    of parts made by methods is not 1. Also raises UserError if the store's copy is gone or damaged, or if the
    part differs between seeds and `seed` is "any".
    """
    known = {part.name: part for part in facts.parts(subject)}
    synthetic = [part.name for part in known.values() if part.summary.method]
    if not name:
        if len(synthetic) != 1:
            has = f"has several synthetic parts: {', '.join(synthetic)}; give --part"
            raise UserError(f"'{subject.row.label}' {has if synthetic else 'has no synthetic data'}")
        (name,) = synthetic
    if name not in known:
        raise UserError(f"--part {name}: '{subject.row.label}' has no such part{did_you_mean(name, known)}")
    if name not in synthetic:
        raise UserError(f"--part {name}: no method made it, it was read as it is; nothing to publish")
    if known[name].folder is None:
        raise UserError(f"part '{name}' of '{subject.title}' is no longer in the store; {subject.again()}")
    stages = {data.stage for run in subject.runs for data in run.datasets if data.part == name}
    if len(stages) > 1 and seed == ANY:
        seeds = ", ".join(str(run.seed) for run in subject.runs)
        raise UserError(
            f"part '{name}' of '{subject.row.label}' differs between seeds; give --seed, one of {seeds}"
        )
    return known[name]


def write_dataset(subject: Subject, part: ExportedPart, statements: Statements, folder: Path) -> None:
    """Write a part of the run's data, card, experiment file and lineage into the existing, empty `folder`.

    Raises UserError if a split's name is no valid file name, or if a file would reveal private data.
    """
    assert part.folder is not None, "part_named makes sure"
    dataset = SyntheticDataset.read(part.folder)
    tables = tables_of(dataset)
    write_tables(tables, folder)
    write_texts(_card(subject, part, statements, tables), subject, [part], folder)


def tables_of(dataset: SyntheticDataset) -> "Tables":
    """Return configuration -> split -> table.

    The configuration "default" has the training columns, PROVENANCE the others, in the same row order.
    A ranking's column `grades` is renamed `labels`, as sentence-transformers' CrossEncoderTrainer expects.
    Raises UserError if a split's name is no valid file name.
    """
    columns = TrainingColumns.of(dataset)
    splits = dict(split_tables(dataset))
    chosen = {split: columns.select(table) for split, table in splits.items()}
    if dataset.kind is RecordKind.RANKING:
        chosen = {split: table.rename_columns({"grades": "labels"}) for split, table in chosen.items()}
    others = {split: columns.others(table).drop_columns(["split"]) for split, table in splits.items()}
    return {"default": chosen, PROVENANCE: others}


def write_tables(tables: "Tables", folder: Path) -> None:
    """Write a Parquet file for each split, in a folder for each configuration."""
    import pyarrow.parquet as pq

    for configuration, splits in tables.items():
        (folder / FOLDERS[configuration]).mkdir()
        for split, table in splits.items():
            pq.write_table(table, folder / FOLDERS[configuration] / f"{split}.parquet")


def _card(subject: Subject, part: ExportedPart, statements: Statements, tables: "Tables") -> str:
    kind = RecordKind(part.summary.kind)
    sources = {each.name for each in part.summary.made_of if each.kind == "source"}
    content = {
        "name": _name(subject, part),
        "part": part,
        "columns": {name: _columns(splits) for name, splits in tables.items()},
        "usual_class": USUAL_CLASS[kind],
        "training": training_code(kind, _base(subject), statements.address, list(part.splits)),
        "figures": _figures(part),
        "overlaps": subject.run.overlaps if part.summary.trained_on else (),
        "sources": [(name, what) for name, what in facts.source_texts(subject) if name in sources],
        "bases": [],
        **common_facts(subject, statements, [part], part.name),
    }
    return card("dataset_card.md.jinja", _head(subject, part, statements, kind), content)


def configurations(splits: Iterable[str]) -> list[dict[str, Any]]:
    """Return the card's `configs` metadata, which tells `load_dataset` the files of each configuration."""
    return [
        {
            "config_name": name,
            "data_files": [{"split": split, "path": f"{place}/{split}.parquet"} for split in splits],
            **({"default": True} if name == "default" else {}),
        }
        for name, place in FOLDERS.items()
    ]


def _base(subject: Subject) -> str:
    """Return the first base model of the run that is on the hub, else USUAL_BASE."""
    on_hub = (name for name, version in subject.run.revisions if facts.is_on_hub(name, version))
    return next(on_hub, USUAL_BASE)


def _head(subject: Subject, part: ExportedPart, statements: Statements, kind: RecordKind) -> str:
    from huggingface_hub import DatasetCardData

    language = statements.language or facts.language(subject)
    splits = part.splits
    data = DatasetCardData(
        pretty_name=_name(subject, part),
        language=language,
        license=statements.license or UNKNOWN,
        annotations_creators="machine-generated",
        language_creators="machine-generated",
        multilinguality="monolingual",
        size_categories=size_category(sum(splits.values())),
        source_datasets=facts.hub_datasets(subject) or ["original"],
        task_categories=["sentence-similarity"],
        task_ids=["semantic-similarity-scoring"] if kind is RecordKind.SCORED_PAIR else None,
        tags=["synthetic", "sentence-transformers", "synthbench", part.summary.method],
        configs=configurations(splits),
    )
    return str(data.to_yaml())


def _name(subject: Subject, part: ExportedPart) -> str:
    return f"{subject.result.experiment} {subject.row.label} {part.name}"


def _figures(part: ExportedPart) -> list[tuple[str, float]]:
    """Return (description, value) of each figure from data checks and from the method."""
    checked = [(FIGURES[name], value) for name, value in part.summary.figures.items() if name in FIGURES]
    return [*checked, *part.summary.measured.items()]


def _columns(splits: "Mapping[str, pa.Table]") -> list[tuple[str, str]]:
    """Return each column's name and description; [] without splits."""
    names = next(iter(splits.values())).column_names if splits else []
    return [(name, MEANINGS.get(name) or MEANINGS[FURTHER_NEGATIVE]) for name in names]


FURTHER_NEGATIVE = "negative2"
FIGURES: Mapping[str, str] = {
    "num_sentences": "different sentences",
    "mean_words": "words in a sentence, mean",
    "distinct_1": "different words / all words (distinct-1)",
    "distinct_2": "different word pairs / all (distinct-2)",
    "identical": "share of records with two equal sentences",
    "duplicates": "share of records that are there twice",
    "score_sd": "standard deviation of the scores",
    "num_truncated": "different sentences (cross-encoder: pairs) that the training cut at its longest input",
    "num_truncated_alike": "of these, equal to another sentence then",
    "near_duplicates": "share of sentences with a near-duplicate",
    "same_words": "share of pairs with the same words",
    "no_common_word": "share of pairs without a common word",
}
"""Descriptions of the figures from data checks."""
MEANINGS: Mapping[str, Any] = {
    "sentence1": "the first sentence",
    "sentence2": "the second sentence",
    "score": "their similarity, in [0, 1]",
    "anchor": "a sentence",
    "positive": "a sentence that means the same",
    "likelihood": "how likely the LLM found the anchor: exp of its tokens' mean log-probability",
    "negative": "a sentence of another meaning",
    "further_negatives": "all negatives but the first",
    "former_positive": "the positive before a step chose another",
    FURTHER_NEGATIVE: "another sentence of another meaning",
    "scores": "a teacher's, of the anchor with the positive and with each negative",
    "sentence": "a sentence",
    "query": "a query",
    "candidates": "the sentences that are ranked for it",
    "grades": "how relevant each is, in [0, 1]",
    "labels": "how relevant each is, in [0, 1]",
    "further_queries": "more queries, which count as much as the first",
    "text": "a passage, or a query",
    "judged": "of a query, the ids of passages whose relevance is known",
    "id": "a stable id",
    "split": "train or dev",
    "subset": "a group within the data",
    "label": "the class that the record was made for",
    "source_id": "the record that this one was made from",
    "method": "what made it",
    "generator": "the model that wrote or labelled it",
    "instruction": "the prompt or sampler",
    "seed": "what its random choices began from",
}
"""Descriptions of the columns."""
