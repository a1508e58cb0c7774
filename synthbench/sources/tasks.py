"""The standard tasks: their files, published sizes, paths on the hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from synthbench.data.records import RecordKind

Split = Literal["train", "dev", "test"]
Layout = Literal[
    "semeval", "benchmark", "sick", "reranking", "file per class", "sst", "trec", "mrpc", "question pairs"
]
RERANKING_FOLDER = "reranking"
OF_PUBLISHED_PAIRS = "docs/augsbert.md, Data of the paper"
CLASSIFICATION: tuple[Layout, ...] = ("file per class", "sst", "trec")
"""Layouts of sentences with a class label."""


@dataclass(frozen=True)
class Task:
    """A standard task.

    `parts` maps each split to its parts, such as MSRpar. Each part has its published number of scored pairs,
    queries or sentences, 0 if unknown. `files` are file names in `folder`, with {} for the part.
    `columns` are the permitted numbers of columns of similarity tasks. `left_out` names parts that are not
    scored, although copies of the data may hold them. `input_lines` is the number of released input lines, if
    only the first ones are scored.

    `hub_files` are patterns with {} for the hub's split name, at the commit `hub_revision`; the first pattern
    with a match counts. Without a `hub_id`, the task has no known data set on the hub. `is_in_senteval`: the
    SentEval toolkit has the folder. `described_in`: the documentation for data that neither SentEval nor the
    hub has.
    """

    name: str
    layout: Layout
    folder: str
    parts: Mapping[Split, Mapping[str, int]]
    files: tuple[str, ...] = ("STS.input.{}.txt", "STS.gs.{}.txt")
    columns: tuple[int, ...] = (2,)
    score_range: tuple[float, float] = (0.0, 1.0)
    hub_id: str = ""
    hub_revision: str = ""
    hub_files: tuple[str, ...] = ("{}.jsonl.gz", "data/{}-*.parquet")
    left_out: tuple[str, ...] = ()
    input_lines: int = 0
    is_in_senteval: bool = True
    described_in: str = ""

    @property
    def kind(self) -> RecordKind:
        """The record kind of the task."""
        if self.layout in CLASSIFICATION:
            return RecordKind.SENTENCE
        return RecordKind.RANKING if self.layout == "reranking" else RecordKind.SCORED_PAIR

    @property
    def items(self) -> str:
        """The word for the task's records in messages."""
        words = {RecordKind.RANKING: "queries", RecordKind.SENTENCE: "sentences"}
        return words.get(self.kind, "scored pairs")

    def size(self, split: Split) -> int:
        """Return the published number of scored pairs, queries or sentences, 0 if unknown."""
        return sum(self.parts[split].values())


def _semeval(
    year: str,
    revision: str,
    parts: Mapping[str, int],
    *,
    columns: tuple[int, ...] = (2,),
    left_out: tuple[str, ...] = (),
) -> Task:
    return Task(
        name=f"STS{year}",
        layout="semeval",
        folder=f"STS{year}-en-test",
        columns=columns,
        parts={"test": parts},
        score_range=(0.0, 5.0),
        hub_id=f"mteb/sts{year}-sts",
        hub_revision=revision,
        left_out=left_out,
    )


def _sts17(
    track: str,
    name: str,
    files: str,
    *,
    left_out: tuple[str, ...] = (),
    input_lines: int = 0,
    size: int = 250,
) -> Task:
    """Return a track of SemEval 2017, called `track` on the hub and `files` in the organisers' file names."""
    return Task(
        name=name,
        layout="semeval",
        folder="STS17-test",
        parts={"test": {files: size}},
        score_range=(0.0, 5.0),
        hub_id="mteb/sts17-crosslingual-sts",
        hub_revision="faeb762787bd10488a50c8b5be4a3b82e411949c",
        hub_files=(f"{{}}/{track}.jsonl.gz",),
        left_out=left_out,
        input_lines=input_lines,
        is_in_senteval=False,
    )


def _reranking(name: str, hub_id: str, revision: str, num_queries: int) -> Task:
    return Task(
        name=name,
        layout="reranking",
        folder=RERANKING_FOLDER,
        files=("{}.jsonl",),
        parts={"test": {name: num_queries}},
        hub_id=hub_id,
        hub_revision=revision,
        is_in_senteval=False,
    )


def _question_pairs(name: str, folder: str, train: int, held_out: int) -> Task:
    """Return the task of a forum of Shah et al. 2018; dev and test each have `held_out` records.

    The sizes are those of Thakur et al. 2021, Table 4, which rounds dev and test to thousands.
    """
    return Task(
        name=name,
        layout="question pairs",
        folder=folder,
        files=("{}.pos.txt", "{}.neg.txt", "corpus.tsv.gz"),
        parts={"train": {"train": train}, "dev": {"dev": held_out}, "test": {"test": held_out}},
        is_in_senteval=False,
        described_in=OF_PUBLISHED_PAIRS,
    )


_SICK_COLUMNS = (5,)
_MRPC_FILES = ("msr_paraphrase_{}.txt",)
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
        columns=(2, 4),  # the organisers' files also name the two sentences' sources
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
        # Unverified: whether they are SemEval's splits. The size check on reading decides.
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
    Task(
        name="BIOSSES",
        layout="semeval",
        folder="BIOSSES-test",
        parts={"test": {"BIOSSES": 100}},
        score_range=(0.0, 4.0),
        hub_id="mteb/biosses-sts",
        hub_revision="d3fb88f8f02e40887cd149695127462bbcf29b4a",
        is_in_senteval=False,
    ),
    _sts17("en-en", "STS17-en-en", "track5.en-en"),
    _sts17("ar-ar", "STS17-ar-ar", "track1.ar-ar"),
    _sts17("es-es", "STS17-es-es", "track3.es-es"),
    _sts17("en-ar", "STS17-en-ar", "track2.ar-en"),
    # Track 4b is about translation quality; the hub lacks it.
    _sts17("es-en", "STS17-es-en", "track4a.es-en", left_out=("track4b.es-en",)),
    # The organisers' input of track 6 has 500 lines; only the first 250 are scored.
    _sts17("en-tr", "STS17-en-tr", "track6.tr-en", input_lines=500),
    # On the hub alone: translations of the English track into other languages, and STSb in Korean.
    *(_sts17(each, f"STS17-{each}", each) for each in ("en-de", "fr-en", "it-en", "nl-en")),
    _sts17("ko-ko", "STS17-ko-ko", "ko-ko", size=2846),
    # The Spanish pairs of SemEval 2014 (with its 65 trial pairs) and 2015, scored from 0 to 4. The year is in
    # each part's name, since both years have Wikipedia pairs. On the hub, PlanTL-GOB-ES/sts-es lacks the
    # trial pairs.
    Task(
        name="STS14-15-es",
        layout="semeval",
        folder="STS14-15-es",
        parts={
            "train": {
                "2014.li65": 65,
                "2014.news": 480,
                "2014.wikipedia": 324,
                "2015.newswire": 500,
                "2015.wikipedia": 251,
            }
        },
        score_range=(0.0, 4.0),
        is_in_senteval=False,
        described_in=OF_PUBLISHED_PAIRS,
    ),
    # Lei et al.'s 189 dev and 186 test queries with a relevant candidate; 14 of them have no irrelevant one.
    _reranking(
        "AskUbuntuDupQuestions",
        "mteb/askubuntudupquestions-reranking",
        "2000358ca161889fa9c082cb41daa8dcfb161a54",
        375,
    ),
    # Unverified: the layout at this commit, and the number of queries.
    _reranking("MindSmallReranking", "mteb/mind_small", "3bdac13927fdc888b903db93b2ffdbd90b295a69", 0),
    _reranking("SciDocsRR", "mteb/scidocs-reranking", "d3c5e1fc0b855ab6097bf1cda04dd73947d7caab", 3978),
    _reranking(
        "StackOverflowDupQuestions",
        "mteb/stackoverflowdupquestions-reranking",
        "e185fbe320c72810689fc5848eb6114e1ef5ec69",
        2992,
    ),
    Task("MR", "file per class", "MR", {"test": {"pos": 5331, "neg": 5331}}, ("rt-polarity.{}",)),
    Task("CR", "file per class", "CR", {"test": {"pos": 2407, "neg": 1368}}, ("custrev.{}",)),
    Task("SUBJ", "file per class", "SUBJ", {"test": {"objective": 5000, "subjective": 5000}}, ("subj.{}",)),
    # Unverified: the class sizes among the 10,606 phrases; counted in a copy with another layout.
    Task("MPQA", "file per class", "MPQA", {"test": {"pos": 3312, "neg": 7294}}, ("mpqa.{}",)),
    Task(
        "SST2",
        "sst",
        "SST/binary",
        {"train": {"train": 67349}, "dev": {"dev": 872}, "test": {"test": 1821}},
        ("sentiment-{}",),
    ),
    Task("TREC", "trec", "TREC", {"train": {"train_5500": 5452}, "test": {"TREC_10": 500}}, ("{}.label",)),
    Task("MRPC", "mrpc", "MRPC", {"train": {"train": 4076}, "test": {"test": 1725}}, _MRPC_FILES),
    Task("MRPC-all", "mrpc", "MRPC", {"test": {"train": 4076, "test": 1725}}, _MRPC_FILES),
    _question_pairs("AskUbuntuPairs", "askubuntu", 919_706, 101_000),
    _question_pairs("QuoraPairs", "quora", 254_142, 10_000),
    _question_pairs("SprintPairs", "sprint", 919_100, 101_000),
    _question_pairs("SuperUserPairs", "superuser", 919_706, 101_000),
)
TASKS: Mapping[str, Task] = {task.name: task for task in _TASKS}
OTHER_NAMES: Mapping[str, str] = {
    other.lower(): task.name
    for task in reversed(_TASKS)
    for other in (task.name, task.folder, task.hub_id.rpartition("/")[2])
    if other not in ("", RERANKING_FOLDER)
}
"""What a task is called elsewhere, in lower case -> its name."""
if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[tuple(TASKS)]
