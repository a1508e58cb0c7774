"""Credentials for a store in a cloud, and messages about faulty credentials."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider

SETTINGS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
ABSENT = ("169.254.169.254", "metadata.google", "Account must be specified", "InvalidCredential")
"""Parts of messages that no credentials were found; cloud machines get theirs from these addresses."""
_EXPIRED = linear_pattern(
    r"\b(ExpiredToken|ExpiredTokenException|TokenRefreshRequired|ExpiredAuthenticationToken"
    r"|TokenRetrievalError|UnauthorizedSSOTokenError|SSOTokenLoadError|still expired)\b"
)
"""Services' error codes, and botocore's errors, for expired credentials."""
_WHY = "`aws sts get-caller-identity` says why"
_FROM_VARIABLES = "env"
"""botocore's name for credentials in environment variables, which nobody can renew while a process runs."""
PROVIDER = "External AWS credential provider"
"""Part of obstore's errors if botocore gives no credentials, such as while a role's service is down."""
TTL = timedelta(minutes=10)
"""How long obstore uses credentials. botocore renews those that end within ten minutes."""


def aws_credentials() -> "Boto3CredentialProvider":
    """Return credentials as the aws command line finds them: variables, files, profiles, sign-on, roles.

    Raises ImportError without obstore or boto3, and UserError if there are no usable credentials.
    """
    from boto3 import Session
    from botocore.exceptions import BotoCoreError, ProfileNotFound
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        found = Boto3CredentialProvider(Session(), ttl=TTL)
    except ProfileNotFound:
        profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE", "")
        raise UserError(f"AWS_PROFILE: '{profile}' is not in `aws configure list-profiles`") from None
    except BotoCoreError as error:
        name = type(error).__name__
        reason = f"the credentials can't be read ({name}); {_WHY}"
        raise UserError(credentials_fault("s3", error) or reason) from None
    except ValueError:
        raise UserError(_no_credentials("s3")) from None
    if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        found.config = {}  # the profile's region comes after these
    return found


def can_be_renewed(provider: Any) -> bool:  # noqa: ANN401 - the provider of obstore's store, if it has one
    """Return whether the provider may find new credentials while this process runs.

    False if the credentials come from environment variables, or without a provider.
    """
    return provider is not None and provider.credentials.method != _FROM_VARIABLES


def credentials_fault(scheme: str, error: Exception) -> str:
    """Return a message about the credentials' fault; "" if the error has another cause."""
    text = f"{type(error).__name__} {error}"
    if found := _EXPIRED.search(text):
        return f"the credentials expired ({found[1]}); renew them"
    if any(mark in text for mark in ABSENT):
        return _no_credentials(scheme)
    if PROVIDER in text:
        return f"the credentials can't be fetched; {_WHY}"
    return ""


def has_expired(error: Exception) -> bool:
    """Return whether an error says that the credentials expired."""
    return _EXPIRED.search(f"{type(error).__name__} {error}") is not None


def _no_credentials(scheme: str) -> str:
    return f"no credentials were found; set {SETTINGS[scheme]}"
