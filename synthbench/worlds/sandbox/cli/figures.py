"""Figures that measure a build of the sandbox's checkpoints."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from synthbench.auditing.confusion import Confusion, confusion
from synthbench.worlds.sandbox.documents import INSTRUCTIONS
from synthbench.worlds.sandbox.figures import TRUE_LABELS, encoder_spearman, lm_labels


class Figures(BaseModel):
    """The LM's texts counted by instruction and true label; the encoder's Spearman correlation with truth."""

    model_config = ConfigDict(frozen=True)

    lm_confusion: Confusion
    lm_textbook_confusion: Confusion
    encoder_spearman: float


def measure(lm: Path, encoder: Path, num_sentences: int = 200, num_pairs: int = 1000) -> Figures:
    """Measure the LM on `num_sentences` test sentences per instruction, the encoder on `num_pairs` pairs."""
    return Figures(
        lm_confusion=lm_confusion(lm, num_sentences),
        lm_textbook_confusion=lm_confusion(lm, num_sentences, "Textbook"),
        encoder_spearman=encoder_spearman(encoder, num_pairs),
    )


def lm_confusion(folder: Path, num_sentences: int, kind: str = "Task") -> Confusion:
    """Count the LM's texts by instruction (columns) and true label (rows); `kind`: a prompt's first word."""
    return confusion(lm_labels(folder, num_sentences, kind), rows=TRUE_LABELS, columns=list(INSTRUCTIONS))
