"""How a computation runs (device, threads, batch sizes, progress), as opposed to what it computes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, field_validator

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.patterns import linear_pattern

SEQUENCES = {"cpu": 192, "cuda": 1024}
SECONDS_BETWEEN_CHECKPOINTS = 60.0
"""Seconds of training between two checkpoints."""
SECONDS_OF_NOTICE = 90
"""Seconds before its time limit at which Slurm tells a task to end."""
_TIME = linear_pattern(r"(?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?")


class Resources(BaseModel):
    """Resources that each stage of one kind reserves."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    cpus: int | None = Field(
        None, ge=1, description="CPU cores. Default: runtime.threads, else 1 (2 with a GPU)"
    )
    gpus: float | None = Field(
        None,
        ge=0,
        le=64,
        description="GPUs, or a fraction of one. Default: 1 for stages with a model, if a machine has GPUs",
    )
    memory_gb: float | None = Field(
        None,
        gt=0,
        description="main memory in gigabytes. Default: estimated from the stage's models and data",
    )

    @field_validator("gpus")
    @classmethod
    def _is_share_or_whole(cls, gpus: float | None) -> float | None:
        if gpus is not None and gpus > 1 and gpus != int(gpus):
            raise ValueError(f"a stage takes a share of one GPU or whole GPUs, not {gpus:g}")
        return gpus


class SlurmSettings(BaseModel):
    """The tasks that a run submits to Slurm; sbatch's own variables, such as SBATCH_QOS, also apply."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    partition: str = Field("", description="partition of the tasks. Default: Slurm's, or SBATCH_PARTITION")
    account: str = Field("", description="account that pays. Default: Slurm's, or SBATCH_ACCOUNT")
    time: str = Field(
        "01:00:00",
        description="time limit of a task as sbatch reads it, such as 04:00:00 or 1-12; a task that reaches"
        " it goes back into Slurm's queue",
    )
    tasks: int = Field(8, ge=1, le=1000, description="maximum number of tasks at a time")
    gpus: int = Field(0, ge=0, le=64, description="GPUs that a node of the partition has; 0: stages use none")

    @field_validator("time")
    @classmethod
    def _leaves_a_checkpoint(cls, time: str) -> str:
        seconds, least = seconds_of_limit(time), SECONDS_OF_NOTICE + SECONDS_BETWEEN_CHECKPOINTS
        if seconds is None:
            raise ValueError(f"is no time limit: '{time}'; write it like 04:00:00, 90 (minutes) or 1-12:00")
        if seconds < least:
            raise ValueError(
                f"{time} is too short: a task gets {SECONDS_OF_NOTICE} s of notice, and a training needs"
                f" {SECONDS_BETWEEN_CHECKPOINTS:g} s to its next checkpoint; give at least"
                f" {least / 60:g} minutes"
            )
        return time


def seconds_of_limit(text: str) -> int | None:
    """Return the seconds of a time limit in sbatch's notation, None for any other text.

    sbatch reads M, M:S, H:M:S, D-H, D-H:M and D-H:M:S.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    days, *parts = (None if part is None else int(part) for part in found.groups())
    first, second, third = (part or 0 for part in parts)
    if days is not None:
        return ((24 * days + first) * 60 + second) * 60 + third
    if parts[2] is None:
        return 60 * first + second
    return (60 * first + second) * 60 + third


class Runtime(BaseModel):
    """Settings that change speed and memory but never results; they are in no stage's identity."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps")
    threads: int | None = Field(
        None,
        ge=1,
        description="CPU threads per process. Default: the usable cores, divided by `--jobs`",
    )
    batch_tokens: int = Field(4096, ge=16, description="tokens per inference batch")
    sequences: int | None = Field(
        None,
        ge=1,
        description="sequences (texts and their counter prompts) that a language model generates in "
        f"parallel. Default: {SEQUENCES['cpu']} on a CPU, {SEQUENCES['cuda']:,} on a GPU",
    )

    executor: Literal["local", "ray", "slurm"] = Field(
        "local",
        description="where stages run: in processes of this machine, on a Ray cluster, or in tasks of Slurm",
    )
    address: str = Field(
        "",
        description="address of the Ray cluster: HOST:PORT; auto: the cluster that this machine belongs "
        "to; empty: a cluster on this machine for the time of the run",
    )
    slurm: SlurmSettings = Field(SlurmSettings(), description="the tasks that `executor: slurm` submits")
    shards: int = Field(
        1,
        ge=1,
        le=10_000,
        description="number of stages that share a method's work, if the method allows it, so that processes"
        " or machines work at the same time; the data stay identical",
    )
    wait_for_nodes_s: float = Field(
        0.0,
        ge=0,
        description="on a cluster: seconds to wait for a larger node if a stage fits on no node; 0: refuse"
        " stages that fit on no node, before anything runs",
    )
    retries: int = Field(
        2, ge=0, le=100, description="on a cluster: how often a stage restarts after its worker was lost"
    )
    resources: dict[
        Literal["exclude", "join", "prepare", "generate", "train", "select", "evaluate", "audit"], Resources
    ] = Field(
        {},
        description="kind of stage -> what each stage of this kind reserves, such as `train: {gpus: 0.5}`: "
        "resources of a cluster's node, or, with `--jobs`, GPUs of this machine",
    )

    def num_sequences(self, device_type: str) -> int:
        """Return how many sequences a language model generates in parallel on "cpu", "cuda" ..."""
        return self.sequences or SEQUENCES.get(device_type, SEQUENCES["cuda"])


class ProgressTask(Protocol):
    """One progress bar (on a terminal) or an occasional line (in a log)."""

    def advance(self, amount: int = 1) -> None:
        """Report `amount` more units as done."""


class Progress(Protocol):
    """Receiver of the progress that long work reports."""

    def task(self, description: str, total: int) -> AbstractContextManager[ProgressTask]:
        """Open a task of `total` units; it closes at the end of the `with` block."""

    def say(self, message: str) -> None:
        """Print one line for people."""


class _SilentTask:
    def advance(self, amount: int = 1) -> None:
        """Ignore the report."""


def progress_task(
    progress: Progress | None, description: str, total: int
) -> AbstractContextManager[ProgressTask]:
    """Open a task of `progress`, or a task that shows nothing if `progress` is None."""
    return nullcontext(_SilentTask()) if progress is None else progress.task(description, total)


def not_shared() -> None:
    """Do nothing: the default for a callback that copies files to a store shared with other machines."""


def device_name(runtime: Runtime) -> str:
    """Return torch's name of the device; "auto" takes cuda, else mps, else cpu.

    Raises UserError if the device does not exist here, or holds no numbers (meta).
    """
    import torch

    if runtime.device == "auto":
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator.type if accelerator is not None else "cpu"
    try:
        torch.zeros(1, device=runtime.device).item()
    except (RuntimeError, AssertionError) as error:
        reason = in_one_line(error)
        raise UserError(f"device '{runtime.device}' can't be used: {reason}") from error
    return runtime.device


def use_threads(runtime: Runtime) -> None:
    """Set torch's CPU threads in this process to `runtime.threads`; None leaves them."""
    if runtime.threads is not None:
        import torch

        torch.set_num_threads(runtime.threads)
