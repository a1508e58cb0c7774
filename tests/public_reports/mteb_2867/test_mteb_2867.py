"""embeddings-benchmark/mteb #2867: a model that brings a query prompt scores too low if nobody reads it.

So it was here with models whose `default_prompt_name` is null. Queries and passages now have the vectors of
the library's `encode_query` and `encode_document`, in every evaluation that has them and in mining; plan and
table name the prompts, `prompts: {}` leaves them out, and models without prompts keep their stages.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_cache import SENTENCES, HubCache, tiny_sentence_transformer
from small_experiment import Project

from synthbench.config.described_models import described_models
from synthbench.config.load import load_experiment
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.engine.stage import Stage
from synthbench.models.building import build_encoder
from synthbench.models.checks import prompts_of_rankings
from synthbench.models.encoder import CachingEncoder, LengthBatchedEncoder, StoredVectors
from synthbench.models.interfaces import of_passages, of_queries
from synthbench.models.pair_scorer import CosineScorer
from synthbench.models.pretrained import Pretrained, Prompts
from synthbench.pipeline.planning import make_plan
from synthbench.preparing.mining import MineNegatives
from synthbench.results.collect import prompt_notes
from synthbench.stages.evaluation import Evaluate
from synthbench.stages.own_prompts import notes_on_prompts, own_prompts, reads_queries
from synthbench.stages.training import Select, Train
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.untrained import Untrained
from synthbench_mteb import MTEB
from synthbench_mteb.encoder import EncoderForMTEB
from synthbench_reranking import Reranking
from synthbench_retrieval import Retrieval
from synthbench_sts import STS

COMMIT = "b" * 40
QUERY, PASSAGE = "a man: ", "two dogs: "
Model = Callable[..., Path]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Give a saved encoder with these prompts."""
    root = tmp_path_factory.mktemp("prompted")
    tiny_sentence_transformer(root / "bare")

    def saved(prompts: Mapping[str, str] | None, default: str | None = None) -> Path:
        folder = root / f"{hash((json.dumps(prompts), default))}"
        if not folder.is_dir():
            shutil.copytree(root / "bare", folder)
            file = folder / "config_sentence_transformers.json"
            settings = json.loads(file.read_text())
            settings |= {"prompts": prompts or {}, "default_prompt_name": default}
            file.write_text(json.dumps(settings))
        return folder

    return saved


PROMPTS: dict[str, tuple[dict[str, str] | None, str | None]] = {
    "query alone, as Qwen3-Embedding": ({"query": QUERY}, None),
    "both": ({"query": QUERY, "document": PASSAGE}, None),
    "passage and corpus, which the library passes over": ({"query": QUERY, "passage": PASSAGE}, None),
    "the query's is the default": ({"query": QUERY, "document": PASSAGE}, "query"),
    "another is the default": ({"other": PASSAGE}, "other"),
    "a default beside the query's": ({"other": PASSAGE, "query": QUERY}, "other"),
    "none": (None, None),
}


def encoder(folder: Path, prompts: Prompts | None = None) -> LengthBatchedEncoder:
    return LengthBatchedEncoder(build_encoder(Pretrained(model=str(folder), prompts=prompts), 0, "cpu"))


@pytest.mark.parametrize("given", PROMPTS.values(), ids=PROMPTS)
def test_vectors_of_queries_passages_and_sentences_equal_the_librarys(model: Model, given: Any) -> None:
    ours = encoder(model(*given))
    texts = SENTENCES[:9]
    for mine, theirs in (
        (ours, ours.model.encode),
        (of_queries(ours), ours.model.encode_query),
        (of_passages(ours), ours.model.encode_document),
        (of_queries(CachingEncoder(ours)), ours.model.encode_query),
        (of_passages(CachingEncoder(ours)), ours.model.encode_document),
    ):
        np.testing.assert_allclose(mine.encode(texts), theirs(texts), atol=1e-5)
    is_marked = prompts_of_rankings(Pretrained(model=str(model(*given)))) is not None
    assert is_marked == (given not in (PROMPTS["the query's is the default"], PROMPTS["none"]))


def test_a_router_encodes_queries_and_passages_with_separate_modules(tmp_path: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    known = dict.fromkeys(["[UNK]", *" ".join(SENTENCES[:9]).split()])
    words = {word: number for number, word in enumerate(known)}
    tokenizer = Tokenizer(models.WordLevel(words, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    sides = [[StaticEmbedding(tokenizer, embedding_weights=torch.randn(len(words), 4))] for _ in range(2)]
    router = Router.for_query_document(*sides)
    SentenceTransformer(modules=[router], device="cpu").save(str(tmp_path), create_model_card=False)
    ours, texts = encoder(tmp_path), SENTENCES[:9]
    np.testing.assert_allclose(of_queries(ours).encode(texts), ours.model.encode_query(texts), atol=1e-6)
    np.testing.assert_allclose(of_passages(ours).encode(texts), ours.model.encode_document(texts), atol=1e-6)
    assert np.abs(of_queries(ours).encode(texts) - of_passages(ours).encode(texts)).max() > 0.1
    assert prompts_of_rankings(Pretrained(model=str(tmp_path))) == {
        "query": "",
        "document": "",
        "routed": True,
    }


def test_rankings_and_mteb_use_the_models_prompts(model: Model) -> None:
    from mteb.types import PromptType

    ours = encoder(model({"query": QUERY, "document": PASSAGE}))
    queries, passages = SENTENCES[:3], SENTENCES[50:53]
    asked, found = ours.model.encode_query(queries), ours.model.encode_document(passages)
    pairs = list(zip(queries, passages, strict=True))
    np.testing.assert_allclose(CosineScorer(ours).score_passages(pairs), (asked * found).sum(1), atol=1e-5)
    theirs = EncoderForMTEB(ours)
    where: dict[str, Any] = {"task_metadata": None, "hf_split": "", "hf_subset": ""}
    batches = [{"text": queries[:2]}, {"text": queries[2:]}]
    for kind, expected in ((PromptType.query, asked), (None, ours.model.encode(queries))):
        np.testing.assert_allclose(theirs.encode(batches, prompt_type=kind, **where), expected, atol=1e-5)
    # STS tasks use no query prompt.
    assert STS().evaluate(CosineScorer(ours), _similarities()) == STS().evaluate(
        CosineScorer(encoder(model(None))), _similarities()
    )


def _similarities() -> SyntheticDataset:
    from synthbench.data.records import ScoredPair

    pairs = zip(SENTENCES[:6], SENTENCES[6:12], strict=True)
    records = [ScoredPair(sentence1=a, sentence2=b, score=n / 6) for n, (a, b) in enumerate(pairs)]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def test_prompts_of_the_file_precede_the_models_own(model: Model) -> None:
    folder = model({"query": QUERY, "document": PASSAGE})
    plain = encoder(model(None)).encode(SENTENCES[:9])
    none = Prompts()
    for ours in (encoder(folder).with_prompts(none), encoder(folder, none)):
        for each in (ours, of_queries(ours), of_passages(ours)):
            np.testing.assert_allclose(each.encode(SENTENCES[:9]), plain, atol=1e-5)
    assert prompts_of_rankings(Pretrained(model=str(folder), prompts=none)) is None


def test_vectors_stored_before_a_kill_are_never_used_for_another_prompt(model: Model, tmp_path: Path) -> None:
    ours = encoder(model({"query": QUERY}, "query")).with_stored(StoredVectors(tmp_path, "model"))
    ours.encode(SENTENCES[:3])
    passages = of_passages(ours.with_stored(StoredVectors(tmp_path, "model")))
    np.testing.assert_allclose(
        passages.encode(SENTENCES[:3]), ours.model.encode_document(SENTENCES[:3]), atol=1e-5
    )


def _trained(*bases: Path) -> Stage:
    stages = [Stage(Train("none", Untrained(base=Pretrained(model=str(base))), 0)) for base in bases]
    if len(stages) == 1:
        return stages[0]
    return Stage(Select(({}, {})), {f"candidate:{index}": each for index, each in enumerate(stages)})


def test_only_rankings_by_a_model_with_prompts_have_a_changed_identity(
    model: Model, hub_cache: HubCache
) -> None:
    plain, prompted = model(None), model({"query": QUERY})
    reads = {"query": QUERY, "document": ""}
    assert own_prompts(_trained(plain)) == ()
    assert own_prompts(_trained(prompted)) == (reads,) == own_prompts(_trained(plain, prompted))
    config = Evaluate("reranking", Reranking(), own_prompts=(reads,)).config()
    assert config["own_prompts"] == [reads]
    assert dict(Evaluate("reranking", Reranking()).config()) == Reranking().model_dump(mode="json")
    assert [reads_queries(each) for each in (Reranking(), Retrieval(), MTEB(), STS())] == [True] * 3 + [False]
    assert MineNegatives.reads_queries
    hub_cache.add_model("some/prompted", COMMIT, lambda to: shutil.copytree(prompted, to, dirs_exist_ok=True))
    assert prompts_of_rankings(Pretrained(model="some/prompted")) == reads
    assert prompts_of_rankings(Pretrained(model="some/unknown", revision=COMMIT)) is None


def test_a_training_that_ranks_dev_has_a_changed_identity_too() -> None:
    base = Pretrained(model="some/model", revision=COMMIT)
    ranked = Train("bi-encoder", BiEncoder(base=base), 0, "reranking", Reranking())
    assert "own_prompts" not in ranked.config()["selection"]
    reads = {"query": QUERY, "document": ""}
    read = Train("bi-encoder", BiEncoder(base=base), 0, "reranking", Reranking(), own_prompts=(reads,))
    assert read.config()["selection"]["own_prompts"] == [reads]


def test_the_table_names_prompts_rows_and_tasks() -> None:
    reads = ({"query": "Instruct: find it\nQuery: ", "document": ""},)
    (note,) = notes_on_prompts(
        [("a", "scifact", reads), ("b", "scifact", reads), ("a", "nfcorpus", reads), ("c", "x", ())]
    )
    assert note == (
        "a, b: on scifact, nfcorpus, the model's own prompts are read, queries after 'Instruct: find it"
        " Query:', passages after nothing; `prompts: {}` of the evaluation leaves them out."
    )


FILE = """
experiment: prompted
sources:
  test: {{file: test.jsonl, kind: ranking, split: test}}
seeds: [0]
defaults:
  train: {{trainer: none, base: {{model: "{model}"}}}}
  evaluate:
    read: {{evaluator: reranking, tasks: [test]}}
baseline: asked
variants:
  bare: {{evaluate.read.prompts: {{}}}}
runtime: {{device: cpu, threads: 1}}
"""


NOTE = f"asked: on test, the model's own prompts are read, queries after '{QUERY.strip()}'"


@pytest.fixture
def file(tmp_path: Path, model: Model) -> Path:
    ranking = {"query": SENTENCES[0], "candidates": list(SENTENCES[7:13]), "grades": [1, 0, 0, 0, 0, 0]}
    (tmp_path / "test.jsonl").write_text(json.dumps(ranking) + "\n", encoding="utf-8")
    file = tmp_path / "prompted.yaml"
    file.write_text(FILE.format(model=model({"query": QUERY})), encoding="utf-8")
    return file


def test_a_row_uses_the_models_prompts_unless_its_evaluation_disables_them(file: Path) -> None:
    plan = make_plan(load_experiment(file))
    (note,) = prompt_notes(plan)
    assert note.startswith(NOTE)
    asked, bare = (run.evaluations["test"].operation.config() for run in plan.runs)
    assert asked["own_prompts"] == [{"query": QUERY, "document": ""}]
    assert "own_prompts" not in bare and bare["prompts"] == {"query": "", "passage": ""}
    assert f"prompt 'query': \"{QUERY}\"" in next(described_models(plan.experiment))


@pytest.mark.experiments
def test_plan_and_table_name_the_models_prompts(project: Project, file: Path) -> None:
    called = project.call("plan", file)
    assert called.code == 0, called.err
    assert NOTE in called.out
    called = project.call("run", file)
    assert called.code == 0, called.err
    assert any(NOTE in found.read_text() for found in project.home.parent.rglob("*.md"))
