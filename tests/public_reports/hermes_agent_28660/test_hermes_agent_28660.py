"""NousResearch/hermes-agent #28660: the key in OPENAI_API_KEY went to any host that a settings file named.

Here it goes to its own host and to this machine; any other host is asked for once.
"""

import pytest
from wording import refused

from synthbench.config.key_hosts import allow_hosts, check_key_hosts
from synthbench.config.llm import EndpointLLM, NamedLLM


@pytest.mark.parametrize("host", ["api.deepseek.com", "api.openai.com.evil.example"])
def test_a_key_is_not_sent_to_another_service(host: str) -> None:
    settings = EndpointLLM(name="x", base_url=f"https://{host}/v1", model="m", key_variable="OPENAI_API_KEY")
    asked = [NamedLLM("llm", settings)]
    with refused("llm.base_url", "OPENAI_API_KEY", f"--allow-host {host}"):
        check_key_hosts(asked)
    allow_hosts([host], asked)
    check_key_hosts(asked)
