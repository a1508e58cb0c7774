"""All that a plug-in may import."""

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import (
    Failure,
    Pair,
    Ranking,
    Record,
    RecordKind,
    ScoredPair,
    Sentence,
    Triplet,
)
from synthbench.errors import UserError
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.labelling import length_sorted_units, symmetric_scores
from synthbench.plugins import (
    ChatModel,
    Component,
    Evaluation,
    Evaluator,
    GeneratedData,
    GenerationContext,
    Method,
    Need,
    TrainedModel,
    Trainer,
    TrainingContext,
    TrainingSummary,
    Unit,
)
from synthbench.runtime import Progress, ProgressTask, Runtime

__all__ = [
    "ChatModel",
    "Component",
    "Encoder",
    "Evaluation",
    "Evaluator",
    "Failure",
    "GeneratedData",
    "GenerationContext",
    "Method",
    "ModelKind",
    "Need",
    "Pair",
    "PairScorer",
    "Progress",
    "ProgressTask",
    "Ranking",
    "Record",
    "RecordKind",
    "Runtime",
    "ScoredPair",
    "Sentence",
    "SyntheticDataset",
    "TrainedModel",
    "Trainer",
    "TrainingContext",
    "TrainingSummary",
    "Triplet",
    "Unit",
    "UserError",
    "length_sorted_units",
    "symmetric_scores",
]
