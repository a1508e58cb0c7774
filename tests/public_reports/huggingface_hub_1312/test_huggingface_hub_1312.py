"""huggingface/huggingface_hub #1312: a refused upload's error repeats the signed address, credential and all.

Here an error of the hub, of a store or of a library is printed without what signs the address.
"""

from synthbench.base.redaction import masked


def test_an_error_does_not_expose_a_usable_signed_address() -> None:
    error = (
        "403 Client Error: Forbidden for url: https://s3.example.org/repos/x?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAHUSH%2F2023%2Fs3&X-Amz-Date=2023&X-Amz-Signature=495ehush&X-Amz-SignedHeaders=host"
    )
    shown = masked(error)
    assert "hush" not in shown.lower()
    assert shown.startswith(
        "403 Client Error: Forbidden for url: https://s3.example.org/repos/x?X-Amz-Algorithm="
    )
    assert shown.endswith("&X-Amz-SignedHeaders=host")
