"""Actions between the steps of a training: logging, dev scores, checkpoints and pausing."""

import math
import time
from typing import Any

from sentence_transformers.base import BaseModel
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from synthbench.base.errors import UserError
from synthbench.base.runtime import SECONDS_BETWEEN_CHECKPOINTS, ProgressTask
from synthbench.models.pair_scorer import as_pair_scorer
from synthbench.plugins.model_contracts import TrainingContext
from synthbench.training import joint
from synthbench.training.checkpoints import DEV_SCORE, LOSS, Checkpoints, History
from synthbench.training.input_lengths import length_of, reading_at_most
from synthbench.training.settings import TrainingSettings
from synthbench.training.trainers import isolated

PAUSED_SCORE = "paused_dev_score"
_POINTS_OF_LOSS_CURVE = 100


class Course(TrainerCallback):
    """Decides after every step whether to log, evaluate and save, and deletes old checkpoints.

    Losses are summed and logged at steps that depend only on the settings, and checkpoints are written only
    there. So a resumed training has the curve of an uninterrupted one.
    """

    def __init__(
        self,
        model: BaseModel,
        num_steps: int,
        settings: TrainingSettings,
        context: TrainingContext,
        task: ProgressTask,
    ) -> None:
        interval = _interval(num_steps)
        self.model = model
        self.context = context
        self.task = task
        self.own_length = length_of(model)
        self.precision = settings.base.precision
        self.checkpoints = Checkpoints(context.checkpoints)
        self.evaluation_steps = set(settings.evaluation_steps(num_steps) if context.select else ())
        self.log_steps = {*range(interval, num_steps, interval), num_steps, *self.evaluation_steps}
        self.last = last_step(num_steps, context.until)
        self.pauses = self.last < num_steps
        self.saved_at = time.monotonic()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Count the steps done before a resumption as progress."""
        self.task.advance(state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Evaluate, and tell transformers whether to log, save and stop."""
        step = state.global_step
        self.task.advance()
        is_pause = self.pauses and step == self.last
        scores = self.context.select is not None and joint.is_first()
        if scores and (is_pause or step in self.evaluation_steps):
            score = self._dev_score()
            if step in self.evaluation_steps:
                state.log_history.append({"step": step, DEV_SCORE: score})
            if is_pause:
                state.log_history.append({"step": step, PAUSED_SCORE: score})
        control.should_training_stop |= is_pause
        control.should_log = step in self.log_steps
        due = control.should_log and joint.from_first_process(self._is_due())
        control.should_save = is_pause or step in self.evaluation_steps or due
        if control.should_save and joint.is_first():
            self.context.copy_checkpoints()

    def _is_due(self) -> bool:
        return time.monotonic() - self.saved_at >= SECONDS_BETWEEN_CHECKPOINTS

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Raise UserError as soon as the loss is not finite."""
        loss = state.log_history[-1].get(LOSS, 0.0)
        if not math.isfinite(loss):
            raise UserError(
                f"the training diverged: the loss is {loss} at step {state.global_step}; "
                "try a lower learning_rate or more warmup_ratio"
            )

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Complete the checkpoint; then delete older ones, but never the best."""
        step = state.global_step
        joint.wait_for_all()
        if joint.is_first():
            self.checkpoints.complete(step)
            best = best_of(state.log_history)
            self.checkpoints.keep_only(step, step if best is None else best["step"])
        joint.wait_for_all()
        self.saved_at = time.monotonic()

    def _dev_score(self) -> float:
        """Return the dev score as evaluations compute it: with the model's own input limit, without dropout.

        The random state is kept.
        """
        assert self.context.select is not None
        model = self.model
        with isolated(model.device), reading_at_most(model, self.own_length):
            model.eval()
            scorer = as_pair_scorer(model, self.context.runtime.batch_tokens, self.precision)
            return float(self.context.select(scorer))


def _interval(num_steps: int) -> int:
    """Return the number of steps between points of the loss curve."""
    return max(1, num_steps // _POINTS_OF_LOSS_CURVE)


def last_step(num_steps: int, until: float) -> int:
    """Return the step to stop at: the loss curve's first point at or after the share `until` of the steps."""
    if until == 1.0:
        return num_steps
    interval = _interval(num_steps)
    return min(num_steps, interval * max(1, math.ceil(num_steps * until / interval)))


def pause_of(history: History) -> dict[str, Any] | None:
    """Return the last pause's log entry, with the pause's score as DEV_SCORE; None if no pause was scored."""
    scored = [entry for entry in history if PAUSED_SCORE in entry]
    return {**scored[-1], DEV_SCORE: scored[-1][PAUSED_SCORE]} if scored else None


def best_of(history: History) -> dict[str, Any] | None:
    """Return the log entry with the best dev score, the first of equals; None without finite dev scores."""
    scored = [entry for entry in history if math.isfinite(entry.get(DEV_SCORE, math.nan))]
    return max(scored, key=lambda entry: float(entry[DEV_SCORE]), default=None)
