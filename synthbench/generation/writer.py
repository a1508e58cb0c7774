"""Write several samples of a text for each input and label, many of them in one batch.

Up to rounding, the result depends only on the model, the prompts, the settings and the seed: not on batching,
the order of inputs, or killed earlier runs.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from synthbench.base.errors import UserError
from synthbench.generation.batch import Batch, WritingRow
from synthbench.generation.decoding import Network
from synthbench.generation.gpu_kernels import one_activation_kernel
from synthbench.generation.jobs import Attempt, Job, Outcome, WritingTask, Written
from synthbench.generation.language_model import CausalModel
from synthbench.generation.memory import SPARE_LENGTH, USED_SHARE, free_bytes, is_exhausted, release
from synthbench.generation.prompt_cache import PromptCache
from synthbench.generation.sampling import Sampler, uniforms
from synthbench.models.precision import reading_in
from synthbench.tables.characters import is_invisible

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

QUOTE = '"'


class QuoteEndings:
    """Ends a text at its first token with a quotation mark or a line break."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
        self._ending = frozenset(token for token, text in enumerate(texts) if QUOTE in text or "\n" in text)

    def is_end(self, key: str, label: str, number: int, tokens: Sequence[int]) -> bool:
        """Return whether the text ends with these tokens."""
        return tokens[-1] in self._ending


def classified(written: str, unwanted: Collection[str]) -> tuple[str, Outcome]:
    """Return the text before the first quotation mark and its outcome; "kept" is usable.

    DINO's authors decode all 40 tokens and cut at the mark. They drop texts without a mark or with a line
    break before it, so stopping at the mark gives the same texts.
    """
    text, mark, _ = written.partition(QUOTE)
    if "\n" in text:
        return text, "newline"
    if not mark:
        return text, "unclosed"
    if is_invisible(text):
        return text, "empty"
    return text, "identical" if text in unwanted else "kept"


PREFETCH_SHARE, SMALLEST_PREFETCH = 2, 96
"""Prompts are prefetched for 1/PREFETCH_SHARE of the sequences, at least this many: small reads are slow."""


class Endings(Protocol):
    """Decides where a text ends."""

    def is_end(self, key: str, label: str, number: int, tokens: Sequence[int]) -> bool:
        """Return whether the text ends with these tokens.

        `key` names the input, `number` the attempt.
        """


@dataclass(eq=False)
class LabelState:
    """One label of an active input: finished attempts, and the numbers of the running attempts."""

    attempts: list[Attempt] = field(default_factory=list)
    running: list[int] = field(default_factory=list)

    @property
    def num_launched(self) -> int:
        """How many attempts have begun."""
        return len(self.attempts) + len(self.running)

    @property
    def num_usable(self) -> int:
        """Distinct usable texts so far."""
        return len({attempt.text for attempt in self.attempts if attempt.outcome == "kept"})


@dataclass(eq=False)
class Input:
    """An active input: its prompts as tokens, and its unfinished labels."""

    job: Job
    prompts: Mapping[str, Sequence[int]]
    labels: dict[str, LabelState]


def length_of(each: Input, task: WritingTask) -> int:
    """Return the maximum length of the input's prompt and text together, in tokens."""
    return max(map(len, each.prompts.values())) + task.sampling.max_new_tokens


@dataclass(eq=False)
class RunningAttempt(WritingRow):
    """A row of the batch: one attempt at a text."""

    of: Input = field(kw_only=True)
    label: str = field(kw_only=True)
    number: int = field(kw_only=True)


@dataclass(frozen=True)
class Tools:
    """The model, and the objects that decode with it."""

    causal: CausalModel
    network: Network
    sampler: Sampler
    endings: Endings


class Scheduler:
    """Writes the inputs' texts in a batch of `num_sequences`; holds no more inputs than a batch needs.

    Stops before an input of more than `longest` tokens, prompt and text together (None: no limit).
    """

    def __init__(
        self,
        tools: Tools,
        task: WritingTask,
        num_sequences: int,
        inputs: Iterator[Input],
        longest: int | None,
    ) -> None:
        self._tools = tools
        self._task = task
        device = tools.causal.device
        # Before an input is taken: if memory does not hold the batch, none is lost.
        self._batch = Batch(tools.network, tools.sampler, num_sequences, device, longest or 0)
        self._prompts = PromptCache(tools.network, device)
        self._inputs = inputs
        self._next: Input | None = next(inputs, None)
        self._in_work: dict[int, Input] = {}
        # First attempts, each with the rows of its prompts among the prompts read last.
        self._waiting: deque[tuple[RunningAttempt, Sequence[int]]] = deque()
        self._num_sequences = num_sequences
        self._longest = longest

    def work(self) -> Iterator[Written]:
        """Yield the attempts at each label of each input once the label is finished."""
        while True:
            yield from self._fill()
            if not self._batch.rows:
                return
            self._batch.step()
            yield from self._collect()

    def unfinished(self) -> list[Input]:
        """Return the unfinished inputs, to be resumed; they keep their finished attempts."""
        return [*self._in_work.values(), *([self._next] if self._next else [])]

    def _fill(self) -> Iterator[Written]:
        """Start attempts while there is room; yield inputs that are too long.

        The next prompts are read once no attempt waits, since they overwrite the earlier ones.
        """
        while True:
            self._admit()
            if self._waiting or not self._batch.num_free or not self._has_next:
                return
            yield from self._take()

    @property
    def _has_next(self) -> bool:
        """Whether there is another input that fits the planned memory, or that is refused as too long."""
        if self._next is None:
            return False
        return (
            self._longest is None
            or self._is_too_long(self._next)
            or length_of(self._next, self._task) <= self._longest
        )

    def _take(self) -> Iterator[Written]:
        """Read the next inputs' prompts and queue their attempts; yield inputs that are too long."""
        wanted = min(self._num_sequences, max(self._num_sequences // PREFETCH_SHARE, SMALLEST_PREFETCH))
        taken: list[Input] = []
        num_waiting = 0
        while self._has_next and num_waiting < wanted:
            each = self._next
            assert each is not None
            if self._is_too_long(each):
                yield from (Written(each.job, label, ()) for label in each.labels)
            else:
                taken.append(each)
                self._in_work[id(each)] = each
                num_sequences = sum(len(self._task.prompts_of(label)) for label in each.labels)
                num_waiting += self._task.amounts.samples * num_sequences
            self._next = next(self._inputs, None)
        if taken:
            read = self._prompts.read([self._needed(each) for each in taken])
            for each, rows in zip(taken, read, strict=True):
                self._begin(each, rows)

    def _begin(self, each: Input, rows: Mapping[str, int]) -> None:
        """Queue the input's attempts, starting with those that an out-of-memory error interrupted."""
        for label, state in each.labels.items():
            of_label = [rows[name] for name in self._task.prompts_of(label)]
            begun = [self._try(each, label, number) for number in state.running]
            self._waiting.extend((row, of_label) for row in (*begun, *self._launched(each, label)))

    def _launched(self, each: Input, label: str) -> list[RunningAttempt]:
        """Return as many new attempts as are still wanted, and list them as running."""
        state, amounts, launched = each.labels[label], self._task.amounts, []
        while state.num_usable + len(state.running) < amounts.samples and state.num_launched < amounts.tries:
            launched.append(self._try(each, label, state.num_launched))
            state.running.append(launched[-1].number)
        return launched

    def _try(self, each: Input, label: str, number: int) -> RunningAttempt:
        labels = self._task.prompts_of(label)
        draws = uniforms(
            self._task.sampling.max_new_tokens, self._task.seed, each.job.key, label, number
        ).tolist()
        prompts = [each.prompts[name] for name in labels]
        return RunningAttempt(prompts, draws, of=each, label=label, number=number)

    def _admit(self) -> None:
        admitted, room = [], self._batch.num_free
        while self._waiting and len(self._waiting[0][1]) <= room:
            admitted.append(self._waiting.popleft())
            room -= len(admitted[-1][1])
        if admitted:
            self._batch.admit(admitted, self._prompts)

    def _collect(self) -> Iterator[Written]:
        """Classify finished texts and yield finished labels; further attempts take over the rows."""
        over = [row for row in self._batch.rows if isinstance(row, RunningAttempt) and self._is_over(row)]
        leaving, finished = [], []
        for row in over:
            state = row.of.labels[row.label]
            state.running.remove(row.number)
            state.attempts.append(self._attempt(row))
            # Since one attempt ended, at most one begins.
            further = self._launched(row.of, row.label)
            if further:
                self._batch.replace(row, *further)
            else:
                leaving.append(row)
            if not state.running:
                finished.append(row)
        self._batch.remove(leaving)
        yield from (self._finish(row.of, row.label) for row in finished)

    def _is_over(self, row: RunningAttempt) -> bool:
        return row.is_spent or self._tools.endings.is_end(row.of.job.key, row.label, row.number, row.tokens)

    def _attempt(self, row: RunningAttempt) -> Attempt:
        written = self._tools.causal.tokenizer.decode(row.tokens, clean_up_tokenization_spaces=False)
        text, outcome = classified(str(written), row.of.job.unwanted)
        return Attempt(row.label, row.number, text, tuple(row.tokens), outcome)

    def _finish(self, each: Input, label: str) -> Written:
        attempts, seen = [], set()
        for attempt in sorted(each.labels.pop(label).attempts, key=lambda attempt: attempt.number):
            is_duplicate = attempt.outcome == "kept" and attempt.text in seen
            attempts.append(replace(attempt, outcome="duplicate") if is_duplicate else attempt)
            if attempt.outcome == "kept":
                seen.add(attempt.text)
        if not each.labels:
            del self._in_work[id(each)]
        return Written(each.job, label, tuple(attempts))

    def _needed(self, each: Input) -> dict[str, Sequence[int]]:
        """Return the prompts that the unfinished labels need."""
        names = dict.fromkeys(name for label in each.labels for name in self._task.prompts_of(label))
        return {name: each.prompts[name] for name in names}

    def _is_too_long(self, each: Input) -> bool:
        longest = max(map(len, self._needed(each).values()))
        limit = self._tools.causal.max_length
        return limit is not None and longest + self._task.sampling.max_new_tokens > limit


class Writer:
    """Writes the texts of many inputs, `sequences` (regular and counter prompts together) at a time.

    Attempts at each input and label are numbered. Usable ones (closed by a quotation mark, no line break
    before it, not empty, not unwanted, distinct) are collected until there are enough or no attempt is left.
    A label with counterlabels is debiased against them (self-debiasing; Schick & Schütze 2021, arXiv
    2104.07540, section 3, after arXiv 2103.00453).

    On a GPU, free memory limits the batch. It shrinks for inputs that are much longer than earlier
    inputs, and is halved if memory runs out nevertheless; `say` reports both. Raises UserError as `Network`.
    """

    def __init__(
        self,
        causal: CausalModel,
        task: WritingTask,
        *,
        sequences: int,
        endings: Endings | None = None,
        say: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.sampler = Sampler(task.sampling, causal.end_of_text)
        self._causal = causal
        self._network = Network(causal, say)
        self._task = task
        self._endings = endings or QuoteEndings(causal.tokenizer)
        self._say = say
        self._num_sequences = max(sequences, self._task.largest_row)

    @property
    def reads_own_lengths(self) -> bool:
        """Whether each sequence attends to its own keys only; otherwise all read as many as the longest."""
        return self._network.reads_own_lengths

    def write(self, jobs: Iterable[Job]) -> Iterator[Written]:
        """Yield the attempts at each label of each job once the label is finished.

        Raises UserError if the device's memory does not hold the sequences of one text.
        """
        tools = Tools(self._causal, self._network, self.sampler, self._endings)
        inputs: Iterator[Input] = map(self._input, jobs)
        first = next(inputs, None)
        if first is None:
            return
        longest = self._fit(first)
        inputs = chain([first], inputs)
        model, device = self._causal.model, self._causal.device
        # Once for all steps, since preparing the model's layers takes as long as some steps.
        with reading_in("fp32", model, device), one_activation_kernel(model, device):
            while True:
                scheduler: Scheduler | None = None
                try:
                    scheduler = Scheduler(tools, self._task, self._num_sequences, inputs, longest)
                    yield from scheduler.work()
                except RuntimeError as error:
                    if not is_exhausted(error):
                        raise
                    if scheduler is not None:
                        inputs = chain(scheduler.unfinished(), inputs)
                    self._halve(error)
                    continue
                unfinished = scheduler.unfinished()
                if not unfinished:
                    return
                inputs = chain(unfinished, inputs)
                # Its memory is free before more is planned.
                del scheduler
                longest = self._fit(unfinished[0])

    def _fit(self, longest: Input) -> int | None:
        """Limit the number of sequences to what fits in free memory, if the device tells how much is free.

        Returns the maximum length (tokens of prompt and text) that is planned for; None without a limit.
        """
        release(self._causal.device)
        free = free_bytes(self._causal.device)
        if free is None:
            return None
        length = int(SPARE_LENGTH * length_of(longest, self._task))
        fitting = max(
            int(USED_SHARE * free) // self._network.bytes_per_sequence(length), self._task.largest_row
        )
        if fitting < self._num_sequences:
            self._say(f"free memory holds {fitting:,} sequences at a time, not {self._num_sequences:,}")
            self._num_sequences = fitting
        return length

    def _input(self, job: Job) -> Input:
        tokens = self._causal.tokenizer(list(job.prompts.values()))["input_ids"]
        labels = job.labels if job.labels is not None else tuple(job.prompts)
        prompts = dict(zip(job.prompts, tokens, strict=True))
        return Input(job, prompts, {label: LabelState() for label in labels})

    def _halve(self, error: Exception) -> None:
        if self._num_sequences <= self._task.largest_row:
            raise UserError("the device's memory does not hold the sequences of one text") from error
        self._num_sequences = max(self._task.largest_row, self._num_sequences // 2)
        self._say(f"out of memory: continuing with {self._num_sequences} sequences at a time")
        release(self._causal.device)
