"""BM25 with each splitter of scripts without spaces: does a question find its paragraph?

    python benchmarks/words.py FILE.json ... [--most 1200]

Files have the format of SQuAD: paragraphs with questions, such as XQuAD's in Chinese and Thai
(github.com/google-deepmind/xquad) and JSQuAD in Japanese (github.com/yahoojapan/JGLUE). Prints the mean
reciprocal rank of a question's paragraph among the first ten of all paragraphs, and the words of a question.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import mean

from synthbench.bm25 import nearest_by_words
from synthbench.words import split_words
from synthbench.words.scripts import Splitter, words_alone

SPLITTERS: Mapping[str, Splitter] = {
    "spaces": lambda text: split_words(text.lower(), None) or [text],
    "pairs": words_alone,
    "icu": lambda text: split_words(text.lower(), "icu") or [text],
}
K = 10


def main() -> None:
    """Print a line for each file and splitter."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=1200, help="questions used, from the first")
    given = parser.parse_args()
    for file in given.files:
        texts: dict[str, int] = {}
        asked: list[tuple[str, int]] = []
        for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                index = texts.setdefault(paragraph["context"], len(texts))
                asked += [(each["question"], index) for each in paragraph["qas"]]
        asked = asked[: given.most]
        print(f"{file.name}: {len(asked)} questions, {len(texts)} paragraphs")
        for name, split in SPLITTERS.items():
            found = nearest_by_words(list(texts), K, [question for question, _ in asked], split).indices
            ranks = [
                1 / (row.index(own) + 1) if own in row else 0.0
                for row, (_, own) in zip(found, asked, strict=True)
            ]
            words = mean(len(split(question)) for question, _ in asked)
            print(f"  {name:6} MRR@10 {100 * mean(ranks):.1f}, {words:.1f} words in a question")


if __name__ == "__main__":
    main()
