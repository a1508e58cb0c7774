"""The training loop of encoders and cross-encoders."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset
from sentence_transformers.base import BaseModel
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.sparse_encoder.callbacks.splade_callbacks import (
    SpladeRegularizerWeightSchedulerCallback,
)
from sentence_transformers.sparse_encoder.losses import SpladeLoss
from transformers import (
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
)
from transformers.trainer_utils import align_special_tokens

from synthbench.base.errors import UserError
from synthbench.base.runtime import Progress
from synthbench.models.batching import prompt_of_passages, prompt_of_queries, read_once
from synthbench.models.precision import check_precision, products_in, repeatable
from synthbench.models.pretrained import Prompts
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training import joint
from synthbench.training.checkpoints import DEV_SCORE, Checkpoints, History, curves
from synthbench.training.computation import checkpoint_activations
from synthbench.training.course import Course, best_of, last_step, pause_of
from synthbench.training.freed_memory import reusing_freed_memory
from synthbench.training.input_lengths import length_in_training, length_of, reading_at_most
from synthbench.training.settings import TrainingSettings
from synthbench.training.trainers import (
    TRAINERS,
    DistinctBatches,
    ShuffledBatches,
    isolated,
    load_weights,
    seed_everything,
)

if TYPE_CHECKING:
    import pyarrow as pa

_PAUSED_FOLDER = "paused"


@dataclass(frozen=True)
class TrainingJob:
    """A model, its loss and its training data: `table` has the columns that the loss reads, in that order."""

    model: BaseModel
    loss: torch.nn.Module
    table: "pa.Table"
    batches: type[ShuffledBatches] = ShuffledBatches


def fit(job: TrainingJob, settings: TrainingSettings, context: TrainingContext) -> TrainingSummary:
    """Train `job.model` in place; it ends with the weights of the best dev score, or without dev the last.

    The first of equal scores wins. A killed training resumes from its last valid checkpoint and ends, on a
    CPU, with the same weights as an uninterrupted one. A paused training resumes in the same way; at the
    pause, the model has the weights and the dev score of the last step. If several processes share a
    training, the first returns the summary, the others an empty one. Raises UserError if the loss diverges,
    if there are fewer records than processes, if the device or the model can't compute as the settings say,
    or if the checkpoint of the best dev score was damaged meanwhile.
    """
    check_precision(settings.precision, job.model.device)
    check_precision(settings.base.precision, job.model.device, "base.precision")
    if settings.gradient_checkpointing:
        checkpoint_activations(job.model)
    num_steps = settings.num_steps(job.table.num_rows)
    if job.table.num_rows < joint.num_processes():
        raise UserError(
            f"devices: {joint.num_processes()} can't share {job.table.num_rows} records; take fewer"
        )
    if joint.is_first():
        _report_left_out(job, settings, context)
    last = last_step(num_steps, context.until)
    checkpoints = Checkpoints(context.checkpoints)
    resumed = joint.from_first_process(_resumable(checkpoints, context) if joint.is_first() else None)
    with (
        reusing_freed_memory(),
        isolated(job.model.device, context.seed),
        products_in(settings.precision),
        repeatable(job.model.device),
    ):
        if resumed == last:
            load_weights(job.model, checkpoints.path(last))
            history = checkpoints.history(last)
        else:
            history = _run(job, settings, context, resumed)
    if not joint.is_first():
        return TrainingSummary()
    if last < num_steps:
        checkpoints.copy_to(context.output / _PAUSED_FOLDER)
    best = best_of(history) if last == num_steps else pause_of(history)
    if best is not None and best["step"] != last:
        _load_best(job, checkpoints, best["step"])
    _settle(job.model, settings, context)
    return TrainingSummary(
        num_steps=last,
        num_records=job.table.num_rows,
        best_step=None if best is None else best["step"],
        dev_score=None if best is None else best[DEV_SCORE],
        history=tuple(curves(history)),
    )


def _settle(model: BaseModel, settings: TrainingSettings, context: TrainingContext) -> None:
    """Put the model into the state to be saved, independent of its last call.

    A tokenizer is saved with the truncation and padding of its last call. So the model reads one more text,
    cut and padded as in a dev evaluation or, without dev, as in training. The configuration gets the
    tokenizer's special tokens, as trainers set them when they start.
    """
    model.eval()
    if isinstance(getattr(model, "processor", None), PreTrainedTokenizerBase):  # static models have none
        align_special_tokens(model, model.processor)  # type: ignore[no-untyped-call]
    own_length = length_of(model)
    is_scored = context.select is not None
    with reading_at_most(model, own_length if is_scored else length_in_training(own_length, settings)):
        read_once(model, padded=not is_scored)


def _report_left_out(job: TrainingJob, settings: TrainingSettings, context: TrainingContext) -> None:
    """Report how many records the first epoch leaves out because they share texts with others."""
    if not issubclass(job.batches, DistinctBatches):
        return
    data = Dataset(job.table, fingerprint="training")
    batches = job.batches(data, settings.batch_size, drop_last=False, seed=context.seed % 2**32)
    if num_left_out := batches.num_left_out():
        context.progress.say(
            f"no_duplicates leaves {num_left_out:,} of {job.table.num_rows:,} records out of the first epoch:"
            " they share a text with too many others"
        )


def _resumable(checkpoints: Checkpoints, context: TrainingContext) -> int | None:
    """Return the step to resume from, of this training or of a paused earlier one; None: from the start.

    The paused training's checkpoints are copied to this training's folder.
    """
    step = _last_usable(checkpoints, context.progress)
    paused = context.resume / _PAUSED_FOLDER if context.resume is not None else None
    # A training that paused after its last step has no checkpoint.
    if step is None and paused is not None and paused.is_dir():
        Checkpoints(paused).copy_to(context.checkpoints)
        step = _last_usable(checkpoints, context.progress)
    return step


def _last_usable(checkpoints: Checkpoints, progress: Progress) -> int | None:
    """Return the step of the last usable checkpoint, None without one; delete the unusable ones.

    A checkpoint is usable if it and the checkpoint of the best dev score so far are valid. Otherwise the
    training might end with other weights than an uninterrupted one.
    """
    for message in checkpoints.drop_faulty():
        progress.say(message)
    steps = checkpoints.steps()
    usable = []
    for step in steps:
        best = best_of(checkpoints.history(step))
        if best is None or best["step"] in steps:
            usable.append(step)
        else:
            progress.say(
                f"the checkpoint of step {step} was dropped: that of step {best['step']}, the best so far, is"
                " gone"
            )
    checkpoints.keep_only(*usable)
    return max(usable, default=None)


def _load_best(job: TrainingJob, checkpoints: Checkpoints, step: int) -> None:
    """Load the best weights into the model; raises UserError if their checkpoint is damaged."""
    fault = checkpoints.fault(step)
    if fault:
        raise UserError(
            f"the checkpoint of step {step}, which has the best dev score, was damaged during the training:"
            f" {fault}; the same command trains again"
        )
    load_weights(job.model, checkpoints.path(step))


def _run(
    job: TrainingJob, settings: TrainingSettings, context: TrainingContext, resumed: int | None
) -> History:
    num_steps = settings.num_steps(job.table.num_rows)
    if resumed is not None:
        context.progress.say(f"training goes on after step {resumed} of {num_steps}")
    with context.progress.task("training", num_steps) as task:
        course = Course(job.model, num_steps, settings, context, task)
        with reading_at_most(job.model, length_in_training(course.own_length, settings)):
            trainer = _trainer(job, settings, context, course)
            # The trainer's constructor drew random numbers; dropout must not depend on how many.
            seed_everything(joint.dropout_seed(context.seed))
            checkpoint = None if resumed is None else str(course.checkpoints.path(resumed))
            trainer.train(resume_from_checkpoint=checkpoint)
    return list(trainer.state.log_history)


def _trainer(
    job: TrainingJob, settings: TrainingSettings, context: TrainingContext, course: Course
) -> BaseTrainer:
    joint.return_plain_outputs(job.model)
    kind = TRAINERS[job.model.model_type]
    trainer: BaseTrainer = kind(
        model=job.model,
        args=_arguments(kind.training_args_class, job, settings, context),
        train_dataset=Dataset(job.table, fingerprint="training"),
        loss=job.loss,
        callbacks=[*_sparsity_rises(job.loss), course],
    )
    trainer.remove_callback(PrinterCallback)
    if settings.precision == "fp16" and job.model.device.type == "cpu":
        # accelerate refuses fp16 on a CPU, where torch computes in it all the same.
        trainer.accelerator.state._mixed_precision = "fp16"
        trainer.accelerator.native_amp = True
        trainer.accelerator.scaler = torch.amp.GradScaler("cpu")
    return trainer


def _sparsity_rises(loss: torch.nn.Module) -> Iterator[TrainerCallback]:
    """Yield the callback that raises the regulariser weight of SPLADE's loss; nothing for other losses.

    If the callback is not passed, the library adds it and warns.
    """
    if isinstance(loss, SpladeLoss):
        yield SpladeRegularizerWeightSchedulerCallback(loss)


def _arguments(
    arguments_class: type[Any], job: TrainingJob, settings: TrainingSettings, context: TrainingContext
) -> Any:  # noqa: ANN401 - sentence-transformers' arguments of either trainer
    """Return sentence-transformers' arguments for the settings; `Course` logs and saves."""
    num_steps = settings.num_steps(job.table.num_rows)
    warmup_steps = math.ceil(num_steps * settings.warmup_ratio)
    constant = "constant_with_warmup" if warmup_steps else "constant"
    device = job.model.device
    num_shares = joint.num_processes()
    batches = job.batches if num_shares == 1 else partial(joint.shared, job.batches, num_shares)
    arguments = arguments_class(
        output_dir=str(context.checkpoints),
        seed=context.seed % 2**32,
        max_steps=num_steps,
        per_device_train_batch_size=settings.batch_size // num_shares,
        batch_sampler=batches,
        # The library's samplers need it and warn without it; ours deals out equal shares.
        dataloader_drop_last=num_shares > 1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=constant if settings.scheduler == "constant" else settings.scheduler,
        warmup_steps=warmup_steps,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bf16",
        fp16=settings.precision == "fp16" and device.type != "cpu",
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type == "cuda",
        **_prompts(job, settings),
        logging_strategy="no",
        logging_nan_inf_filter=False,
        eval_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    if device.type == "cuda":
        _pin(arguments, device)
    return arguments


def _prompts(job: TrainingJob, settings: TrainingSettings) -> dict[str, dict[str, str]]:
    """Return {"prompts": column -> prompt}; {} without prompts.

    Sentences, anchors and queries get the query prompt; positives, negatives and candidates the passage
    prompt. ColBERT's checkpoints have prefixes for queries and passages. Search uses them, so training does,
    too.
    """
    prompts = settings.base.prompts
    if prompts is None:
        query, passage = prompt_of_queries(job.model), prompt_of_passages(job.model)
        if settings.base.encoder == "dense" or not (query or passage):
            return {}
        prompts = Prompts(query=query or "", passage=passage or "")
    names = job.table.column_names
    queries = (name for name in names if name.startswith(("sentence", "anchor", "query")))
    passages = (name for name in names if name.startswith(("positive", "negative", "candidate")))
    return {"prompts": dict.fromkeys(queries, prompts.query) | dict.fromkeys(passages, prompts.passage)}


def _pin(arguments: Any, device: torch.device) -> None:  # noqa: ANN401 - see _arguments
    """Use this GPU only: transformers would take the first, and spread batches over all GPUs."""
    arguments.__dict__["_setup_devices"] = device
    arguments._n_gpu = 1
    arguments.distributed_state.device = device
