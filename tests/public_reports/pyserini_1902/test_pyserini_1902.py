"""castorini/pyserini #1902: corpora and judgements hold ids twice, and nobody says which entry counts.

Here a doubled passage is refused, and so are two grades of one judgement; the same grade again is counted.
"""

from pathlib import Path

import pytest

from synthbench.base.errors import UserError
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots

PASSAGE = '{"_id": "p", "text": "x"}\n'


def test_contradictory_entries_are_refused_with_both_lines(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "y"}\n')
    (tmp_path / "corpus.jsonl").write_text(PASSAGE + PASSAGE.replace('"x"', '"z"'))
    (tmp_path / "qrels/test.tsv").write_text("q\tp\t1\nq\tp\t1\nq\tp\t0\n")
    source = CorpusSource(corpus=str(tmp_path))
    with pytest.raises(UserError) as caught:
        source.load(Roots())
    told = " ".join(caught.value.messages)
    assert "corpus.jsonl:2: duplicate _id 'p', first in line 1" in told
    assert "test.tsv:3: judges query 'q' and passage 'p' 0, line 1 1" in told
