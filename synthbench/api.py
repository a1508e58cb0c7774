"""Everything that a plug-in may import."""

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.base.patterns import linear_pattern
from synthbench.base.runtime import Progress, ProgressTask, Runtime, device_name, progress_task
from synthbench.base.user_files import GivenName, path_of, read_settings
from synthbench.base.yaml_loading import load_yaml
from synthbench.bm25 import WordNeighbours, nearest_by_words
from synthbench.bm25.top_k import greatest
from synthbench.data.conversions import convert, distinct_sentences
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.likeness import directions
from synthbench.data.quality import kl_divergence
from synthbench.data.reading import Content, Faults, json_lines, text_of
from synthbench.data.records import (
    Failure,
    Pair,
    Ranking,
    Record,
    RecordKind,
    RetrievalText,
    ScoredPair,
    Sentence,
    Triplet,
)
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.generation.jobs import Amounts, Job, WritingCost, WritingTask, Written
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.masked_model import Blank, MaskedLanguageModel, MaskedModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.seq2seq import Seq2SeqLanguageModel, Seq2SeqModel
from synthbench.generation.writer import Writer
from synthbench.llm.answered import sentence_in, sentences_in, why_unusable
from synthbench.llm.asking import (
    AS_SENT,
    ChatSampling,
    OpenSampling,
    Penalty,
    Temperature,
    TopP,
    drawn,
    estimated_amount,
    hashed_number,
)
from synthbench.llm.client import LLM
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.json_answers import (
    AnswerError,
    has_content,
    json_object,
    json_values,
    same_text,
    text_under,
)
from synthbench.llm.judging import Question, Verdict, verdicts
from synthbench.llm.logprobs import TokenLogprob
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.models.artifact import save_model
from synthbench.models.batching import length_sorted_units
from synthbench.models.building import build_encoder
from synthbench.models.interfaces import (
    Encoder,
    ModelKind,
    PairScorer,
    Searcher,
    encoded_batches,
    finite_scores,
    of_passages,
    of_queries,
    symmetric_scores,
)
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Expected, Work, reading
from synthbench.plugins.asking import AnsweredItem, answered_items, written_items
from synthbench.plugins.contracts import (
    Component,
    GeneratedData,
    GenerationContext,
    Method,
    Need,
    Records,
    Step,
    StepContext,
    TrainedModel,
    Unit,
)
from synthbench.plugins.functions import method
from synthbench.plugins.importers import Importer, ImportOptions
from synthbench.plugins.labellers import Judge, Labeller, scored_batches, trained_on_gold
from synthbench.plugins.model_contracts import (
    Evaluation,
    Evaluator,
    Trainer,
    TrainingContext,
    TrainingSummary,
)
from synthbench.plugins.prompt_settings import ShippedPrompts, WithExemplars, WithPrompts
from synthbench.plugins.prompts import (
    EXEMPLARS,
    Exemplar,
    Prompt,
    PromptChat,
    PromptFile,
    Prompts,
    PromptSection,
    PromptText,
    drawn_chat,
    replaceable_prompts,
)
from synthbench.plugins.settings_files import parsed_settings
from synthbench.plugins.task_providers import TaskProvider
from synthbench.statistics.rank_correlation import spearman_influence
from synthbench.tables.characters import is_invisible
from synthbench.tables.numbers import number_in
from synthbench.words import Words, check_words, split_words, words_setting
from synthbench.words.scripts import words_between_spaces

__all__ = [
    "AS_SENT",
    "EXEMPLARS",
    "LLM",
    "Amounts",
    "AnswerError",
    "AnsweredItem",
    "Blank",
    "ChatAmount",
    "ChatAnswer",
    "ChatRequest",
    "ChatSampling",
    "Component",
    "Constant",
    "Content",
    "Encoder",
    "Evaluation",
    "Evaluator",
    "Exemplar",
    "Expected",
    "Failure",
    "Faults",
    "GeneratedData",
    "GenerationContext",
    "GivenName",
    "ImportOptions",
    "Importer",
    "Job",
    "Judge",
    "Labeller",
    "LanguageModel",
    "MaskedLanguageModel",
    "MaskedModel",
    "Method",
    "ModelKind",
    "Need",
    "OpenSampling",
    "Pair",
    "PairScorer",
    "Penalty",
    "Pretrained",
    "Progress",
    "ProgressTask",
    "Prompt",
    "PromptChat",
    "PromptFile",
    "PromptSection",
    "PromptText",
    "Prompts",
    "Question",
    "Ranking",
    "Record",
    "RecordKind",
    "Records",
    "RetrievalText",
    "Runtime",
    "Sampling",
    "ScoredPair",
    "Searcher",
    "Sentence",
    "Seq2SeqLanguageModel",
    "Seq2SeqModel",
    "ShippedPrompts",
    "Step",
    "StepContext",
    "SyntheticDataset",
    "TaskProvider",
    "Temperature",
    "TokenLogprob",
    "TopP",
    "TrainedModel",
    "Trainer",
    "TrainingContext",
    "TrainingSummary",
    "Triplet",
    "Unit",
    "UserError",
    "Verdict",
    "WithConstants",
    "WithExemplars",
    "WithPrompts",
    "WordNeighbours",
    "Words",
    "Work",
    "Writer",
    "WritingCost",
    "WritingTask",
    "Written",
    "added_field",
    "answered_items",
    "build_encoder",
    "check_words",
    "convert",
    "device_name",
    "did_you_mean",
    "directions",
    "distinct_sentences",
    "drawn",
    "drawn_chat",
    "encoded_batches",
    "estimated_amount",
    "finite_scores",
    "greatest",
    "has_content",
    "hashed_number",
    "is_invisible",
    "json_lines",
    "json_object",
    "json_values",
    "kl_divergence",
    "length_sorted_units",
    "linear_pattern",
    "load_yaml",
    "looks_like_a_refusal",
    "method",
    "nearest_by_words",
    "number_in",
    "of_passages",
    "of_queries",
    "parsed_settings",
    "path_of",
    "progress_task",
    "read_settings",
    "reading",
    "replaceable_prompts",
    "same_text",
    "save_model",
    "scored_batches",
    "sentence_in",
    "sentences_in",
    "spearman_influence",
    "split_words",
    "symmetric_scores",
    "text_of",
    "text_under",
    "trained_on_gold",
    "verdicts",
    "why_unusable",
    "words_between_spaces",
    "words_setting",
    "written_items",
]
