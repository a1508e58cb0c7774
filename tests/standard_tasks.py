"""Standard tasks in their published sizes, with texts and gold of our own, and a model to score on them."""

import random
from pathlib import Path

from hub_cache import SENTENCES, HubCache, tiny_bert

from synthbench.models import artifact
from synthbench.models.pretrained import Pretrained
from synthbench.sources.tasks import TASKS

STS13_SIZES = {"FNWN": 189, "headlines": 750, "OnWN": 561}


def write_sts13(root: Path) -> Path:
    """Write STS13's files into a data folder, and return it."""
    folder, draw = root / "STS" / "STS13-en-test", random.Random(0)
    folder.mkdir(parents=True)
    for part, size in STS13_SIZES.items():
        pairs = ("\t".join(draw.sample(SENTENCES, 2)) for _ in range(size))
        (folder / f"STS.input.{part}.txt").write_text("\n".join(pairs) + "\n", encoding="utf-8")
        gold = "".join(f"{draw.randrange(51) / 10}\n" for _ in range(size))
        (folder / f"STS.gs.{part}.txt").write_text(gold, encoding="utf-8")
    return root


def add_stsb(cache: HubCache) -> None:
    """Add STSb's test set to the cache of the hub."""
    task, draw = TASKS["STSb"], random.Random(0)
    rows = [
        {"sentence1": first, "sentence2": second, "score": draw.randrange(51) / 10}
        for first, second in (draw.sample(SENTENCES, 2) for _ in range(task.size("test")))
    ]
    cache.add_dataset(task.hub_id, task.hub_revision, {task.hub_files[0].format("test"): rows})


def write_untrained(bert: Path, folder: Path) -> Path:
    """Write a model artifact, random static embeddings, and return its folder."""
    tiny_bert(bert)
    artifact.save_untrained(Pretrained(model=str(bert), static=True, static_dimension=8), folder)
    return folder
