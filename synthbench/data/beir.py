"""Generated questions as a retrieval task in BEIR's layout, which a source with `corpus:` reads."""

from itertools import chain, count
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import replacing, write_json_lines
from synthbench.data.manifest import write_manifest
from synthbench.data.records import RecordKind

KINDS = (RecordKind.PAIR, RecordKind.TRIPLET)
BEIR = "beir"
HEADER = "query-id\tcorpus-id\tscore"


def write_retrieval_task(
    questions: SyntheticDataset, passages: SyntheticDataset, target: Path, *, force: bool = False
) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv into a new folder, with the questions' manifest.

    `passages` are sentences; or the questions again, and then the corpus consists of their positives. Every
    passage paired with a question is relevant to it, with grade 1. Questions of split dev go to
    qrels/dev.tsv, all others (even of split train) to qrels/test.tsv.

    Raises UserError if the questions are no pairs or triplets, if the passages are of another kind or lack a
    question's passage, and as `write_folder` does.
    """
    if questions.kind not in KINDS:
        raise UserError(f"{questions.kind} records have no questions; needed: pairs of question and passage")
    if passages.kind not in (RecordKind.SENTENCE, questions.kind):
        raise UserError(f"--passages: {passages.kind} records; needed: sentences, as passages are")
    columns = ("id", "sentence") if passages.kind == RecordKind.SENTENCE else ("source_id", "positive")
    id_of: dict[str, str] = {}
    used: set[str] = set()
    for name, text in zip(*map(passages.column, columns), strict=True):
        if text not in id_of:
            bare = " ".join(name.removeprefix("passage/").split())  # a file's name may hold a tab
            names = chain([bare] if bare else [], (f"{bare}/{number}" for number in count(len(id_of))))
            id_of[text] = next(name for name in names if name not in used)
            used.add(id_of[text])
    numbers: dict[str, int] = {}
    judged: dict[str, dict[tuple[int, str], None]] = {"dev": {}, "test": {}}
    for question, passage, split in zip(*map(questions.column, ("anchor", "positive", "split")), strict=True):
        if passage not in id_of:
            raise UserError(
                f"--passages: lacks the passage of the question '{question[:80]}'; name those that the"
                " questions were made of (documents are read with the default size)"
            )
        number = numbers.setdefault(question, len(numbers) + 1)
        judged["dev" if split == "dev" else "test"][number, id_of[passage]] = None
    with replacing(target, force=force) as folder:
        (folder / "qrels").mkdir(parents=True)
        passages_of = ({"_id": name, "text": text} for text, name in id_of.items())
        write_json_lines(folder / "corpus.jsonl", passages_of)
        asked = ({"_id": str(number), "text": question} for question, number in numbers.items())
        write_json_lines(folder / "queries.jsonl", asked)
        for split, found in judged.items():
            rows = [HEADER, *(f"{number}\t{name}\t1" for number, name in found)]
            if found:
                (folder / "qrels" / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        write_manifest(questions.manifest, folder)
