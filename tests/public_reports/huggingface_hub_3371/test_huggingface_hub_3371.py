"""huggingface/huggingface_hub #3371: a folder half filled by an interrupted download is the model.

A model in the hub's cache that lacks its weights or its tokenizer is refused in one line; nothing is made
up for what is not there.
"""

import pytest
from hub_cache import HubCache, tiny_bert
from wording import refused

from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained

REVISION = "3371" * 10


@pytest.mark.parametrize("absent", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_partial_download_is_no_model(hub_cache: HubCache, absent: str) -> None:
    snapshot = hub_cache.add_model("org/half", REVISION, tiny_bert)
    (snapshot / absent).unlink()
    with refused("org/half") as caught:
        build_encoder(Pretrained(model="org/half"), 0, "cpu")
    assert len(str(caught.value).splitlines()) == 1
