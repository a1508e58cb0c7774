"""What goes wrong where a checkpoint is loaded, in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

from synthbench.errors import UserError, in_one_line

PICKLED = "pytorch_model*.bin"


@contextmanager
def loading_errors(model: str, folder: str, what: str = "") -> Iterator[None]:
    """Turn what a damaged or unsafe checkpoint in `folder` raises into a UserError on `model`."""
    from safetensors import SafetensorError

    try:
        yield
    except (UnpicklingError, EOFError, TypeError) as error:
        if isinstance(error, TypeError) and not any(Path(folder).rglob(PICKLED)):
            raise
        raise UserError(
            f"{model}: its pickled weights (pytorch_model.bin) are damaged, or hold more than weights; code"
            " in them is never run. A copy as model.safetensors can be loaded (`save_pretrained` writes one)"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{model}: {what}can't be loaded: {in_one_line(error)}") from error
