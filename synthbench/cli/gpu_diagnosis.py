"""`synthbench doctor --gpu`: measure the GPU for half a minute, and compare with the estimates of `plan`.

Random models of real sizes generate and train through the code of a run, so kernels, precisions and memory
are as in a run. Nothing is downloaded.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from synthbench.base.errors import UserError, in_one_line
from synthbench.cli.diagnosis import GB, DoctorFinding, fine, note, problem

if TYPE_CHECKING:
    import torch

    from synthbench.data.dataset import SyntheticDataset
    from synthbench.estimates.figures import Device

LABELS: dict[str, tuple[str, ...]] = {"1": (), "0.5": ("1",), "0": ("0.5", "1")}
PROMPT = 'Task: Write two sentences of similarity {label}.\nSentence 1: "{sentence}"\nSentence 2: "'
SLOWER = 1.5
"""Ratio of measured to planned time above which a stage gets a note."""
BATCH = 64


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements.

    `writer` and `encoder`: layers, width and heads of both models. `inputs`: sentences that texts are
    generated for. `steps`: training steps. `rows`: rows and columns of the matrices that are multiplied.
    """

    writer: tuple[int, int, int] = (36, 1280, 20)
    encoder: tuple[int, int, int] = (12, 768, 12)
    inputs: int = 400
    steps: int = 40
    rows: int = 8192


def check_gpu(device: str = "cuda", sizes: Sizes = Sizes()) -> Iterator[DoctorFinding]:
    """Yield a finding on each measurement; a failed measurement is a problem, and all others go on."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        yield problem("GPU", "torch sees none", "run this on the machine with the GPU")
        return
    where = torch.device(device)
    known = data_sheet(torch.cuda.get_device_name(where)) if device == "cuda" else None
    for check in (memory, products, generation, training):
        try:
            yield from check(where, known, sizes)
        except (RuntimeError, UserError) as error:
            yield problem(check.__name__, in_one_line(error), "see docs/gpu.md")


def data_sheet(name: str) -> "Device | None":
    """Return the figures of `plan --gpu` for the GPU of this product name, None for an unknown GPU."""
    from synthbench.estimates.figures import DATA_SHEETS

    words = name.lower().replace("-", " ").split()
    fitting = [sheet for sheet in DATA_SHEETS if sheet.split("-")[0] in words]
    sized = [sheet for sheet in fitting if "-" not in sheet or sheet.split("-")[1] in words]
    return DATA_SHEETS[(sized or fitting)[0]] if fitting else None


def memory(where: "torch.device", known: "Device | None", sizes: Sizes) -> Iterator[DoctorFinding]:
    """Report free memory, and the measured memory bandwidth beside that of the data sheet."""
    import torch

    copied = torch.empty(sizes.rows**2 * 4, dtype=torch.uint8, device=where)
    target = torch.empty_like(copied)
    seconds = fastest(lambda: target.copy_(copied), where)
    text = f"copies {2 * copied.numel() / seconds / 1e12:.2f} TB/s"
    if where.type == "cuda":
        free, total = torch.cuda.mem_get_info(where)
        text = f"{free / GB:.1f} of {total / GB:.1f} GB free; {text}"
    yield fine("memory", text + (f" (data sheet: {known.terabytes} TB/s)" if known else ""))


def products(where: "torch.device", known: "Device | None", sizes: Sizes) -> Iterator[DoctorFinding]:
    """Measure matrix products in each precision: rate beside the data sheet's, and error against fp64."""
    import torch

    from synthbench.models.precision import obstacle, products_in

    draw = torch.Generator(where).manual_seed(0)
    rows = sizes.rows
    matrix = torch.randn((rows, rows), generator=draw, device=where)
    exact = (matrix[:8].double() @ matrix.double()).float()
    for precision in ("fp32", "tf32", "bf16"):
        if why := obstacle(precision, where):
            yield note("products", why, "leave `precision` at fp32 on this device")
            continue
        factor = matrix.bfloat16() if precision == "bf16" else matrix
        with products_in(precision):
            seconds = fastest(lambda factor=factor: factor @ factor, where)  # type: ignore[misc]
            error = (factor[:8] @ factor - exact).float().abs().max() / exact.abs().max()
        sheet = f" (data sheet: {getattr(known, precision):,.0f})" if known else ""
        rate = 2 * rows**3 / seconds / 1e12
        yield fine("products", f"{precision}: {rate:,.1f} TFLOP/s{sheet}, largest error {error:.0e}")


def generation(where: "torch.device", known: "Device | None", sizes: Sizes) -> Iterator[DoctorFinding]:
    """Measure the generation of texts as in DINO, with a random GPT-2."""
    import torch

    from synthbench.base.runtime import Runtime
    from synthbench.generation.jobs import Amounts, Job, WritingCost, WritingTask
    from synthbench.generation.language_model import LanguageModel
    from synthbench.generation.sampling import Sampling
    from synthbench.generation.writer import Writer

    layers, width, heads = sizes.writer
    texts = sentences(sizes.inputs)
    sampling = Sampling(decay=100.0, top_k=5, top_p=0.9, max_new_tokens=40)
    task = WritingTask(LABELS, sampling, Amounts(samples=2, tries=2), seed=0)
    said: list[str] = []
    with TemporaryDirectory() as folder:
        save_random("gpt2", Path(folder), n_layer=layers, n_embd=width, n_head=heads, vocab_size=50257)
        named = LanguageModel(model=folder, dtype="bf16")
        runtime = Runtime(device=str(where))
        writer = Writer(
            named.load(runtime), task, sequences=runtime.num_sequences(where.type), say=said.append
        )
        work = WritingCost(named, task, len(texts), tuple(LABELS)).expected().work
    jobs = [
        Job(text, {label: PROMPT.format(label=label, sentence=text) for label in LABELS}) for text in texts
    ]
    list(writer.write(jobs[:8]))
    with Peak(where) as peak:
        list(writer.write(jobs))
    for line in said:
        yield note("generation", line, "texts are the same; see docs/gpu.md")
    how = "each sequence reads its own keys" if writer.reads_own_lengths else "attention follows masks"
    texts_per_second = 6 * len(texts) / peak.seconds
    yield paced(
        "generation",
        f"bf16, {layers} layers of {width}: {texts_per_second:,.0f} texts/s, {peak}; {how}",
        peak.seconds,
        planned("generate", work, known),
    )
    if where.type == "cuda":
        torch.cuda.empty_cache()


def training(where: "torch.device", known: "Device | None", sizes: Sizes) -> Iterator[DoctorFinding]:
    """Measure the training of a random BERT by SimCSE with hard negatives, in each precision."""
    from synthbench.base.runtime import Runtime
    from synthbench.base.terminal import quiet_transformers
    from synthbench.engine.progress import QuietProgress
    from synthbench.models.precision import obstacle
    from synthbench.plugins.model_contracts import TrainingContext
    from synthbench.training.simcse import SimCSE

    layers, width, heads = sizes.encoder
    data = unrelated_triplets(BATCH * sizes.steps)
    with TemporaryDirectory() as folder:
        shape = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads}
        save_random("bert", Path(folder), **shape, intermediate_size=4 * width, vocab_size=30522)
        for precision in ("fp32", "tf32", "bf16"):
            if obstacle(precision, where):
                continue
            settings = SimCSE.model_validate(
                {"base": {"model": folder}, "precision": precision, "batch_size": BATCH, "epochs": 1.0}
            )
            with TemporaryDirectory() as output, quiet_transformers(), Peak(where) as peak:
                context = TrainingContext(
                    0,
                    Path(output, "steps"),
                    Path(output, "model"),
                    Runtime(device=str(where)),
                    QuietProgress(),
                )
                settings.train([data], context)
            rate = sizes.steps / peak.seconds
            yield paced(
                "training",
                f"{precision}, {layers} layers of {width}, {BATCH} triplets: {rate:.1f} steps/s, {peak}",
                peak.seconds,
                planned("train", settings.work(len(data), None), known),
            )


def paced(subject: str, text: str, seconds: float, expected: float | None) -> DoctorFinding:
    """Return a finding with measured and expected seconds; a note if measured > SLOWER * expected."""
    if expected is None:
        return fine(subject, f"{text}; {seconds:.1f} s")
    text = f"{text}; {seconds:.1f} s, `plan` expects {expected:.1f} s"
    if seconds <= SLOWER * expected:
        return fine(subject, text)
    return note(
        subject, text, "multiply what `plan --gpu` says by the ratio, or look for other work on the GPU"
    )


def planned(kind: Literal["generate", "train"], work: Any, known: "Device | None") -> float | None:  # noqa: ANN401
    """Return the seconds that `plan --gpu` estimates for this work, None for an unknown GPU."""
    from synthbench.estimates.figures import arithmetic

    return arithmetic(kind, work, known) if known else None


def sentences(number: int) -> list[str]:
    """Return distinct sentences of the generated world."""
    from synthbench.sources.description import Roots
    from synthbench.sources.models import WorldSource
    from synthbench.worlds import NAME

    described = {NAME: "sentences", "split": "train", "size": number}
    return list(WorldSource.model_validate(described).load(Roots()).texts)


def unrelated_triplets(number: int) -> "SyntheticDataset":
    """Return triplets of distinct sentences, whose meaning doesn't matter."""
    from synthbench.data.dataset import SyntheticDataset
    from synthbench.data.records import RecordKind, Triplet

    texts = iter(sentences(3 * number))
    records = [
        Triplet(anchor=anchor, positive=positive, negative=negative, source_id=str(row))
        for row, (anchor, positive, negative) in enumerate(zip(texts, texts, texts, strict=True))
    ]
    return SyntheticDataset.create(RecordKind.TRIPLET, records)


def save_random(kind: str, folder: Path, **shape: int) -> None:
    """Save a randomly initialised transformer of this shape with a tokenizer of the generated world."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

    from synthbench.base.terminal import quiet_transformers
    from synthbench.models.reference import resolve
    from synthbench.worlds import MODEL_PREFIX

    origin = resolve(MODEL_PREFIX + ("lm" if kind == "gpt2" else "encoder"))
    config = AutoConfig.for_model(kind, **shape)
    model: Any = AutoModelForCausalLM if kind == "gpt2" else AutoModel
    with quiet_transformers():
        AutoTokenizer.from_pretrained(origin).save_pretrained(folder)
        model.from_config(config).save_pretrained(folder)


def fastest(call: Callable[[], Any], where: "torch.device", times: int = 5) -> float:
    """Return the seconds of the fastest of several calls, including the work on the device."""
    seconds = []
    for _ in range(times):
        with Peak(where) as peak:
            call()
        seconds.append(peak.seconds)
    return max(min(seconds), 1e-9)


class Peak:
    """Measures a `with` block: `seconds`, including GPU work, and `held`, the peak GPU memory in bytes."""

    def __init__(self, where: "torch.device") -> None:
        self._where = where
        self.seconds = 0.0
        self.held = 0

    def __enter__(self) -> "Peak":
        import torch

        if self._where.type == "cuda":
            torch.cuda.synchronize(self._where)
            torch.cuda.reset_peak_memory_stats(self._where)
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        import torch

        if self._where.type == "cuda":
            torch.cuda.synchronize(self._where)
            self.held = torch.cuda.max_memory_allocated(self._where)
        self.seconds = time.perf_counter() - self._started

    def __str__(self) -> str:
        return f"at most {self.held / GB:.1f} GB"
