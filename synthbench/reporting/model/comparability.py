"""Whether a published figure may stand beside ours: measured alike, or with a mark that says why not."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.reporting.model.table import Difference
from synthbench.reporting.published import PublishedValue
from synthbench.reporting.results import RunResult, TaskScores

_LANGUAGE_MODEL = re.compile(r"data\.[^.]+\.language_model\.model")
_CHANGES = ("--profile", "--set")


@dataclass(frozen=True)
class Measured:
    """One of our cells: its runs, their scores (of every test set of an average), what was changed."""

    runs: Sequence[RunResult]
    scores: Sequence[TaskScores]
    is_average: bool
    overrides: Sequence[str]


def refusal(value: PublishedValue, measured: Measured) -> str:
    """Return why the figure is of something else, so that it may not stand there at all; empty if it is not.

    Main scores are named METRIC or METRIC_AGGREGATION; a published aggregation "none" is of a set without
    subsets, for which all are equal.
    """
    splits = {score.split for score in measured.scores} - {""}
    if value.split and splits - {value.split}:
        return f"published {value.split}, here {' and '.join(sorted(splits))}"
    for name in dict.fromkeys(score.main_score for score in measured.scores):
        metric, _, aggregation = name.partition("_")
        if name == value.metric:
            continue
        if metric != value.metric:
            return f"published {value.metric}, here {metric}"
        if "none" != value.aggregation != aggregation:
            return f"published aggregation {value.aggregation}, here {aggregation}"
    return ""


def differences(value: PublishedValue, measured: Measured) -> tuple[Difference, ...]:
    """Return in what the conditions differ under which the figure and ours were measured.

    What is not known of either, as of results from before it was recorded, makes no difference.
    """
    rows = (*_changes(measured), *_other_models(value, measured.runs))
    columns = (*_other_settings(value, measured.scores), *_other_items(value, measured))
    return (*rows, *(Difference(text, "column") for text in columns))


def within(parts: Mapping[str, Sequence[Difference]], own: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return in what the figures of the columns `parts`, by their titles, make their average differ.

    What the average differs in itself is not said again.
    """
    titles: dict[str, list[str]] = {}
    for title, found in parts.items():
        for difference in found:
            if difference.of == "column" and difference not in own:
                titles.setdefault(difference.text, []).append(title)
    return tuple(Difference(f"{text} ({', '.join(of)})", "column") for text, of in titles.items())


def _changes(measured: Measured) -> Iterator[Difference]:
    """Yield the overrides, unless they left these runs as the file has them and changed other rows alone."""
    changes = [each for each in measured.overrides if each.startswith(_CHANGES)]
    if changes and not all(run.is_of_file for run in measured.runs):
        yield Difference(f"ours are of the experiment with {' '.join(changes)}", "row")


def _other_settings(value: PublishedValue, scores: Sequence[TaskScores]) -> Iterator[str]:
    """Yield the evaluators' settings that are others: the classifier, which queries count."""
    for name, published in value.settings.items():
        here = {str(score.settings[name]) for score in scores if name in score.settings}
        if here - {published}:
            yield f"{name}: published {published}, here {' and '.join(sorted(here))}"


def _other_items(value: PublishedValue, measured: Measured) -> Iterator[str]:
    """Yield why the items that were scored, or what was done with their subsets, are others."""
    counts = {score.num_items for score in measured.scores}
    if value.n is not None and not measured.is_average and counts != {value.n}:
        yield f"{value.n} items published, {' and '.join(map(str, sorted(counts)))} here"
    if drawn := {score.drawn: None for score in measured.scores if score.drawn}:
        yield f"other items than the published ones, ours are {' and '.join(drawn)}"
    if value.aggregation == "mean" and not all(_has_subsets(score) for score in measured.scores):
        yield "a mean over subsets, unknown here"


def _other_models(value: PublishedValue, runs: Sequence[RunResult]) -> Iterator[Difference]:
    encoders = sorted({_encoder(run) for run in runs} - {""})
    if value.encoder and any(not _is_same(value.encoder, encoder) for encoder in encoders):
        yield Difference(f"published {value.encoder}, here {' and '.join(encoders)}", "row")
    generators = sorted({name for run in runs for name in _generators(run)})
    if value.generator and any(not _is_same(value.generator, name) for name in generators):
        text = f"published data of {value.generator}, here of {' and '.join(generators)}"
        yield Difference(text, "row")


def _encoder(run: RunResult) -> str:
    """Return the base with what was taken of it: "org/name, 2 layers"."""
    name = str(run.parameters.get("train.base.model", ""))
    if run.parameters.get("train.base.static"):
        return f"{name}, token embeddings"
    layers = run.parameters.get("train.base.num_layers")
    return f"{name}, {layers} layers" if layers else name


def _generators(run: RunResult) -> list[str]:
    models = [str(value) for path, value in run.parameters.items() if _LANGUAGE_MODEL.fullmatch(path)]
    return [*models, *(dataset.llm for dataset in run.datasets if dataset.llm)]


def _is_same(published: str, model: str) -> bool:
    """Say whether a hub id is of the published model, or of a model made from it: "roberta-base-nli-..."."""
    name = model.rpartition("/")[2].lower()
    return name == published or (name.startswith(f"{published}-") and "," not in name)


def _has_subsets(score: TaskScores) -> bool:
    return any("/" in name for name in score.scores)
