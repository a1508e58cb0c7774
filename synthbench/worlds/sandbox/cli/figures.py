"""The figures by which a build of the sandbox's checkpoints is judged."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from synthbench.auditing.confusion import Confusion, confusion
from synthbench.worlds.sandbox.documents import INSTRUCTIONS
from synthbench.worlds.sandbox.figures import TRUE_LABELS, encoder_spearman, lm_labels


class Figures(BaseModel):
    """What the LM wrote for each instruction by what it really is; and the encoder's rank correlation."""

    model_config = ConfigDict(frozen=True)

    lm_confusion: Confusion
    lm_textbook_confusion: Confusion
    encoder_spearman: float


def measure(lm: Path, encoder: Path, num_sentences: int = 200, num_pairs: int = 1000) -> Figures:
    """Let the LM answer `num_sentences` test sentences for each label, the encoder compare test pairs."""
    return Figures(
        lm_confusion=lm_confusion(lm, num_sentences),
        lm_textbook_confusion=lm_confusion(lm, num_sentences, "Textbook"),
        encoder_spearman=encoder_spearman(encoder, num_pairs),
    )


def lm_confusion(folder: Path, num_sentences: int, kind: str = "Task") -> Confusion:
    """Return what the LM wrote for each instruction (columns) by what it really is (rows)."""
    return confusion(lm_labels(folder, num_sentences, kind), rows=TRUE_LABELS, columns=list(INSTRUCTIONS))
