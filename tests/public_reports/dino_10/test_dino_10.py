"""timoschick/dino #10: second texts are copies of the first, or differ in case or a full stop alone.

A copy is never a second text: it is counted, and another attempt is made. Nearly equal ones are counted in
the data, and the step `drop-identical` drops them with `normalised: true`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from small_models import scripted_model

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Record, RecordKind, ScoredPair
from synthbench.generation.jobs import Amounts, Job, WritingTask
from synthbench.generation.language_model import LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer
from synthbench.preparing.drops import DropIdentical

if TYPE_CHECKING:
    from synthbench.plugins.contracts import StepContext

COPIES = {'"': {"a": 0.8, "c": 0.2}, "a": {"b": 1.0}, "b": {'"': 1.0}, "c": {'"': 1.0}}
"""Writes "ab" four times of five, else "c"."""


def test_a_second_text_that_copies_the_first_is_counted_and_dropped(tmp_path: Path) -> None:
    scripted_model(COPIES, tmp_path)
    causal = LanguageModel(model=str(tmp_path)).load(Runtime(device="cpu", threads=1))
    sampling = Sampling(decay=0.0, top_k=None, top_p=None, max_new_tokens=4)
    task = WritingTask({"1": ()}, sampling, Amounts(samples=1, tries=20), seed=0)
    jobs = [Job(str(n), {"1": 'Sentence 1: "ab"\nSentence 2: "'}, frozenset({"ab"})) for n in range(10)]
    written = list(Writer(causal, task, sequences=8).write(jobs))
    assert {text for each in written for text in each.texts} == {"c"}
    outcomes = [attempt.outcome for each in written for attempt in each.attempts]
    assert outcomes.count("identical") > outcomes.count("kept") > 5


def data(*records: ScoredPair) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def test_texts_that_differ_in_case_or_a_full_stop_are_counted_and_can_be_dropped() -> None:
    first = "a man with a hard hat is dancing"
    seconds = [first, "A man with a hard hat is dancing", f"{first}.", "a man is dancing"]
    pairs = [ScoredPair(id=text, sentence1=first, sentence2=text, score=1.0) for text in seconds]

    def kept(step: DropIdentical) -> Sequence[Record]:
        return list(step.apply(data(*pairs), cast("StepContext", None)))

    assert [one.id for one in kept(DropIdentical())] == seconds[1:]
    assert [one.id for one in kept(DropIdentical(normalised=True))] == seconds[3:]
    assert (
        DropIdentical().remark(data(*pairs), data(*pairs[1:])).startswith("1 identical to the letter, 2 more")
    )
