"""huggingface/sentence-transformers #4060: texts beyond the longest input were cut, and nobody was told.

Here cut texts are counted, and those that nothing tells apart afterwards.
"""

from pathlib import Path

from hub_cache import SENTENCES, tiny_bert
from transformers import AutoTokenizer

from synthbench.data.truncation import count_truncated


def test_truncated_texts_are_counted(tmp_path: Path) -> None:
    tiny_bert(tmp_path / "bert")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "bert")
    long = " ".join(SENTENCES[:8])
    texts = [(text,) for text in (SENTENCES[0], long, f"{long} but this", f"{long} or that")]
    found = count_truncated(texts, tokenizer, 32)
    assert (found.texts, found.truncated, found.equal_after) == (4, 3, 3)
    assert count_truncated(texts, tokenizer, 512).truncated == 0
