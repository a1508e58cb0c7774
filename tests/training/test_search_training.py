"""Training sparse and late-interaction encoders: losses by hand, resumption, what a file may ask."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hub_cache import tiny_bert
from pydantic import ValidationError
from toy_training import context_in, largest_difference, toy_pairs
from wording import worded

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Ranking, RecordKind, Triplet
from synthbench.models.artifact import load
from synthbench.models.interfaces import PairScorer, Searcher
from synthbench.models.pretrained import Pretrained
from synthbench.models.search_encoders import build_search_encoder
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.objectives import training_table

NEGATIVES = {"name": "multiple-negatives", "temperature": 1.0}
SPARSITY = {"sparsity": {"queries": 0.02, "passages": 0.01}}
KINDS = {"sparse": {**NEGATIVES, **SPARSITY}, "late-interaction": NEGATIVES}
TEXTS = ["the cat", "a dog sleeps", "on the mat"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    tiny_bert(folder, weights=0.2)
    return folder


def trainer(bert: Path, kind: str, loss: dict[str, Any] | None = None, **settings: Any) -> BiEncoder:
    given = {"learning_rate": 1e-3, "batch_size": 4, **settings}
    return BiEncoder(base={"model": str(bert), "encoder": kind}, loss=loss or KINDS[kind], **given)


def value(bert: Path, kind: str, loss: dict[str, Any], data: SyntheticDataset, folder: Path) -> Any:
    """Return the library's loss on all records, and the model, both in double precision."""
    named, context = trainer(bert, kind, loss).loss, context_in(folder)
    assert named is not None
    table = named.labelled(training_table([data], named.objective(context)), context)
    model = build_search_encoder(Pretrained(model=str(bert), encoder=kind), 0, "cpu").eval().double()
    columns = [name for name in table.column_names if name != "label"]
    tasks = ["query", *["document"] * (len(columns) - 1)]
    features = [
        model.preprocess(table[name].to_pylist(), task=task)
        for name, task in zip(columns, tasks, strict=True)
    ]
    labels = torch.tensor(table["label"].to_pylist()).double() if "label" in table.column_names else None
    with torch.no_grad():
        return named.objective(context).loss(model)(features, labels), model


def similarity(model: Any, query: Any, passage: Any) -> float:
    """Return the similarity of two texts; the library's of sparse vectors is in single precision."""
    if model.model_type == "SparseEncoder":
        return float((query.to_dense() * passage.to_dense()).sum())
    return float(model.similarity(query, passage))


def triplet(anchor: str, positive: str, negative: str) -> SyntheticDataset:
    record = Triplet(anchor=anchor, positive=positive, negative=negative, scores=(0.9, 0.2))
    return SyntheticDataset.create(RecordKind.TRIPLET, [record])


@pytest.mark.parametrize("kind", KINDS)
def test_margin_mse_compares_the_encoders_own_margin_with_the_teachers(
    kind: str, bert: Path, tmp_path: Path
) -> None:
    loss = {"name": "margin-mse", **(SPARSITY if kind == "sparse" else {})}
    found, model = value(bert, kind, loss, triplet(*TEXTS), tmp_path)
    query, *passages = model.encode_query(TEXTS[:1]), *(model.encode_document([text]) for text in TEXTS[1:])
    positive, negative = (similarity(model, query, each) for each in passages)
    expected = (positive - negative - 0.7) ** 2
    if kind == "sparse":
        assert found["base_loss"].item() == pytest.approx(expected, rel=1e-6)
        weights = torch.stack([each.to_dense()[0] for each in passages]).mean(dim=0)
        assert found["document_regularizer_loss"].item() == pytest.approx(
            0.01 * (weights**2).sum().item(), rel=1e-6
        )
        own = query.to_dense()[0]
        assert found["query_regularizer_loss"].item() == pytest.approx(0.02 * (own**2).sum().item(), rel=1e-6)
    else:
        assert found.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_graded_lists_teach_a_search_encoder(kind: str, bert: Path, tmp_path: Path) -> None:
    ranking = Ranking(query=TEXTS[0], candidates=tuple(TEXTS[1:]), grades=(0.0, 1.0))
    data = SyntheticDataset.create(RecordKind.RANKING, [ranking])
    loss = {"name": "kl-divergence", "learns_from": "ranking", **(SPARSITY if kind == "sparse" else {})}
    found, model = value(bert, kind, loss, data, tmp_path)
    query, *passages = (
        model.encode_query(TEXTS[:1]),
        *(model.encode_document([text]) for text in TEXTS[:0:-1]),
    )
    scores = torch.tensor([similarity(model, query, each) for each in passages], dtype=torch.float64)
    wanted = torch.tensor([1.0, 0.0], dtype=torch.float64).softmax(dim=0)
    expected = (wanted * (wanted.log() - scores.log_softmax(dim=0))).sum().item()
    assert (found["base_loss"] if kind == "sparse" else found).item() == pytest.approx(expected, rel=1e-6)


class Interrupted:
    """A selection that is interrupted once, at its second evaluation."""

    def __init__(self, is_on: bool) -> None:
        self.is_on, self.turn = is_on, 0

    def __call__(self, scorer: PairScorer) -> float:
        if self.is_on and self.turn == 1:
            self.is_on = False
            raise KeyboardInterrupt
        self.turn += 1
        assert scorer.score([("the cat", "a dog")]).shape == (1,)
        return (0.1, 0.9, 0.2)[self.turn - 1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_training_ends_like_an_undisturbed_one(kind: str, bert: Path, tmp_path: Path) -> None:
    # 6 steps, of which the regulariser's weights rise over 2.
    taught = trainer(bert, kind, max_steps=6, evaluations=3)
    select = Interrupted(is_on=True)
    with pytest.raises(KeyboardInterrupt):
        taught.train([toy_pairs(40)], context_in(tmp_path / "killed", select=select))
    resumed = taught.train([toy_pairs(40)], context_in(tmp_path / "killed", select=select))
    context = context_in(tmp_path / "whole", select=Interrupted(is_on=False))
    assert resumed == taught.train([toy_pairs(40)], context)
    assert resumed.best_step == 4
    assert largest_difference(tmp_path / "killed", tmp_path / "whole") == 0
    loaded = load(context.output, context.runtime)
    assert isinstance(loaded, Searcher)
    assert loaded.score([("the cat", "a dog")]).shape == (1,)


def test_a_checkpoints_own_prefixes_are_read_in_training_as_in_search(bert: Path, tmp_path: Path) -> None:
    model: Any = build_search_encoder(Pretrained(model=str(bert), encoder="late-interaction"), 0, "cpu")
    model.save(str(tmp_path / "plain"), create_model_card=False)
    model.prompts = {"query": "the ", "document": "on "}
    model.save(str(tmp_path / "prefixed"), create_model_card=False)
    plain = triplet(*TEXTS)
    by_hand = triplet(f"the {TEXTS[0]}", f"on {TEXTS[1]}", f"on {TEXTS[2]}")
    loss = {"name": "margin-mse"}
    for folder, data in (("prefixed", plain), ("plain", by_hand)):
        taught = trainer(tmp_path / folder, "late-interaction", loss, max_steps=2)
        taught.train([data], context_in(tmp_path / f"of {folder}"))
    assert largest_difference(tmp_path / "of prefixed", tmp_path / "of plain") == 0


def test_a_training_cuts_passages_of_a_checkpoint_with_own_lengths(bert: Path, tmp_path: Path) -> None:
    model: Any = build_search_encoder(Pretrained(model=str(bert), encoder="late-interaction"), 0, "cpu")
    model[0].document_length = 20
    model.save(str(tmp_path / "own"), create_model_card=False)
    long = triplet("the cat", "a dog the " + "guitar " * 5, "a cat " * 5)
    # [CLS] and [SEP] count.
    cut = triplet("the cat", "a dog the", "a cat a")
    for folder, data, length in (("cut", long, 5), ("whole", cut, None)):
        loss = {"name": "margin-mse"}
        taught = trainer(tmp_path / "own", "late-interaction", loss, max_steps=2, max_length=length)
        taught.train([data], context_in(tmp_path / folder))
    assert largest_difference(tmp_path / "cut", tmp_path / "whole") == 0


def test_the_regulariser_makes_a_sparse_encoder_sparse(bert: Path, tmp_path: Path) -> None:
    stored = []
    for weight in (0.0, 3.0):
        loss = {**NEGATIVES, "sparsity": {"queries": weight, "passages": weight}}
        folder = tmp_path / str(weight)
        trainer(bert, "sparse", loss, max_steps=20, learning_rate=1e-2).train(
            [toy_pairs(40)], context_in(folder)
        )
        loaded = load(folder / "output", context_in(folder).runtime)
        assert isinstance(loaded, Searcher)
        list(loaded.similarities(TEXTS, TEXTS, 10))
        stored.append(loaded.numbers_per_passage)
    assert stored[1] < stored[0] / 2


@pytest.mark.parametrize(
    ("kind", "loss", "settings"),
    [
        ("sparse", None, {}),
        ("sparse", {"name": "cosent"}, {}),
        ("sparse", {"name": "multiple-negatives", **SPARSITY}, {}),
        ("sparse", NEGATIVES, {}),
        ("late-interaction", {**NEGATIVES, **SPARSITY}, {}),
        ("dense", {"name": "multiple-negatives", **SPARSITY}, {}),
        ("late-interaction", {"name": "margin-mse", "similarity": "cosine"}, {}),
        ("late-interaction", {**NEGATIVES, "dimensions": [64]}, {}),
        ("late-interaction", NEGATIVES, {"lora": {"rank": 2}}),
        ("sparse", {**NEGATIVES, **SPARSITY}, {"devices": 2}),
    ],
)
def test_a_setting_that_an_encoder_can_not_follow_is_refused_in_one_line(
    kind: str, loss: dict[str, Any] | None, settings: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError) as error:
        BiEncoder(base={"model": "m", "encoder": kind}, loss=loss, **settings)
    worded(str(error.value.errors()[0]["msg"]))


def test_a_loss_is_named_by_the_librarys_class_for_the_encoder() -> None:
    settings = {"base": {"model": "m", "encoder": "sparse"}, "loss": KINDS["sparse"]}
    assert BiEncoder(**settings).losses == ("SparseMultipleNegativesRankingLoss", "SpladeLoss")
    settings = {"base": {"model": "m", "encoder": "late-interaction"}, "loss": NEGATIVES}
    assert BiEncoder(**settings).losses == ("MultiVectorMultipleNegativesRankingLoss",)
