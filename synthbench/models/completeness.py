"""Refusal of checkpoints that lack weights of the network; transformers would draw them at random."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LOADING = RLock()
_IN_A_LAYER = linear_pattern(r"\.\d+\.")
_NEW = linear_pattern(r"pool|head|classifier|score|cls\.")
"""Matches names of poolers and heads. The base model may hold some, too."""


@contextmanager
def weights_complete(name: str) -> Iterator[None]:
    """Within the block, raise UserError if transformers loads a model without all weights of its network.

    Heads and poolers may be missing: a seed governs new ones. The block changes
    `PreTrainedModel.from_pretrained` in the whole process; other blocks wait.
    """
    from transformers import PreTrainedModel

    original = PreTrainedModel.__dict__["from_pretrained"]

    def from_pretrained(cls: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as transformers has it
        is_report_wanted = named.pop("output_loading_info", False)
        loaded, report = original.__func__(cls, *arguments, output_loading_info=True, **named)
        _check(name, loaded, report["missing_keys"])
        return (loaded, report) if is_report_wanted else loaded

    with _LOADING:
        # sentence-transformers does not return the loading report, and loads its models deep inside.
        PreTrainedModel.from_pretrained = classmethod(from_pretrained)  # type: ignore[assignment]
        try:
            yield
        finally:
            PreTrainedModel.from_pretrained = original  # type: ignore[method-assign]


def _check(name: str, model: "PreTrainedModel", missing: Collection[str]) -> None:
    lacking = sorted(key for key in missing if _is_of_network(model, key))
    if lacking:
        more = f" and {len(lacking) - 1:,} more weights" if len(lacking) > 1 else ""
        raise UserError(
            f"{name}: its weights lack '{lacking[0]}'{more}, which would be random numbers; take a whole copy"
            " of the checkpoint"
        )


def _is_of_network(model: "PreTrainedModel", key: str) -> bool:
    """Return whether a weight belongs to the base model, but to none of its heads and poolers.

    Buffers outside the numbered layers do not count: they are not drawn at random.
    """
    prefix = f"{model.base_model_prefix}."
    if model.base_model is not model and not key.startswith(prefix):
        return False
    name = key.removeprefix(prefix)
    if _IN_A_LAYER.search(f".{name}"):
        return True
    return not _NEW.search(name) and key in dict(model.named_parameters(remove_duplicate=False))
