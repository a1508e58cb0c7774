"""The trainings that several processes share in tests: a module of their own, which processes import."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toy_training import TRAINERS, RecordedProgress, spearman, toy_pairs

from synthbench.base.runtime import Runtime
from synthbench.engine.workspace import Workspace
from synthbench.plugins.model_contracts import TrainingContext

STEPS_TO_LIVE = "STEPS_TO_LIVE"


@dataclass(frozen=True)
class Toy:
    """A training of 96 pairs with dev scores; leaves the loss curve beside the model."""

    kind: str
    settings: Mapping[str, Any]
    num_pairs: int = 96

    def __call__(self, inputs: Mapping[str, Path], work: Workspace, output: Path) -> None:
        work.checkpoints.mkdir(parents=True, exist_ok=True)
        output.mkdir(parents=True, exist_ok=True)
        dev = toy_pairs(30, seed=1)
        context = TrainingContext(
            seed=0,
            checkpoints=work.checkpoints,
            output=output,
            runtime=work.runtime,
            progress=work.progress,
            select=lambda scorer: spearman(scorer, dev),
            copy_checkpoints=work.save,
        )
        summary = TRAINERS[self.kind](**self.settings).train([toy_pairs(self.num_pairs)], context)
        (output / "summary.txt").write_text(repr(summary), encoding="utf-8")
        (output / "curve.txt").write_text(
            "\n".join(f"{value}" for _, name, value in summary.history if name == "loss"), encoding="utf-8"
        )


@dataclass(frozen=True)
class DyingToy(Toy):
    """A Toy whose second process is killed during training."""

    def __call__(self, inputs: Mapping[str, Path], work: Workspace, output: Path) -> None:
        from torch import distributed

        if distributed.get_rank() == 1:
            from synthbench.training.course import Course

            steps = Course.on_step_end

            def die(course: Any, args: Any, state: Any, control: Any, **others: Any) -> None:
                if state.global_step == int(os.environ[STEPS_TO_LIVE]):
                    os.kill(os.getpid(), signal.SIGKILL)
                steps(course, args, state, control, **others)

            Course.on_step_end = die  # type: ignore[method-assign]
        super().__call__(inputs, work, output)


if __name__ == "__main__":
    from synthbench.stages.joint_training import train_together

    work = Workspace(Path(sys.argv[2]), Runtime(device="cpu", threads=1), RecordedProgress())
    train_together(Toy("bi-encoder", json.loads(sys.argv[1])), 2, {}, work)
