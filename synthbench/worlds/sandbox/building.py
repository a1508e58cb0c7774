"""Build the sandbox's checkpoints: ordinary Hugging Face folders, small enough to ship."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from math import cos, pi
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeVar

from synthbench.base.errors import UserError
from synthbench.base.processes import follow_parent
from synthbench.worlds.sandbox import documents

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Parameter
    from transformers import (
        BatchEncoding,
        GPT2LMHeadModel,
        PreTrainedModel,
        PreTrainedTokenizerBase,
        RobertaForMaskedLM,
        RobertaModel,
    )

VOCABULARY_SIZE = 4000
LONGEST_TEXT = 128
WIDTH, NUM_HEADS, LM_LAYERS, ENCODER_LAYERS, CROSS_ENCODER_LAYERS = 128, 4, 3, 2, 3
MASKED_SHARE = 0.3
# The LM learns this share of documents whole, so that it can also write first sentences; of the others it
# learns only the continuation, where instructions are followed.
WHOLE_DOCUMENT_SHARE = 0.3
WARMUP_STEPS = 100
LAST_RATE = 0.02
NOT_LEARNT = -100

# This many batches are drawn together and sorted by length: over 90 % of their tokens are text, not padding,
# against 60 to 80 % for single batches.
POOLED_BATCHES = 16

Item = TypeVar("Item")
Batch = tuple["Tensor", "Tensor"]


@dataclass(frozen=True)
class Training:
    """Training settings of a checkpoint; an LM sees only paraphrases in its first `copying_steps` steps."""

    num_steps: int
    batch_size: int
    learning_rate: float
    copying_steps: int = 0
    vocabulary_texts: int = 60_000


LM_RECIPE = Training(num_steps=4800, batch_size=32, learning_rate=3e-3, copying_steps=900)
ENCODER_RECIPE = Training(num_steps=2500, batch_size=48, learning_rate=2e-3)
CROSS_ENCODER_RECIPE = Training(num_steps=5500, batch_size=48, learning_rate=2e-3)


@dataclass(frozen=True)
class Recipes:
    """The recipe of each checkpoint."""

    lm: Training = LM_RECIPE
    encoder: Training = ENCODER_RECIPE
    cross_encoder: Training = CROSS_ENCODER_RECIPE


def build_lm(folder: Path, seed: int, recipe: Training = LM_RECIPE, *, say: Callable[[str], None]) -> None:
    """Train a GPT-2 on documents that follow their instruction imperfectly, and save it."""
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer, set_seed

    set_seed(seed)
    texts = (each.prompt + each.continuation for each in documents.instruction_documents(seed))
    say(f"words of {recipe.vocabulary_texts:,} texts")
    tokenizer = _tokenizer(GPT2Tokenizer(), texts, recipe.vocabulary_texts)
    tokenizer.pad_token = tokenizer.eos_token
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=LONGEST_TEXT,
        n_embd=WIDTH,
        n_layer=LM_LAYERS,
        n_head=NUM_HEADS,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    lessons = chain(
        islice(documents.paraphrase_documents(seed + 1), recipe.copying_steps * recipe.batch_size),
        documents.instruction_documents(seed + 1),
    )
    model = GPT2LMHeadModel(config)
    batches = _document_batches(tokenizer, lessons, recipe.batch_size, seed)
    _train(list(model.parameters()), _document_losses(model, batches), recipe, say)
    _save(model, tokenizer, folder)


def build_encoder(
    folder: Path,
    seed: int,
    recipe: Training = ENCODER_RECIPE,
    *,
    say: Callable[[str], None],
) -> None:
    """Train a RoBERTa to fill in masked words of single sentences and pairs, and save it."""
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizer, set_seed

    set_seed(seed)
    joined = (" ".join(sentences) for sentences in documents.plain_texts(seed))
    say(f"words of {recipe.vocabulary_texts:,} texts")
    tokenizer = _tokenizer(RobertaTokenizer(), joined, recipe.vocabulary_texts)
    tokenizer.model_max_length = LONGEST_TEXT
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=ENCODER_LAYERS,
        num_attention_heads=NUM_HEADS,
        intermediate_size=4 * WIDTH,
        # RoBERTa numbers positions from the padding token's id on.
        max_position_embeddings=LONGEST_TEXT + tokenizer.pad_token_id + 1,
        type_vocab_size=1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = RobertaForMaskedLM(config)
    batches = _masked_batches(tokenizer, documents.plain_texts(seed + 1), recipe.batch_size, seed)
    _train(list(model.parameters()), _masked_losses(model, batches), recipe, say)
    _save(model, tokenizer, folder)


def build_cross_encoder(
    folder: Path,
    seed: int,
    recipe: Training = CROSS_ENCODER_RECIPE,
    *,
    encoder: Path,
    say: Callable[[str], None],
) -> None:
    """Train `encoder`, with one more layer, to tell in which slots two sentences agree, and save it.

    A model this small can't learn to compare sentences from a few hundred gold pairs. Here it learns what
    large models know from pretraining. The vector of each word tells whether the other sentence has an
    equivalent. The vector of the first token, which scores pairs, tells in which slots (agent, action
    and so on) the sentences agree. The weight of each slot is still to be learnt from gold.
    """
    from torch.nn import Linear
    from transformers import AutoTokenizer, RobertaModel, set_seed

    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    lower = RobertaModel.from_pretrained(encoder, add_pooling_layer=False, dtype="float32")
    lower.config.num_hidden_layers = CROSS_ENCODER_LAYERS
    model = RobertaModel(lower.config, add_pooling_layer=False)
    model.load_state_dict(lower.state_dict(), strict=False)
    slots = Linear(WIDTH, len(next(documents.compared_pairs(seed)).agreement))
    words = Linear(WIDTH, 1)
    batches = _compared_batches(tokenizer, recipe.batch_size, seed)
    parameters = [each for module in (model, slots, words) for each in module.parameters()]
    _train(parameters, _agreement_losses(model, slots, words, batches), recipe, say)
    _save(model, tokenizer, folder)


def _tokenizer(
    untrained: "PreTrainedTokenizerBase", texts: Iterator[str], num_texts: int
) -> "PreTrainedTokenizerBase":
    """Train a byte-level BPE tokenizer: it covers every text, and equal texts give an equal tokenizer."""
    trained: PreTrainedTokenizerBase = untrained.train_new_from_iterator(
        islice(texts, num_texts), vocab_size=VOCABULARY_SIZE, show_progress=False
    )
    return trained


def _batches(
    items: Iterator[Item], size: int, length: Callable[[Item], int], seed: int
) -> Iterator[list[Item]]:
    """Yield batches of items of about equal length, in random order."""
    random = Random(seed)
    while pool := sorted(islice(items, POOLED_BATCHES * size), key=length):
        batches = [pool[start : start + size] for start in range(0, len(pool), size)]
        random.shuffle(batches)
        yield from batches


def _document_batches(
    tokenizer: "PreTrainedTokenizerBase",
    lessons: Iterator[documents.InstructionDocument],
    size: int,
    seed: int,
) -> Iterator[Batch]:
    random = Random(seed)
    for chosen in _batches(lessons, size, lambda lesson: len(lesson.prompt + lesson.continuation), seed):
        prompts = tokenizer([each.prompt for each in chosen])["input_ids"]
        continuations = tokenizer([each.continuation for each in chosen])["input_ids"]
        rows, learnt_from = [], []
        for start, end in zip(prompts, continuations, strict=True):
            rows.append([*start, *end, tokenizer.eos_token_id])
            learnt_from.append(0 if random.random() < WHOLE_DOCUMENT_SHARE else len(start))
        yield _padded(rows, learnt_from, tokenizer.pad_token_id)


def _padded(rows: Sequence[list[int]], learnt_from: Sequence[int], padding: int) -> Batch:
    """Return token ids and next-token labels, `NOT_LEARNT` where the loss ignores a position."""
    import torch

    shape = (len(rows), max(map(len, rows)))
    tokens, labels = torch.full(shape, padding), torch.full(shape, NOT_LEARNT)
    for index, (row, start) in enumerate(zip(rows, learnt_from, strict=True)):
        tokens[index, : len(row)] = torch.tensor(row)
        labels[index, start : len(row)] = torch.tensor(row[start:])
    return tokens[:, :-1], labels[:, 1:]


def _document_losses(model: "GPT2LMHeadModel", batches: Iterator[Batch]) -> Iterator["Tensor"]:
    """Yield each batch's mean loss over the tokens to learn; other tokens' logits are not computed."""
    from torch.nn.functional import cross_entropy

    for tokens, labels in batches:
        hidden = model.transformer(tokens).last_hidden_state
        learnt = labels != NOT_LEARNT
        yield cross_entropy(model.lm_head(hidden[learnt]), labels[learnt])


def _masked_batches(
    tokenizer: "PreTrainedTokenizerBase", texts: Iterator[tuple[str, ...]], size: int, seed: int
) -> Iterator[dict[str, "Tensor"]]:
    import torch
    from transformers import DataCollatorForLanguageModeling

    masking = DataCollatorForLanguageModeling(tokenizer, mlm=True, mlm_probability=MASKED_SHARE)
    # The collator's own `seed` works only in a main process.
    masking.generator = torch.Generator().manual_seed(seed)
    tokenised = (tokenizer(*each) for each in texts)
    for chosen in _batches(tokenised, size, lambda text: len(text["input_ids"]), seed):
        yield dict(masking(chosen))


def _masked_losses(model: "RobertaForMaskedLM", batches: Iterator[dict[str, "Tensor"]]) -> Iterator["Tensor"]:
    """Yield each batch's mean loss over masked tokens; other tokens' logits are not computed."""
    from torch.nn.functional import cross_entropy

    for batch in batches:
        hidden = model.roberta(batch["input_ids"], batch["attention_mask"]).last_hidden_state
        learnt = batch["labels"] != NOT_LEARNT
        yield cross_entropy(model.lm_head(hidden[learnt]), batch["labels"][learnt])


@dataclass(frozen=True)
class _Compared:
    """A batch of tokenised pairs; labels: 1 if the sentences agree in a slot, 0 if not, NaN if it is empty.

    `slots` has shape (pairs, slots); `words` has shape (pairs, tokens).
    """

    tokens: "BatchEncoding"
    slots: "Tensor"
    words: "Tensor"


def _compared_batches(tokenizer: "PreTrainedTokenizerBase", size: int, seed: int) -> Iterator[_Compared]:
    import torch

    tokenised = (
        (pair, tokenizer(*pair.sentences, return_offsets_mapping=True))
        for pair in documents.compared_pairs(seed + 1)
    )
    for chosen in _batches(tokenised, size, lambda each: len(each[1]["input_ids"]), seed):
        words = [
            torch.tensor(_agreeing_words(pair, tokens.sequence_ids(), tokens.pop("offset_mapping")))
            for pair, tokens in chosen
        ]
        slots = [[float("nan") if each is None else each for each in pair.agreement] for pair, _ in chosen]
        yield _Compared(
            tokenizer.pad([tokens for _, tokens in chosen], return_tensors="pt"),
            torch.tensor(slots, dtype=torch.float32),
            torch.nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=float("nan")),
        )


def _agreeing_words(
    pair: documents.ComparedPair, sentences: Sequence[int | None], spans: Sequence[tuple[int, int]]
) -> list[float]:
    """Return for each token whether both sentences agree in its slot; NaN for a token without a slot.

    `sentences`: the sentence of each token, 0, 1 or None. A token's span includes the blank before its word.
    """
    found = [float("nan")] * len(spans)
    for index, (sentence, (start, end)) in enumerate(zip(sentences, spans, strict=True)):
        if sentence is None or start == end:
            continue
        for slot in pair.spans[sentence]:
            if slot.start - 1 <= start and end <= slot.end:
                found[index] = float(slot.agrees)
    return found


def _agreement_losses(
    model: "RobertaModel", slots: "Linear", words: "Linear", batches: Iterator[_Compared]
) -> Iterator["Tensor"]:
    """Yield the sum of the slots' and the words' loss; learning the words helps to learn the slots."""
    for batch in batches:
        hidden = model(**batch.tokens).last_hidden_state
        yield _loss_on_labelled(slots(hidden[:, 0]), batch.slots) + _loss_on_labelled(
            words(hidden).squeeze(-1), batch.words
        )


def _loss_on_labelled(logits: "Tensor", labels: "Tensor") -> "Tensor":
    from torch.nn.functional import binary_cross_entropy_with_logits

    is_told = ~labels.isnan()
    return binary_cross_entropy_with_logits(logits[is_told], labels[is_told])


def _train(
    parameters: list["Parameter"], losses: Iterator["Tensor"], recipe: Training, say: Callable[[str], None]
) -> None:
    """Train with a learning rate that rises briefly, then falls to nearly zero."""
    import torch
    from torch.optim.lr_scheduler import LambdaLR

    optimizer = torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = LambdaLR(optimizer, lambda step: _rate(step, recipe.num_steps))
    for step, loss in enumerate(islice(losses, recipe.num_steps), start=1):
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            say(f"step {step:,} of {recipe.num_steps:,}, loss {loss.item():.3f}")


def _rate(step: int, num_steps: int) -> float:
    """Return the factor of the learning rate: linear warm-up, then half a cosine."""
    falling = LAST_RATE + (1 - LAST_RATE) * (1 + cos(pi * step / num_steps)) / 2
    return min(1.0, (step + 1) / WARMUP_STEPS) * falling


def _save(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", folder: Path) -> None:
    """Save with weights in half precision (half the size), to be loaded in full precision."""
    from transformers import AutoConfig

    model.half().save_pretrained(folder)  # type: ignore[no-untyped-call]
    config = AutoConfig.from_pretrained(folder)
    config.dtype = "float32"
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


LM, ENCODER, CROSS_ENCODER = "lm", "encoder", "cross-encoder"
Say = Callable[[str, str], None]


def build_checkpoints(folder: Path, seed: int, recipes: Recipes | None = None, *, say: Say) -> None:
    """Train "lm", "encoder" and "cross-encoder" into folders of these names; `say` gets a name and a line.

    Each is trained on one thread, so that a seed gives the same files on any number of cores; matrices this
    small gain little from more threads. `say` is called in child processes, so it must be picklable. An error
    in one process, or Ctrl-C here, ends all of them. Raises UserError if a process is killed.
    """
    recipes = recipes or Recipes()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, _start, (os.getpid(),)) as pool:
        try:
            lm = pool.submit(_build_lm, folder / LM, seed, recipes.lm, say)
            encoders = pool.submit(_build_encoders, folder, seed, recipes, say)
            for finished in as_completed([lm, encoders]):
                finished.result()
        except BrokenProcessPool:
            raise UserError("a process that builds was killed (out of memory?); nothing was kept") from None
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _start(parent: int) -> None:
    import torch

    follow_parent(parent)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)


def _build_lm(folder: Path, seed: int, recipe: Training, say: Say) -> None:
    from synthbench.base.terminal import quiet_transformers

    with quiet_transformers():
        build_lm(folder, seed, recipe, say=partial(say, LM))


def _build_encoders(folder: Path, seed: int, recipes: Recipes, say: Say) -> None:
    from synthbench.base.terminal import quiet_transformers

    with quiet_transformers():
        build_encoder(folder / ENCODER, seed, recipes.encoder, say=partial(say, ENCODER))
        build_cross_encoder(
            folder / CROSS_ENCODER,
            seed,
            recipes.cross_encoder,
            encoder=folder / ENCODER,
            say=partial(say, CROSS_ENCODER),
        )
