"""The graphs of real test sets: which items hold which sentences, for `shared_sentences.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.item_texts import texts_by_item
from synthbench.data.likeness import bare
from synthbench.data.records import Ranking, Record, RecordKind
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource, TaskSource, WorldSource
from synthbench.statistics.shared_sentences import SharedSentences

Array = NDArray[np.float64]
PASSAGES = 4_000
"""The size of the sandbox's retrieval set: a question for each eight passages."""
AVERAGED = ("STS12", "STS13", "STSb", "SICK-R")
AVERAGE = "average of four"


@dataclass(frozen=True, eq=False)
class Graph:
    """The items of a column of a table: of one test set, or of several in a row, whose scores are averaged.

    `sentences` are those of each item, `sets` and `subsets` the numbers of its test set and of its subset.
    """

    sentences: tuple[frozenset[str], ...]
    sets: NDArray[np.int64]
    subsets: NDArray[np.int64]

    @classmethod
    def union(cls, graphs: "Sequence[Graph]") -> "Graph":
        """Return the column that averages several test sets."""
        numbers = [np.full(len(each.sentences), number) for number, each in enumerate(graphs)]
        starts = np.cumsum([0, *(each.subsets.max() + 1 for each in graphs)])
        subsets = [each.subsets + start for each, start in zip(graphs, starts, strict=False)]
        texts = tuple(held for each in graphs for held in each.sentences)
        return cls(texts, np.concatenate(numbers), np.concatenate(subsets))

    @cached_property
    def weights(self) -> Array:
        """The weight of each item in the score: one over its set's items and over the number of sets."""
        sizes = np.bincount(self.sets)
        return np.asarray(1 / (sizes[self.sets] * len(sizes)))

    @cached_property
    def shared(self) -> SharedSentences:
        """The product's form of the graph."""
        numbers: dict[str, int] = {}
        entries = [
            (item, numbers.setdefault(text, len(numbers)))
            for item, texts in enumerate(self.sentences)
            for text in sorted(texts)
        ]
        items, sentences = np.array(entries, dtype=np.int64).T
        return SharedSentences(items, sentences, len(self.sentences))

    @cached_property
    def loadings(self) -> csr_array:
        """How far each sentence's effect moves an item, so that all together have the variance 1."""
        number = np.bincount(self.shared.items)[self.shared.items]
        shape = (self.shared.num_items, int(self.shared.sentences.max()) + 1)
        return csr_array((1 / np.sqrt(number), (self.shared.items, self.shared.sentences)), shape=shape)

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """The number of each item's connected component."""
        graph = block_array([[None, self.loadings], [self.loadings.T, None]])
        return np.asarray(connected_components(graph, directed=False)[1][: self.shared.num_items], np.int64)

    def centred(self, values: Array, groups: NDArray[np.int64]) -> Array:
        """Return lines of influences as the product weights them, less the mean of their group."""
        sizes = np.bincount(self.sets)
        scaled = values / (len(sizes) * np.sqrt(sizes * (sizes - 1.0)))[self.sets]
        members = csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))))
        means = (members @ scaled.T).T / np.bincount(groups)
        return np.asarray(scaled - means[:, groups])

    @cached_property
    def neighbours(self) -> csr_array:
        """A matrix of ones where two items share a sentence."""
        found = self.loadings @ self.loadings.T
        found.data[:] = 1.0
        return found

    def effects(self, source: str, number: int, random: np.random.Generator) -> Array:
        """Return `number` lines of normal item effects of variance 1 from one of the `EFFECTS`."""
        if source == "sentences":
            of_sentences = random.normal(size=(self.loadings.shape[1], number))
            return np.asarray((self.loadings @ of_sentences).T)
        if source == "components":
            return random.normal(size=(number, self.components.max() + 1))[:, self.components]
        return random.normal(size=(number, self.shared.num_items))

    def variance(self, sentences: float, components: float) -> float:
        """Return the true variance of the score under such effects."""
        alone = (self.weights**2).sum()
        of_sentences = ((self.weights @ self.loadings) ** 2).sum()
        of_components = (np.bincount(self.components, self.weights) ** 2).sum()
        whole = (1 - sentences - components) * alone
        return float(whole + sentences * of_sentences + components * of_components)


def graphs(roots: Roots) -> dict[str, Graph]:
    """Return the graph of each column."""
    sources: dict[str, TaskSource | FileSource | WorldSource] = {
        name: TaskSource.model_validate({"task": name, "split": "test"}) for name in AVERAGED
    }
    pairs = {
        "file": "data:pairs/quora-dev.tsv",
        "kind": RecordKind.SCORED_PAIR,
        "columns": {"score": "label"},
    }
    sources["Quora"] = FileSource.model_validate(pairs)
    for name, file in (("CQA-A dev", "semeval-cqa-a-2016-dev"), ("WikiQA dev", "wikiqa-dev")):
        ranked = {"file": f"data:reranking/{file}.jsonl", "format": "reranking", "split": "test"}
        sources[name] = FileSource.model_validate(ranked)
    passages = {"sandbox": "retrieval", "split": "test", "size": PASSAGES}
    sources["sandbox retrieval"] = WorldSource.model_validate(passages)
    found = {name: graph_of(list(source.load(roots))) for name, source in sources.items()}
    return {**found, AVERAGE: Graph.union([found[name] for name in AVERAGED])}


def graph_of(records: Sequence[Record]) -> Graph:
    """Return the graph of a test set's records; rankings without a relevant candidate do not count."""
    counted = [each for each in records if not isinstance(each, Ranking) or any(each.grades)]
    texts = texts_by_item(SyntheticDataset.create(counted[0].kind, counted))
    subset_of = {each.id: each.subset for each in counted}
    subsets = np.unique([subset_of[item] for item in texts], return_inverse=True)[1]
    sentences = tuple(frozenset(map(bare, held)) for held in texts.values())
    return Graph(sentences, np.zeros(len(texts), np.int64), subsets)


def figures(graph: Graph) -> dict[str, float]:
    """Return the figures of a graph."""
    items_of_sentence = np.bincount(graph.shared.sentences)
    most = np.zeros(len(graph.sentences), np.int64)
    np.maximum.at(most, graph.shared.items, items_of_sentence[graph.shared.sentences])
    sizes = np.bincount(graph.components)
    return {
        "items": len(graph.sentences),
        "sentences": len(items_of_sentence),
        "share_that_share": float((most > 1).mean()),
        "components": len(sizes),
        "largest_component": int(sizes.max()),
        "most_of_a_sentence": int(items_of_sentence.max()),
    }
