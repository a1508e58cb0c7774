import os
import subprocess
import sys

import pytest

from synthbench.base.processes import OPT_OUTS, disable_telemetry

PROBE = """
from synthbench.base.processes import disable_telemetry
disable_telemetry()
import datasets.config, huggingface_hub.constants
from mlflow.telemetry.utils import is_telemetry_disabled
assert huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY
assert not datasets.config.HF_UPDATE_DOWNLOAD_COUNTS
assert is_telemetry_disabled()
"""


def test_telemetry_is_off_unless_the_user_enables_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OPT_OUTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DO_NOT_TRACK", "false")

    disable_telemetry()

    assert os.environ["DO_NOT_TRACK"] == "false"
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    for name in OPT_OUTS:
        monkeypatch.delenv(name)


def test_the_installed_libraries_send_no_telemetry() -> None:
    kept = {name: value for name, value in os.environ.items() if name not in {*OPT_OUTS, "CI"}}

    subprocess.run([sys.executable, "-c", PROBE], env=kept, check=True)
