"""Draw the next token of each row of a batch, as OpenAI's API describes its sampling parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError
from synthbench.generation.sampling import draw

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_NAMES = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "max_tokens",
    "max_completion_tokens",
)


@dataclass(frozen=True)
class Parameters:
    """Sampling parameters with the API's defaults; `max_tokens` None: the request names none."""

    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    max_tokens: int | None = None

    @classmethod
    def of(cls, sampling: Mapping[str, float | int]) -> "Parameters":
        """Read a request's sampling parameters; raises UserError if one is not supported."""
        unknown = sorted(sampling.keys() - set(_NAMES))
        if unknown:
            raise UserError(
                f"a local model has no sampling parameter '{unknown[0]}'; there are {', '.join(_NAMES)}"
            )
        given = dict(sampling)
        longest = given.pop("max_completion_tokens", given.pop("max_tokens", None))
        return cls(**given, max_tokens=None if longest is None else int(longest))


class SamplingColumns:
    """The parameters of a batch's rows as columns of the shape (rows, 1)."""

    def __init__(self, parameters: Sequence[Parameters], device: "torch.device") -> None:
        import torch

        def column(name: str, dtype: torch.dtype = torch.float32) -> "Tensor":
            return torch.tensor([[getattr(each, name)] for each in parameters], dtype=dtype, device=device)

        self.temperature = column("temperature")
        self.presence_penalty = column("presence_penalty")
        self.frequency_penalty = column("frequency_penalty")
        top_p = column("top_p", torch.float64)
        # Rounding must not cut tokens of a row with top_p 1, even beside rows with a smaller one.
        self.top_p = top_p.masked_fill(top_p >= 1, torch.inf)
        self.has_nucleus = any(each.top_p < 1 for each in parameters)
        self.has_penalties = any(each.presence_penalty or each.frequency_penalty for each in parameters)


def next_distribution(logits: "Tensor", counts: "Tensor | None", rows: "SamplingColumns") -> "Tensor":
    """Return the probabilities (fp64, shape (rows, vocabulary)) of the tokens that may come next.

    `logits` are fp32. `counts`, of the same shape, hold each token's count in the answer so far (None: no row
    has penalties): a token's logit loses its count times the frequency penalty, and the presence penalty if
    the count is positive. Then come temperature and top-p: the fewest most probable tokens that hold at least
    `top_p`, lower ids first among equals. A row's result does not depend on other rows.
    """
    import torch

    if counts is not None:
        logits = logits - counts * rows.frequency_penalty - (counts > 0) * rows.presence_penalty
    is_greedy = rows.temperature == 0
    weights = torch.softmax(logits / rows.temperature.masked_fill(is_greedy, 1.0), dim=-1).double()
    if rows.has_nucleus:
        heaviest, tokens = weights.sort(dim=-1, descending=True, stable=True)
        before = heaviest.cumsum(dim=-1) - heaviest
        heaviest = heaviest.masked_fill((before >= rows.top_p) & (before > 0), 0.0)
        weights = torch.zeros_like(weights).scatter_(1, tokens, heaviest)
    best = torch.zeros_like(weights).scatter_(1, logits.argmax(dim=-1, keepdim=True), 1.0)
    weights = torch.where(is_greedy, best, weights)
    return weights / weights.sum(dim=-1, keepdim=True)


@dataclass(frozen=True)
class AnswerRow:
    """One answer of a batch: its parameters, and one uniform for each token that it may have."""

    parameters: Parameters
    uniforms: Sequence[float]


class TokenSampler:
    """Draws the next token of each row; transformers' `generate` calls it at every step.

    `prompt_length` is the prompts' length in tokens, including padding.
    """

    def __init__(self, rows: Sequence[AnswerRow], prompt_length: int, device: "torch.device") -> None:
        import torch

        self._columns = SamplingColumns([row.parameters for row in rows], device)
        self._prompt_length = prompt_length
        self._room = torch.tensor([len(row.uniforms) for row in rows], device=device)
        most = max(len(row.uniforms) for row in rows)
        padded = [[*row.uniforms, *[0.0] * (most - len(row.uniforms))] for row in rows]
        self._uniforms = torch.tensor(padded, dtype=torch.float64, device=device)
        self._counts: Tensor | None = None

    def __call__(self, tokens: "Tensor", logits: "Tensor") -> "Tensor":
        """Return logits that allow only the drawn tokens; raises FloatingPointError if some are NaN."""
        import torch

        step = tokens.shape[1] - self._prompt_length
        probabilities = next_distribution(logits, self._counted(tokens, step, logits), self._columns)
        if bool(probabilities.isnan().any()):
            raise FloatingPointError
        drawn = draw(probabilities, self._uniforms[:, step])
        return torch.full_like(logits, -torch.inf).scatter_(1, drawn.unsqueeze(1), 0.0)

    def are_full(self, tokens: "Tensor") -> "Tensor":
        """Tell which rows have reached their maximum length."""
        return tokens.shape[1] - self._prompt_length >= self._room

    def _counted(self, tokens: "Tensor", step: int, logits: "Tensor") -> "Tensor | None":
        import torch

        if not self._columns.has_penalties:
            return None
        if self._counts is None:
            self._counts = torch.zeros_like(logits)
        if step:
            last = tokens[:, -1:]
            self._counts.scatter_add_(1, last, torch.ones_like(last, dtype=logits.dtype))
        return self._counts
