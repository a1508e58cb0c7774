"""A method of your own that asks an LLM: synthbench calls the function named in my_llm_method.yaml."""

from collections.abc import Iterator

from synthbench.api import LLM, ScoredPair, method, sentence_in


@method
def paraphrased(sentences: list[str], llm: LLM, temperature: float = 1.0) -> Iterator[ScoredPair]:
    """Pair each sentence with a paraphrase that the LLM writes."""
    prompts = [f'Paraphrase this sentence in other words: "{sentence}"' for sentence in sentences]
    answers = llm.ask(prompts, temperature=temperature)
    for sentence, answer in zip(sentences, answers, strict=True):
        if answer:  # None: refused, cut off, empty; synthbench counts it
            yield ScoredPair(sentence1=sentence, sentence2=sentence_in(answer), score=1.0)
