"""mlflow/mlflow #25874: an error named a database's address with its password, and the server logged it.

Here the tracking address is shown without its password, and so is every message that repeats it.
"""

from synthbench.tracking.redaction import mask_password_of


def test_an_error_on_the_tracking_address_has_no_password() -> None:
    uri = "postgresql://me:hu%2Fsh@db.example.org:5432/mlflow"
    message = mask_password_of(uri, f"can't connect to {uri}: login with hu/sh refused")
    assert (
        message == "can't connect to postgresql://me:***@db.example.org:5432/mlflow: login with *** refused"
    )
