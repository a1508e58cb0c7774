"""How a local chat model's next token is drawn, on distributions worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from wording import refused

from synthbench.generation.sampling import draw
from synthbench.llm.token_sampling import (
    AnswerRow,
    Parameters,
    SamplingColumns,
    TokenSampler,
    next_distribution,
)

CPU = torch.device("cpu")
LOGITS = torch.tensor([[0.5, 0.3, 0.2]]).log()
LN2 = math.log(2)


def distribution(parameters: Parameters, counts: list[float] | None = None) -> list[float]:
    counted = None if counts is None else torch.tensor([counts])
    return next_distribution(LOGITS, counted, SamplingColumns([parameters], CPU))[0].tolist()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (Parameters(), [0.5, 0.3, 0.2]),
        (Parameters(temperature=0.5), [25 / 38, 9 / 38, 4 / 38]),
        (Parameters(temperature=0), [1, 0, 0]),
        (Parameters(top_p=0.45), [1, 0, 0]),
        (Parameters(top_p=0), [1, 0, 0]),
        (Parameters(top_p=0.7), [5 / 8, 3 / 8, 0]),
        (Parameters(top_p=0.9), [0.5, 0.3, 0.2]),
        (Parameters(temperature=0.5, top_p=0.7), [25 / 34, 9 / 34, 0]),
    ],
)
def test_temperature_comes_before_the_nucleus(parameters: Parameters, expected: list[float]) -> None:
    assert distribution(parameters) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (Parameters(frequency_penalty=LN2), [0.125 / 0.525, 0.3 / 0.525, 0.1 / 0.525]),
        (Parameters(presence_penalty=LN2), [0.25 / 0.65, 0.3 / 0.65, 0.1 / 0.65]),
        (
            Parameters(presence_penalty=LN2, frequency_penalty=LN2),
            [1 / 16 / 0.4125, 0.3 / 0.4125, 0.05 / 0.4125],
        ),
        (Parameters(frequency_penalty=LN2, temperature=0), [0, 1, 0]),
        (Parameters(frequency_penalty=LN2, top_p=0.5), [0, 1, 0]),
    ],
)
def test_what_was_written_twice_and_once_is_penalised(parameters: Parameters, expected: list[float]) -> None:
    assert distribution(parameters, [2, 0, 1]) == pytest.approx(expected, rel=1e-6)


def test_of_equally_probable_tokens_the_first_are_kept() -> None:
    kept = next_distribution(torch.zeros(1, 8), None, SamplingColumns([Parameters(top_p=0.3)], CPU))
    assert kept.tolist() == [[1 / 3] * 3 + [0.0] * 5]


parameters = st.builds(
    Parameters,
    temperature=st.sampled_from([0.0, 0.7, 1.0, 1.3]),
    top_p=st.sampled_from([0.2, 0.9, 1.0]),
    presence_penalty=st.sampled_from([0.0, 0.3]),
    frequency_penalty=st.sampled_from([0.0, -0.5]),
)


@settings(max_examples=30)
@given(st.lists(parameters, min_size=1, max_size=5), st.integers(0, 2**31))
def test_a_row_is_the_same_alone_and_beside_others(rows: list[Parameters], seed: int) -> None:
    torch.manual_seed(seed)
    logits, counts = 3 * torch.randn(len(rows), 50), torch.randint(0, 3, (len(rows), 50)).float()
    together = next_distribution(logits, counts, SamplingColumns(rows, CPU))
    for place, row in enumerate(rows):
        here = slice(place, place + 1)
        alone = next_distribution(logits[here], counts[here], SamplingColumns([row], CPU))
        assert torch.equal(alone[0] > 0, together[place] > 0)
        assert torch.allclose(alone[0], together[place], atol=1e-12)


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.49, 1), (0.5, 3), (1 - 2**-53, 3)])
def test_a_uniform_picks_the_token_at_which_the_sum_passes_it(uniform: float, token: int) -> None:
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]], dtype=torch.float64)
    assert draw(probabilities, torch.tensor([uniform], dtype=torch.float64)).tolist() == [token]


def test_the_tokens_of_the_answer_are_counted_and_those_of_the_prompt_are_not() -> None:
    row = AnswerRow(Parameters(temperature=0, frequency_penalty=LN2), [0.0, 0.0])
    sampler = TokenSampler([row], 2, CPU)
    tokens = torch.tensor([[0, 0]])
    drawn = []
    for _ in range(2):
        token = sampler(tokens, LOGITS).argmax(dim=-1)
        assert not sampler.are_full(tokens).any()
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        drawn += token.tolist()
    assert drawn == [0, 1]
    assert sampler.are_full(tokens).all()


def test_what_is_no_number_is_not_picked_from() -> None:
    with pytest.raises(FloatingPointError):
        TokenSampler([AnswerRow(Parameters(), [0.5])], 1, CPU)(torch.tensor([[0]]), LOGITS * torch.nan)


def test_parameters_have_the_names_and_defaults_of_the_api() -> None:
    assert Parameters.of({}) == Parameters(1.0, 1.0, 0.0, 0.0, None)
    assert Parameters.of({"temperature": 0.5, "max_tokens": 9}) == Parameters(temperature=0.5, max_tokens=9)
    assert Parameters.of({"max_completion_tokens": 7, "max_tokens": 9}).max_tokens == 7
    with refused("'logit_bias'", "top_p"):
        Parameters.of({"logit_bias": 1})
