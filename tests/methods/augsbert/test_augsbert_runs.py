"""Every sampler through the real command, in the sandbox."""

import re

import pytest
from small_experiment import Project, artifact

from synthbench.api import SyntheticDataset

EXPERIMENT = """\
experiment: small
sources:
  gold: {sandbox: pairs, split: train, size: 120, domains: in-domain}
  dev: {sandbox: pairs, split: dev, size: 40, domains: in-domain}
  test: {sandbox: pairs, split: test, size: 40, domains: in-domain}
seeds: [0]
defaults:
  data:
    silver: &silver
      method: augsbert
      sources: {gold: gold, dev: dev}
      sampler: {name: random, size: 1500}
      cross_encoder: {base: {model: sandbox/cross-encoder}, max_steps: 40, learning_rate: 1e-3}
  train: {trainer: bi-encoder, base: {model: sandbox/encoder}, max_steps: 2}
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
baseline: random
variants:
  kde:
    data.silver.sampler: {name: kde, size: 1500}
  semantic:
    data.silver.sampler: &semantic
      name: semantic-search
      k: 3
      bi_encoder: {base: {model: sandbox/encoder}, max_steps: 2, evaluations: 1}
  both:
    data.silver.sampler: {<<: *semantic, name: bm25+semantic-search}
  best-start:
    data.silver.cross_encoder.seed_optimization: {seeds: 2, at: 0.5}
  substitution:
    data.silver:
      method: contextual-substitution
      sources: {gold: gold}
      language_model: {model: sandbox/encoder}
runtime: {device: cpu, threads: 1}
"""

pytestmark = pytest.mark.experiments


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The experiment in a folder of its own."""
    folder = tmp_path_factory.mktemp("samplers")
    made = Project(folder / "experiment", folder / "home")
    made.folder.mkdir(parents=True)
    made.file.write_text(EXPERIMENT, encoding="utf-8")
    return made


def silver(project: Project, row: str, method: str = "augsbert") -> SyntheticDataset:
    return SyntheticDataset.read(artifact(project, f"generate {method} for {row} seed 0") / "dataset")


def test_shared_dependencies_run_once_and_every_sampler_gives_new_pairs(project: Project) -> None:
    called = project.call("run", "small.yaml")

    assert called.code == 0, called.err
    executed = called.executed
    of_best_start = [stage for stage in executed if "cross_encoder of augsbert for best-start" in stage]
    assert [stage.split()[0] for stage in of_best_start] == ["train", "train", "select", "train"]
    others = [stage for stage in executed if "best-start" not in stage]
    assert sum("train cross_encoder" in stage for stage in others) == 1
    assert sum("train sampler.bi_encoder" in stage for stage in others) == 1
    assert sum("generate augsbert" in stage for stage in others) == 5
    (told,) = re.findall(r"kde: kept ([\d,]+) of 1,500 random pairs", called.err)
    kept = silver(project, "kde")
    assert len(kept) == int(told.replace(",", ""))
    assert set(kept.text_rows()) <= set(silver(project, "random").text_rows())
    assert kept.manifest.dropped == {"kde: too many pairs of such a score": 1500 - len(kept)}
    divergences = [kept.manifest.measured[f"kde: KL divergence {when}, nats"] for when in ("before", "after")]
    assert divergences[1] < divergences[0]
    assert "semantic search: 3 neighbours of" in called.err
    assert silver(project, "semantic").manifest.measured == {"semantic search: recall": 1.0}
    by_vectors, both = silver(project, "semantic"), silver(project, "both")
    assert set(by_vectors.text_rows()) < set(both.text_rows())
    scores = {row: pair.score for row, pair in zip(both.text_rows(), both, strict=True)}
    # Pairs that BM25 also finds keep its label, from another batch: the last bits differ.
    same = [scores[row] for row in by_vectors.text_rows()]
    assert same == pytest.approx([pair.score for pair in by_vectors], abs=1e-5)
    replaced = silver(project, "substitution", "contextual-substitution")
    assert len(replaced) == 120
    assert not set(replaced.text_rows()) & set(by_vectors.text_rows())
