"""The human-scored similarity tasks: their files, published sizes, score ranges and places on the hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TaskName = Literal["STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R", "SICK-R-all"]
Split = Literal["train", "dev", "test"]
Layout = Literal["semeval", "benchmark", "sick"]


@dataclass(frozen=True)
class Task:
    """One task.

    `parts` gives, for each split, the parts that its files are named after and how many scored pairs each was
    published with; `files` are file names with {} for the part, in `folder`. `columns` are the numbers of
    columns that a line may have. `left_out` names parts that copies of the data may hold but that are not
    scored. `hub_files` are patterns with {} for the hub's split name, at the commit `hub_revision`.
    """

    name: TaskName
    layout: Layout
    folder: str
    files: tuple[str, ...]
    columns: tuple[int, ...]
    parts: Mapping[Split, Mapping[str, int]]
    score_range: tuple[float, float]
    hub_id: str
    hub_revision: str
    hub_files: tuple[str, ...] = ("{}.jsonl.gz", "data/{}-*.parquet")
    left_out: tuple[str, ...] = ()

    def size(self, split: Split) -> int:
        """Return the published number of scored pairs."""
        return sum(self.parts[split].values())


def _semeval(
    year: Literal["12", "13", "14", "15", "16"],
    revision: str,
    parts: Mapping[str, int],
    *,
    columns: tuple[int, ...] = (2,),
    left_out: tuple[str, ...] = (),
) -> Task:
    names: Mapping[str, TaskName] = {
        "12": "STS12",
        "13": "STS13",
        "14": "STS14",
        "15": "STS15",
        "16": "STS16",
    }
    return Task(
        name=names[year],
        layout="semeval",
        folder=f"STS{year}-en-test",
        files=("STS.input.{}.txt", "STS.gs.{}.txt"),
        columns=columns,
        parts={"test": parts},
        score_range=(0.0, 5.0),
        hub_id=f"mteb/sts{year}-sts",
        hub_revision=revision,
        left_out=left_out,
    )


_SICK_COLUMNS = (5,)
_TASKS = (
    _semeval(
        "12",
        "a0d554a64d88156834ff5ae9920b964011b16384",
        {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    ),
    _semeval(
        "13",
        "7e90230a92c190f1bf69ae9002b8cea547a64cca",
        {"FNWN": 189, "headlines": 750, "OnWN": 561},
        left_out=("SMT",),
    ),
    _semeval(
        "14",
        "6031580fec1f6af667f0bd2da0a551cf4f0b2375",
        {
            "deft-forum": 450,
            "deft-news": 300,
            "headlines": 750,
            "images": 750,
            "OnWN": 750,
            "tweet-news": 750,
        },
    ),
    _semeval(
        "15",
        "ae752c7c21bf194d8b67fd573edf7ae58183cbe3",
        {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    ),
    _semeval(
        "16",
        "4d8694f8f0e0100860b497b999b3dbed754a0513",
        {
            "answer-answer": 254,
            "headlines": 249,
            "plagiarism": 230,
            "postediting": 244,
            "question-question": 209,
        },
        columns=(2, 4),  # the organisers' own files name the two sentences' sources as well
    ),
    Task(
        name="STSb",
        layout="benchmark",
        folder="STSBenchmark",
        files=("sts-{}.csv",),
        columns=(7, 8, 9),
        parts={"train": {"train": 5749}, "dev": {"dev": 1500}, "test": {"test": 1379}},
        score_range=(0.0, 5.0),
        hub_id="mteb/stsbenchmark-sts",
        hub_revision="b0fddb56ed78048fa8b90373c8a3cfc37b684831",
    ),
    Task(
        name="SICK-R",
        layout="sick",
        folder="SICK",
        files=("SICK_{}.txt",),
        columns=_SICK_COLUMNS,
        parts={"train": {"train": 4500}, "dev": {"trial": 500}, "test": {"test_annotated": 4927}},
        score_range=(1.0, 5.0),
        hub_id="mteb/sickr-sts",
        # The only commit of this data set with three different files; in later ones each split is the whole.
        # Unverified: that they are SemEval's splits. The size check on reading decides.
        hub_revision="b589c9fc99a24743f4f6cc6c7c9633cd0fe40b9d",
        hub_files=("{}.json.gz", "data/{}-*.parquet"),
    ),
    Task(
        name="SICK-R-all",
        layout="sick",
        folder="SICK",
        files=("SICK_{}.txt",),
        columns=_SICK_COLUMNS,
        parts={"test": {"train": 4500, "trial": 500, "test_annotated": 4927}},
        score_range=(1.0, 5.0),
        hub_id="mteb/sickr-sts",
        hub_revision="20a6d6f312dd54037fe07a32d58e5e168867909d",
    ),
)
TASKS: Mapping[str, Task] = {task.name: task for task in _TASKS}
