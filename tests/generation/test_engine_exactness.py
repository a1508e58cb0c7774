"""The engine is exactly DINO: its distributions equal the oracle's, and batching changes no token."""

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from plain_dino import distribution, logits_after, next_distribution
from scipy.stats import chisquare
from small_models import ARCHITECTURES, COUNTERLABELS, ScriptedEndings, jobs, prompts, random_model

from synthbench.base.runtime import Runtime
from synthbench.generation.jobs import Amounts, Job, WritingTask
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer
from synthbench.models import reference

SANDBOX_LM = "sandbox/lm"
LONGEST = 12
UNIT = 2.0**-24
"""The unit roundoff of fp32."""
FORWARD = 512 * UNIT
"""What a forward of these networks may lose of its largest logit: two layers of four products after each
other, each a sum of at most 64 terms, lose a unit roundoff a term, whatever the order of summation."""
_TELLING = 256
"""The first logits, by which the nearest row is found; all of them are compared then."""
Tokens = dict[tuple[str, str, int], tuple[int, ...]]


@dataclass
class Recorded:
    """A sampler that records its inputs and outputs."""

    inner: Any
    logits: list[torch.Tensor] = field(default_factory=list)
    distributions: list[dict[int, float]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def candidates(
        self, logits: torch.Tensor, rows: torch.Tensor, counter_rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        asked = logits[torch.cat([rows[:, None], counter_rows], dim=1)].double()
        tokens, probabilities = self.inner.candidates(logits, rows, counter_rows)
        self.logits += list(asked)
        for ids, chances in zip(tokens.tolist(), probabilities.tolist(), strict=True):
            self.distributions.append({i: p for i, p in zip(ids, chances, strict=True) if p > 0})
        return tokens, probabilities

    @cached_property
    def _beginnings(self) -> torch.Tensor:
        return torch.stack([asked[0, :_TELLING] for asked in self.logits])

    def at(self, logits: torch.Tensor) -> tuple[torch.Tensor, dict[int, float]]:
        """Return the logits and the distribution of the row with nearly these logits, which tell rows apart.

        The logits have the shape (1 + counters, vocabulary), the row's own first.
        """
        row = int((self._beginnings - logits[:_TELLING]).abs().amax(-1).argmin())
        difference = (self.logits[row][0] - logits).abs().max()
        assert difference < 1e-3, "the sampler was never asked for this row and step"
        return self.logits[row], self.distributions[row]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CausalModel]:
    loaded: dict[str, CausalModel] = {}

    def load_once(name: str) -> CausalModel:
        if name not in loaded:
            folder = Path(reference.resolve(name)) if name == SANDBOX_LM else tmp_path_factory.mktemp(name)
            if name != SANDBOX_LM:
                random_model(name, folder)
            loaded[name] = LanguageModel(model=str(folder)).load(Runtime(device="cpu"))
        return loaded[name]

    return load_once


def writer(causal: CausalModel, sampling: Mapping[str, Any] | None = None, **more: Any) -> Writer:
    settings = {"decay": 100.0, "top_k": 5, "top_p": 0.9, "max_new_tokens": LONGEST, **(sampling or {})}
    amounts = {"samples": 2, "tries": 3, **more.pop("amounts", {})}
    return Writer(
        causal,
        WritingTask(COUNTERLABELS, Sampling(**settings), Amounts(**amounts), more.pop("seed", 0)),
        **{"sequences": 21, "endings": ScriptedEndings(LONGEST), **more},
    )


def tokens(writing: Writer, work: Sequence[Job]) -> Tokens:
    return {
        (written.job.key, attempt.label, attempt.number): tuple(attempt.tokens)
        for written in writing.write(work)
        for attempt in written.attempts
    }


def texts(written: Tokens) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return key, label and tokens of every generated text."""
    return sorted({(key, label, row) for (key, label, _), row in written.items()})


def recorded(writing: Writer, work: Sequence[Job]) -> tuple[Tokens, Recorded]:
    sampler = Recorded(writing.sampler)
    writing.sampler = sampler
    return tokens(writing, work), sampler


def largest_difference(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """Return the largest difference of a probability; the same tokens must have one."""
    assert set(one) == set(other)
    return max(abs(one[token] - other[token]) for token in one)


@pytest.mark.parametrize(
    ("model", "sampling"),
    [
        *((model, {}) for model in (*ARCHITECTURES, SANDBOX_LM)),
        ("GPT-2", {"decay": 200.0, "top_p": None}),
        ("GPT-2", {"top_k": None}),
        ("Llama", {"top_k": None, "top_p": None}),
        (SANDBOX_LM, {"top_k": None, "decay": 10.0}),
    ],
)
def test_every_distribution_equals_the_reference_computation(
    load: Callable[[str], CausalModel], model: str, sampling: dict[str, Any]
) -> None:
    """The logits equal those of an fp64 forward pass, and the sampler's distribution equals the formula's."""
    causal = load(model)
    exact = copy.deepcopy(causal.model).double()
    settings: dict[str, Any] = {"decay": 100.0, "top_k": 5, "top_p": 0.9, **sampling}
    written, sampler = recorded(writer(causal, sampling), jobs(3))
    num_checked = 0
    for key, label, row in texts(written):
        ids = {name: causal.tokenizer(text)["input_ids"] for name, text in prompts(key).items()}
        said = [logits_after(exact, ids[name], row[:-1]) for name in (label, *COUNTERLABELS[label])]
        for token, *forwards in zip(row, *said, strict=True):
            logits, ours = sampler.at(forwards[0])
            largest = max(float(each.abs().max()) for each in forwards)
            for each, forward in zip(logits, forwards, strict=False):
                assert float((each - forward).abs().max()) < FORWARD * largest
            expected = distribution(logits, **settings, eos=causal.end_of_text)
            assert token in expected
            # A probability loses a unit roundoff for each unit of its exponent, and debiasing raises a
            # difference of two of them to an exponent, `decay` times.
            assert largest_difference(ours, expected) < (1 + settings["decay"]) * UNIT * largest
            num_checked += 1
    assert num_checked > 100


@pytest.mark.parametrize("model", ["GPT-2", "Llama", SANDBOX_LM])
@pytest.mark.parametrize(("top_k", "top_p"), [(5, 0.9), (None, 0.9), (5, None)])
def test_without_decay_sampling_equals_transformers_own(
    load: Callable[[str], CausalModel], model: str, top_k: int | None, top_p: float | None
) -> None:
    causal = load(model)
    sampling = {"decay": 0.0, "top_k": top_k, "top_p": top_p}
    written, sampler = recorded(writer(causal, sampling), jobs(1))
    befores = {
        (*causal.tokenizer(prompts(key)[label])["input_ids"], *row[:step])
        for key, label, row in texts(written)
        for step in range(len(row))
    }
    # One call for all prompts of one length: calls are slow in transformers, further rows are not.
    for _, alike in groupby(sorted(befores, key=len), key=len):
        ids = torch.tensor([*alike])
        own = causal.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=transformers.GenerationConfig(
                do_sample=True,
                top_k=top_k or 0,
                top_p=top_p or 1.0,
                suppress_tokens=list(causal.end_of_text),
                max_new_tokens=1,
                return_dict_in_generate=True,
                output_scores=True,
                output_logits=True,
                pad_token_id=0,
            ),
        )
        for said, scores in zip(own.logits[0], own.scores[0], strict=True):
            logits, ours = sampler.at(said)
            chances = scores.softmax(-1).tolist()
            expected = {token: chance for token, chance in enumerate(chances) if chance > 0}
            largest = float(logits[0].abs().max())
            apart = float((said - logits[0]).abs().max())
            assert apart < 2 * FORWARD * largest, "both forwards round"
            # Logits that are `apart` change a probability p by 2 * p * (1 - p) * apart at most.
            assert largest_difference(ours, expected) < apart / 2 + UNIT * largest


@pytest.mark.parametrize("label", COUNTERLABELS)
def test_tokens_are_sampled_with_their_probabilities(load: Callable[[str], CausalModel], label: str) -> None:
    causal = load("GPT-2")
    text = prompts("A man plays.")
    work = [Job(key=str(number), prompts=text, unwanted=frozenset()) for number in range(300)]
    sampling = {"max_new_tokens": 1}
    written = tokens(writer(causal, sampling, sequences=96, amounts={"samples": 3, "tries": 3}), work)
    drawn = Counter(row[0] for (_, of, _), row in written.items() if of == label)
    ids = {name: causal.tokenizer(prompt)["input_ids"] for name, prompt in text.items()}
    counters = [ids[other] for other in COUNTERLABELS[label]]
    expected = next_distribution(causal.model, ids[label], counters, [], 100.0, 5, 0.9, causal.end_of_text)
    total = drawn.total()
    assert set(drawn) <= set(expected)
    assert total >= 300
    assert (
        chisquare([drawn[token] for token in expected], [total * p for p in expected.values()]).pvalue > 1e-3
    )


@pytest.fixture(scope="module")
def usual(load: Callable[[str], CausalModel]) -> Callable[[str], Tokens]:
    """Return a model's tokens for eight jobs in order, in batches of seven rows."""
    return cache(lambda model: tokens(writer(load(model)), jobs(8)))


def of_jobs(number: int, written: Tokens) -> Tokens:
    """Return the tokens of the first `number` jobs."""
    keys = {job.key for job in jobs(number)}
    return {at: row for at, row in written.items() if at[0] in keys}


@pytest.mark.parametrize("model", [*ARCHITECTURES, SANDBOX_LM])
class TestTokensDoNotDependOn:
    def test_texts_do_not_depend_on_the_batch_size(
        self, load: Callable[[str], CausalModel], usual: Callable[[str], Tokens], model: str
    ) -> None:
        one, sixty_four = (tokens(writer(load(model), sequences=3 * rows), jobs(3)) for rows in (1, 64))
        assert one == of_jobs(3, usual(model)) == sixty_four
        assert len(set(one.values())) > len(one) / 2

    def test_texts_do_not_depend_on_the_order_of_jobs(
        self, load: Callable[[str], CausalModel], usual: Callable[[str], Tokens], model: str
    ) -> None:
        assert tokens(writer(load(model)), jobs(8)[::-1]) == usual(model)

    def test_texts_do_not_depend_on_other_jobs(
        self, load: Callable[[str], CausalModel], usual: Callable[[str], Tokens], model: str
    ) -> None:
        work = jobs(8)[1::3]
        everything, some = usual(model), tokens(writer(load(model)), work)
        assert some == {at: row for at, row in everything.items() if at in some}
        assert {key for key, _, _ in some} == {job.key for job in work}

    def test_texts_do_not_depend_on_the_number_requested(
        self, load: Callable[[str], CausalModel], model: str
    ) -> None:
        few, many = (
            tokens(writer(load(model), amounts=amounts), jobs(3))
            for amounts in ({"samples": 1, "tries": 2}, {"samples": 3, "tries": 4})
        )
        assert few == {at: row for at, row in many.items() if at in few}
        assert len(few) < len(many)


def test_another_seed_gives_other_tokens(load: Callable[[str], CausalModel]) -> None:
    first, second = (tokens(writer(load(SANDBOX_LM), seed=seed), jobs(3)) for seed in (0, 1))
    assert set(first) & set(second)
    assert first != second


def test_attempts_for_one_input_differ(load: Callable[[str], CausalModel]) -> None:
    written = tokens(writer(load(SANDBOX_LM), endings=None), jobs(1))
    assert len(set(written.values())) > 1
