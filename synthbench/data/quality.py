"""Quality figures of seeded samples, with the samples' sizes; a whole data set would take too long."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.likeness import bare, directions
from synthbench.data.near_duplicates import NearDuplicates
from synthbench.data.records import RecordKind
from synthbench.data.streaming import AT_ONCE
from synthbench.words import spaced, split_words

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from synthbench.data.likeness import Encode

SEED = 0
BLEU_SENTENCES = 200
DIVERSITY_SENTENCES = 2_000
NEAR_QUERIES = 2_000
NEAR_SENTENCES = 300_000
NEAR_SENTENCES_OF_RUNS = 20_000
RECORDS_OF_RUNS = 200_000
PAIRS = 50_000
NEIGHBOURS = 1_000
TRAIN_SENTENCES = 20_000
SIMILAR = 0.95


class NearNeighbours(BaseModel):
    """Similarity of a split to train, on samples: `queries` sentences of the split, `sentences` of train."""

    model_config = ConfigDict(frozen=True)

    in_train: float = Field(
        description="share of queries found anywhere in train, up to case and punctuation"
    )
    median_cosine: float = Field(description="median cosine with the nearest train sentence")
    share_similar: float = Field(
        description=f"share of the queries with a nearest cosine of {SIMILAR} or more"
    )
    queries: int
    sentences: int


class Quality(BaseModel):
    """Quality figures on samples of distinct sentences or records, drawn with `seed`.

    None or empty where they do not apply: a single sentence, no pairs, no encoder.
    """

    model_config = ConfigDict(frozen=True)

    seed: int = SEED
    self_bleu: float | None = Field(None, description="mean self-BLEU, 0 to 100; grows with the sample size")
    bleu_sentences: int = 0
    vendi_score: float | None = Field(
        None,
        description="effective number of sentences, from 1 to min(sample size, embedding dimension)",
    )
    vendi_sentences: int = 0
    encoder: str = Field("", description="the model whose embeddings the Vendi score and `to_train` use")
    near_duplicates: float | None = Field(
        None,
        description="share of `near_queries` sampled sentences with a near-duplicate among `near_sentences`"
        " sampled sentences",
    )
    near_queries: int = 0
    near_sentences: int = 0
    same_words: float | None = Field(
        None, description="share of the pairs that are equal up to case, punctuation and word order"
    )
    no_common_word: float | None = Field(None, description="share of the pairs without a word in common")
    num_pairs: int = 0
    to_train: dict[str, NearNeighbours] = Field(
        default_factory=dict, description="split other than train -> similarity of its sentences to train"
    )


def examine(
    dataset: SyntheticDataset, encode: "Encode | None" = None, encoder: str = "", words: str = "pairs"
) -> Quality:
    """Return quality figures of samples; figures that need embeddings only with `encode`.

    Self-BLEU (Zhu et al. 2018) is the mean BLEU of each sentence against all others of the sample. The Vendi
    score (Friedman & Dieng 2023) is the exponential of the entropy of the cosine matrix's eigenvalues.
    Near-duplicates have a Jaccard similarity of character 5-grams of at least 0.8, found by MinHash. `words`
    names the splitter of scripts without spaces.
    """
    sentences = _texts(dataset.kind, dataset.table, NEAR_SENTENCES)
    found: dict[str, object] = {
        **_self_bleu([spaced(text, words) for text in sentences[:BLEU_SENTENCES]]),
        **_near_duplicates(sentences[:NEAR_SENTENCES]),
        **_trivial_pairs(dataset, words),
    }
    if encode is not None and sentences:
        sample = sentences[:DIVERSITY_SENTENCES]
        found |= {
            "encoder": encoder,
            "vendi_score": vendi_score(encode(sample)),
            "vendi_sentences": len(sample),
            "to_train": _to_train(dataset, encode),
        }
    return Quality.model_validate(found)


def key_figures(dataset: SyntheticDataset) -> dict[str, float]:
    """Return name -> figure, for the figures that are cheap enough to compute after every run.

    Of more than 200,000 records, only a random sample of 200,000 is used; `num_records` is then 200,000.
    `near_duplicates`, `same_words` and `no_common_word` use smaller samples.
    """
    from synthbench.data.inspect import describe

    if not len(dataset):
        return {}
    if len(dataset) > RECORDS_OF_RUNS:
        dataset = replace(dataset, table=dataset.table.take(_drawn(len(dataset), RECORDS_OF_RUNS)))
    whole = describe(dataset)
    sentences = _texts(dataset.kind, dataset.table, NEAR_SENTENCES_OF_RUNS)
    sampled = {**_near_duplicates(sentences), **_trivial_pairs(dataset)}
    num_words = sum(words.mean for words in whole.words.values()) / len(whole.words)
    exact = {
        "num_records": float(whole.num_records),
        "num_sentences": float(whole.num_sentences),
        "mean_words": num_words,
        "distinct_1": whole.distinct_1,
        "distinct_2": whole.distinct_2,
        "identical": whole.share_identical,
        "duplicates": whole.num_unordered_duplicates / whole.num_records,
    }
    if dataset.kind is RecordKind.SCORED_PAIR:
        exact["score_sd"] = float(dataset.table.column("score").to_numpy().std())
    names = ("near_duplicates", "same_words", "no_common_word")
    return exact | {name: value for name in names if isinstance(value := sampled.get(name), float)}


def vendi_score(vectors: "NDArray[np.float32]") -> float:
    """Return the Vendi score of embeddings, shape (n, dimension): the effective number of distinct ones."""
    import numpy as np
    from scipy.special import entr

    rows = directions(vectors).astype(np.float64)
    # The n x n matrix of cosines and this dimension x dimension one have the same non-zero eigenvalues.
    eigenvalues = np.linalg.eigvalsh(rows.T @ rows / len(rows))
    return float(np.exp(entr(np.clip(eigenvalues, 0, None)).sum()))


def _self_bleu(sentences: Sequence[str]) -> dict[str, object]:
    if len(sentences) < 2:
        return {}
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(lowercase=True, effective_order=True)
    others = ((*sentences[:position], *sentences[position + 1 :]) for position in range(len(sentences)))
    scores = [bleu.sentence_score(one, rest).score for one, rest in zip(sentences, others, strict=True)]
    return {"self_bleu": sum(scores) / len(scores), "bleu_sentences": len(sentences)}


def _near_duplicates(sentences: Sequence[str]) -> dict[str, object]:
    """Return the share of the first NEAR_QUERIES sentences with a near-duplicate, and sample sizes."""
    if len(sentences) < 2:
        return {}
    queries = [bare(sentence) for sentence in sentences[:NEAR_QUERIES]]
    index = NearDuplicates(queries)
    found: set[int] = set()
    for start in range(0, len(sentences), AT_ONCE):
        some = [bare(sentence) for sentence in sentences[start : start + AT_ONCE]]
        for position, numbers in enumerate(index.find(some), start=start):
            found.update(number for number in numbers if number != position)
    return {
        "near_duplicates": len(found) / len(queries),
        "near_queries": len(queries),
        "near_sentences": len(sentences),
    }


def _trivial_pairs(dataset: SyntheticDataset, splitter: str = "pairs") -> dict[str, object]:
    if dataset.kind == RecordKind.SENTENCE or not len(dataset):
        return {}
    sample = replace(dataset, table=dataset.table.take(_drawn(len(dataset), PAIRS)))
    words = ([split_words(bare(text), splitter) for text in row] for row in sample.text_rows())
    pairs = [(first, other) for first, *others in words for other in others]
    same = sum(sorted(first) == sorted(other) for first, other in pairs)
    apart = sum(set(first).isdisjoint(other) for first, other in pairs)
    number = len(pairs)
    return {"same_words": same / number, "no_common_word": apart / number, "num_pairs": number}


def _to_train(dataset: SyntheticDataset, encode: "Encode") -> dict[str, NearNeighbours]:
    import numpy as np
    import pyarrow.compute as pc

    splits = dataset.table.column("split")
    names = sorted({str(name) for name in pc.unique(splits).to_pylist()} - {"train"})
    parts = {name: dataset.table.filter(pc.equal(splits, name)) for name in ("train", *names)}
    if not names or not parts["train"].num_rows:
        return {}
    queries = {name: _texts(dataset.kind, parts[name], NEIGHBOURS) for name in names}
    wanted = {bare(text) for texts in queries.values() for text in texts}
    rows = replace(dataset, table=parts["train"]).text_rows()
    in_train = {key for row in rows for text in row if (key := bare(text)) in wanted}
    known = _texts(dataset.kind, parts["train"], TRAIN_SENTENCES)
    matrix = directions(encode(known)).T
    found = {}
    for name, texts in queries.items():
        nearest = (directions(encode(texts)) @ matrix).max(axis=1)
        found[name] = NearNeighbours(
            in_train=sum(bare(text) in in_train for text in texts) / len(texts),
            median_cosine=float(np.median(nearest)),
            share_similar=float((nearest >= SIMILAR).mean()),
            queries=len(texts),
            sentences=len(known),
        )
    return found


def _texts(kind: RecordKind, table: "pa.Table", most: int) -> list[str]:
    """Return at most `most` distinct sentences of a table, in random order."""
    from synthbench.data.inspect import distinct_sentences

    distinct = distinct_sentences(kind, table)
    texts: list[str] = distinct.take(_drawn(len(distinct), most)).to_pylist()
    return texts


def _drawn(number: int, most: int) -> "NDArray[np.int64]":
    import numpy as np

    return np.random.default_rng(SEED).permutation(number)[:most]


def kl_divergence(counts: Sequence[float], reference: Sequence[float]) -> float:
    """Return the Kullback-Leibler divergence, in nats, of counts from a reference's counts in the same bins.

    Each reference bin gets half a count, so that an empty bin does not give infinity. The counts get none:
    few counts would otherwise seem as widely spread as the reference. At least one count is required.
    """
    import numpy as np
    from scipy.special import rel_entr

    ours = np.asarray(counts, np.float64)
    theirs = np.asarray(reference, np.float64) + 0.5
    return float(rel_entr(ours / ours.sum(), theirs / theirs.sum()).sum())
