"""Metadata that only the publisher knows: the project's addresses, and a README whose links lead there.

The environment names them at build time: SYNTHBENCH_REPOSITORY (the repository's page) and SYNTHBENCH_SITE
(the docs site, as for `make site`). Without them the wheel has no addresses.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {"Repository": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"}


class PublisherMetadata(MetadataHookInterface):
    """Adds `urls`, and the README as long description."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what the environment names to the table `project`."""
        repository, site = (
            os.environ.get(f"SYNTHBENCH_{name}", "").rstrip("/") for name in ("REPOSITORY", "SITE")
        )
        metadata["urls"] = {name: repository + page for name, page in PAGES.items() if repository}
        if site or repository:
            metadata["urls"]["Documentation"] = site or f"{repository}/tree/main/docs"
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository)}


def absolute(text: str, repository: str) -> str:
    """Return Markdown whose relative links lead to the repository's files, unchanged without a repository."""
    if not repository:
        return text
    images = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{repository}/raw/main/", text)
    return re.sub(r"(?<=\]\()(?!https?:|#)", f"{repository}/blob/main/", images)
