"""Credentials of an S3 store: found as the aws command line finds them, and renewed while a run waits."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_s3 import Faults, faulty_s3
from s3 import BUCKET, make_bucket, s3_server
from wording import refused

from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.patience import Patience, PatientObjects

URL = f"s3://{BUCKET}/path"


@pytest.fixture(scope="module")
def server() -> Iterator[Faults]:
    """A server with a bucket, behind a proxy."""
    with s3_server() as address, faulty_s3(address) as faults:
        make_bucket(address)
        yield faults


@pytest.fixture
def faults(server: Faults, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Faults]:
    """The way to the server, for a user without credentials."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.address)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    server.keys.clear()
    yield server
    server.up()


def keys_in(section: str, key: str) -> str:
    return f"[{section}]\naws_access_key_id = {key}\naws_secret_access_key = secret\naws_session_token = t\n"


def patient(said: list[str], *, meanwhile: object = None) -> PatientObjects:
    """Return the store, which waits without a clock; `meanwhile` is called at each pause."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if callable(meanwhile):
            meanwhile()

    objects = PatientObjects(CloudObjects(URL), Patience(clock=lambda: now, sleep=sleep))
    objects.say = said.append
    return objects


def test_credentials_of_the_file_serve(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "KEYOFFILE"))
    CloudObjects(URL).write("key", b"content")
    assert set(faults.keys) == {"KEYOFFILE"}


def test_the_profile_that_is_named_serves(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "ANOTHER") + keys_in("laboratory", "KEYOFLAB"))
    (tmp_path / "config").write_text("[profile laboratory]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_PROFILE", "laboratory")
    CloudObjects(URL).write("key", b"content")
    assert set(faults.keys) == {"KEYOFLAB"}


def test_a_role_of_a_profile_serves(faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "KEYOFFILE"))
    (tmp_path / "config").write_text(
        "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/work\nsource_profile = default\n"
        "region = us-east-1\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    CloudObjects(URL).write("key", b"content")
    assert faults.keys[0] == "KEYOFFILE", "which asks for the role"
    assert faults.keys[-1].startswith("ASIA")


def test_a_program_that_prints_credentials_serves(faults: Faults, tmp_path: Path) -> None:
    program = tmp_path / "print.py"
    program.write_text('print(\'{"Version": 1, "AccessKeyId": "KEYOFPROGRAM", "SecretAccessKey": "s"}\')')
    (tmp_path / "config").write_text(f'[default]\ncredential_process = {sys.executable} "{program}"\n')
    CloudObjects(URL).write("key", b"content")
    assert set(faults.keys) == {"KEYOFPROGRAM"}


def test_a_run_goes_on_once_its_expired_credentials_are_renewed(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "FIRST"))
    said: list[str] = []

    def renew() -> None:
        if said:
            (tmp_path / "credentials").write_text(keys_in("default", "SECOND"))

    objects = patient(said, meanwhile=renew)
    objects.write("key", b"content")
    faults.valid_key = "SECOND"
    objects.write("key", b"changed")
    assert objects.read("key") == b"changed"
    (line,) = said
    assert "the credentials expired (ExpiredToken)" in line
    assert "trying again for 60 min" in line


def test_a_role_is_asked_for_again_while_its_service_is_away(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "KEYOFFILE"))
    (tmp_path / "config").write_text(
        "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/work\nsource_profile = default\n"
        "region = us-east-1\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    faults.next("POST", "/", "503", "503")
    patient([]).write("key", b"content")
    assert faults.keys[-1].startswith("ASIA")


def test_a_half_written_file_of_credentials_ends_no_run(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "FIRST"))
    contents = iter(["[default]\naws_access_key_id = SEC", keys_in("default", "SECOND")])
    objects = patient([], meanwhile=lambda: (tmp_path / "credentials").write_text(next(contents)))
    objects.write("key", b"content")
    faults.valid_key = "SECOND"
    objects.write("key", b"changed")


def test_one_refused_token_among_many_requests_loses_nothing(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "FIRST"))
    objects = patient([])
    assert objects.create("new", b"content")
    faults.next("PUT", "new", "expired")
    assert not objects.create("new", b"other")
    faults.next("GET", "new", "expired", "", "expired")
    assert objects.read("new") == b"content"


def test_expired_credentials_in_variables_end_the_stage_at_once(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can change the variables of a process that runs."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    objects = patient([], meanwhile=pytest.fail)
    objects.write("key", b"content")
    faults.valid_key = "SECOND"
    with refused(URL, "the credentials expired"):
        objects.write("key", b"changed")


def test_a_command_does_not_wait_for_credentials_that_expired_before(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(keys_in("default", "FIRST"))
    faults.valid_key = "SECOND"
    with refused(URL, "the credentials expired"):
        patient([], meanwhile=pytest.fail).probe()


SIGN_ON = """\
[default]
sso_session = laboratory
sso_account_id = 123456789012
sso_role_name = work
region = us-east-1
[sso-session laboratory]
sso_start_url = http://127.0.0.1:9/start
sso_region = us-east-1
"""


@pytest.mark.parametrize(
    ("config", "facts"),
    [
        ("", ("no credentials were found", "AWS_PROFILE")),
        (SIGN_ON, ("the credentials expired", "renew them")),
        ("[default]\ncredential_process = false\n", ("the credentials can't be read",)),
        ("[default]\naws_access_key_id = SECRETKEY\n", ("the credentials can't be read",)),
    ],
    ids=["none", "sign-on", "program", "partial"],
)
def test_unusable_credentials_are_reported_in_one_line(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, facts: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "config").write_text(config)
    with refused(URL, *facts) as caught:
        patient([], meanwhile=pytest.fail).probe()
    assert "SECRETKEY" not in str(caught.value)


def test_a_missing_profile_is_named(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "labratory")
    with refused(URL, "'labratory'"):
        CloudObjects(URL).write("key", b"content")
