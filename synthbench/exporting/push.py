"""Upload an exported folder to a repository on the Hugging Face hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.redaction import masked
from synthbench.base.terminal import bars_of_libraries

KEPT = "; the folder is kept, and nothing needs to be computed again"


@dataclass(frozen=True)
class Repository:
    """A repository on the hub. A new one is private unless `is_public`; an existing one stays as it is."""

    name: str
    kind: Literal["model", "dataset"]
    is_public: bool = False

    def check_name(self) -> None:
        """Raise UserError for an invalid name; works offline."""
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils._validators import validate_repo_id

        try:
            validate_repo_id(self.name)
        except HFValidationError as error:
            raise UserError(f"--push {self.name}: {in_one_line(error)}") from None
        if self.name.count("/") != 1:
            raise UserError(f"--push {self.name}: write the owner, too: OWNER/NAME")

    def check(self) -> None:
        """Raise UserError for an invalid name or a missing token; works offline."""
        from huggingface_hub import get_token

        self.check_name()
        if get_token() is None:
            raise UserError("--push: no token of the hub; run `hf auth login`, or set $HF_TOKEN")

    def visibility(self) -> str:
        """Return whether the repository exists and is public: "new, private", "exists, public" ...

        Raises UserError if the hub refuses or can't be reached.
        """
        from huggingface_hub import HfApi
        from huggingface_hub.errors import RepositoryNotFoundError

        with _hub_errors(self):
            try:
                found = HfApi().repo_info(self.name, repo_type=self.kind)
            except RepositoryNotFoundError:
                return f"new, {'public' if self.is_public else 'private'}"
        return f"exists, {'private' if found.private else 'public'}"

    def upload(self, folder: Path) -> tuple[str, str]:
        """Create the repository if it is missing, and upload the folder; return (address, new revision).

        Raises UserError if the hub refuses or can't be reached.
        """
        from huggingface_hub import HfApi

        with _hub_errors(self), bars_of_libraries():
            api = HfApi()
            address = api.create_repo(
                self.name, repo_type=self.kind, private=not self.is_public, exist_ok=True
            )
            commit = api.upload_folder(
                repo_id=self.name,
                folder_path=folder,
                repo_type=self.kind,
                commit_message="Export by synthbench",
            )
        return str(address), str(commit.oid)


def listed(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield each file of a folder and its subfolders: (relative path, size in bytes), sorted."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield file.relative_to(folder).as_posix(), file.stat().st_size


@contextmanager
def _hub_errors(repository: Repository) -> Iterator[None]:
    """Turn the hub's refusals and connection errors into UserErrors of one line, without the token."""
    from huggingface_hub import errors

    # The transport's error class depends on the version of the hub's HTTP library; this finds it in any.
    transport_error: type[Exception] = errors.HfHubHTTPError.__bases__[0]
    try:
        yield
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        raise UserError(f"--push {repository.name}: {_refusal(status, error)}{KEPT}") from error
    except (OSError, transport_error) as error:
        reason = masked(in_one_line(error))
        raise UserError(f"--push {repository.name}: the hub can't be reached: {reason}{KEPT}") from error
    except ValueError as error:
        raise UserError(f"--push {repository.name}: {masked(in_one_line(error))}{KEPT}") from error


def _refusal(status: int, error: Exception) -> str:
    if status in (401, 403):
        return (
            f"the hub refuses ({status}): the token is wrong, or may not write there; `hf auth whoami` says"
            " whose it is"
        )
    return f"the hub refuses ({status}): {masked(in_one_line(error))}"
