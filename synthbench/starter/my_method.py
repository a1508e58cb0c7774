"""A method of your own: synthbench calls the function named in my_method.yaml."""

from collections.abc import Iterator

from synthbench.api import ScoredPair, method


@method
def words_left_out(sentences: list[str], every: int = 4) -> Iterator[ScoredPair]:
    """Pair each sentence with itself without every n-th word; the score is the share of words that stay."""
    for sentence in sentences:
        words = sentence.split()
        kept = [word for number, word in enumerate(words, start=1) if number % every]
        if len(kept) < len(words):
            yield ScoredPair(sentence1=sentence, sentence2=" ".join(kept), score=len(kept) / len(words))
