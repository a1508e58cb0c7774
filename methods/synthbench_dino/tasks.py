"""Labels of DINO's texts: instructions, and counterlabels that self-debiasing avoids (arXiv 2104.07540)."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from importlib import resources
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

PLACEHOLDER = "<X1>"
QUOTE = '"'
Counterlabels = Annotated[
    tuple[str, ...],
    Field(
        strict=False,
        description="labels that the text should not fit; decoding avoids tokens that their prompts favour",
    ),
]


Instruction = Annotated[
    str,
    Field(min_length=2, description="the prompt, up to and including the quotation mark that opens the text"),
]


class _TaskSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TextLabel(_TaskSection):
    """One label of texts written from scratch: its instruction and counterlabels."""

    instruction: Instruction
    counterlabels: Counterlabels = ()

    @field_validator("instruction")
    @classmethod
    def _opens_a_text(cls, text: str) -> str:
        if not text.endswith(QUOTE):
            raise ValueError(
                f"must end with an opening quotation mark, for the text ends at the next: {text!r}"
            )
        return text

    @property
    def description(self) -> str:
        """The instruction's first line, for provenance."""
        return self.instruction.splitlines()[0]


class PairLabel(TextLabel):
    """One label of second texts: its instruction, counterlabels and score."""

    score: float | None = Field(
        None, ge=0, le=1, description="the label as a similarity. Default: the label itself, as a number"
    )

    @field_validator("instruction")
    @classmethod
    def _takes_one_text(cls, text: str) -> str:
        if text.count(PLACEHOLDER) != 1:
            raise ValueError(f"needs the placeholder {PLACEHOLDER} for the first text, once: {text!r}")
        return text

    @property
    def beginning(self) -> str:
        """The prompt before the first text."""
        return self.instruction.partition(PLACEHOLDER)[0]


def check_counterlabels(labels: Mapping[str, TextLabel]) -> None:
    """Raise ValueError if a counterlabel is no label, or counterlabels form a cycle."""
    for name, label in labels.items():
        unknown = [counter for counter in label.counterlabels if counter not in labels]
        if unknown:
            raise ValueError(
                f"label '{name}': no label is called '{unknown[0]}'; there are {', '.join(labels)}"
            )
    try:
        TopologicalSorter({name: label.counterlabels for name, label in labels.items()}).prepare()
    except CycleError as error:
        raise ValueError(f"counterlabels go round in a circle: {' -> '.join(error.args[1])}") from None


class PairTask(_TaskSection):
    """Instructions for second texts: one per label, into which the first text is filled."""

    labels: dict[str, PairLabel] = Field(min_length=1, description="label -> instruction and counterlabels")

    @model_validator(mode="after")
    def _labels_fit(self) -> "PairTask":
        check_counterlabels(self.labels)
        for name in self.labels:
            self.score(name)
        return self

    def score(self, label: str) -> float:
        """Return the label as a similarity in [0, 1]; raises ValueError if it has none."""
        given = self.labels[label].score
        if given is not None:
            return given
        try:
            number = float(label)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            raise ValueError(f"label '{label}' is no number between 0 and 1; give it a `score:`")
        return number

    def prompts(self, text: str) -> dict[str, str]:
        """Return the prompt of each label with the first text filled in."""
        return {name: label.instruction.replace(PLACEHOLDER, text) for name, label in self.labels.items()}

    def check_first_texts(self) -> None:
        """Raise ValueError unless each prompt has quotation marks around the first text."""
        for name, label in self.labels.items():
            if f"{QUOTE}{PLACEHOLDER}{QUOTE}" not in label.instruction:
                raise ValueError(f"label '{name}': for `x1:`, {PLACEHOLDER} must be in quotation marks")

    def first_texts(self) -> dict[str, TextLabel]:
        """Return labels of first texts, without counterlabels; their prompts end where the text starts."""
        return {name: TextLabel(instruction=label.beginning) for name, label in self.labels.items()}


def _shipped(given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    if not isinstance(given, str):
        return given
    folder = resources.files("synthbench_dino") / "task_specs"
    names = sorted(
        path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml")
    )
    if given not in names:
        raise ValueError(
            f"no task '{given}' ships with the method, only {', '.join(names)}; or give `labels:`"
        )
    from ruamel.yaml import YAML

    return YAML(typ="safe").load((folder / f"{given}.yaml").read_text(encoding="utf-8"))


ShippedOrOwn = Annotated[PairTask, BeforeValidator(_shipped)]
