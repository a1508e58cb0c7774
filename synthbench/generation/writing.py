"""Writing: for each input and label, several samples of one text, many of them in one batch.

What is written is a function of the model, the prompts, the settings and the seed. Which rows share a batch,
in which order inputs come, and whether an earlier run was killed makes no difference.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from synthbench.errors import UserError
from synthbench.generation.decoding import Network
from synthbench.generation.desk import Desk, Endings, Input, LabelState, Tools
from synthbench.generation.endings import QuoteEndings
from synthbench.generation.jobs import Job, WritingTask, Written
from synthbench.generation.language_model import CausalModel
from synthbench.generation.sampling import Sampler


class Writer:
    """Writes the texts of many inputs, `sequences` (regular and counter prompts together) at a time.

    Of each input and label the attempts are numbered; the usable ones (closed by a quotation mark, no line
    break before it, not empty, not unwanted, distinct) are kept in this order until there are enough, or no
    try is left. With a prompt for each of its counterlabels, a label is debiased against them
    (Schick & Schütze 2021, section 3).

    If the device has too little memory for the batch, it is halved, which `say` is told.
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
        self._network = Network(causal)
        self._task = task
        self._endings = endings or QuoteEndings(causal.tokenizer)
        self._say = say
        self._num_sequences = max(sequences, self._task.largest_row)

    def write(self, jobs: Iterable[Job]) -> Iterator[Written]:
        """Yield what was written, label by label, each as soon as it is finished.

        Raises UserError if not even the sequences of one text fit into the device's memory.
        """
        import torch

        tools = Tools(self._causal, self._network, self.sampler, self._endings)
        inputs: Iterator[Input] = map(self._input, jobs)
        while True:
            desk = Desk(tools, self._task, self._num_sequences, inputs)
            try:
                yield from desk.work()
                return
            except torch.OutOfMemoryError as error:
                inputs = chain(desk.unfinished(), inputs)
                self._halve(error)

    def _input(self, job: Job) -> Input:
        tokens = self._causal.tokenizer(list(job.prompts.values()))["input_ids"]
        labels = job.labels if job.labels is not None else tuple(job.prompts)
        prompts = dict(zip(job.prompts, tokens, strict=True))
        return Input(job, prompts, {label: LabelState() for label in labels})

    def _halve(self, error: Exception) -> None:
        import torch

        if self._num_sequences <= self._task.largest_row:
            raise UserError("the device's memory does not hold the sequences of one text") from error
        self._num_sequences = max(self._task.largest_row, self._num_sequences // 2)
        self._say(f"out of memory: going on with {self._num_sequences} sequences at a time")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
