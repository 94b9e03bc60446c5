"""Addresses and signatures of S3, without a server. The signatures are those of Amazon's own examples."""

import hashlib
from datetime import UTC, datetime

import pytest

from contracts.errors import StorageUnavailable
from storage.s3_keys import Keys
from storage.s3_place import s3_place
from storage.s3_signing import query_string, signed_headers

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "hush"}
EXAMPLE = "https://examplebucket.s3.amazonaws.com"
EXAMPLE_KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


@pytest.mark.parametrize(
    ("path", "headers", "signature"),
    [
        ("/test.txt", {"Range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        (
            "/?" + query_string({"lifecycle": ""}),
            {},
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            "/?" + query_string({"prefix": "J", "max-keys": "2"}),
            {},
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_a_request_is_signed_as_amazon_signs_it(path: str, headers: dict[str, str], signature: str) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    now = datetime(2013, 5, 24, tzinfo=UTC)
    made = signed_headers(EXAMPLE_KEYS, "us-east-1", "GET", EXAMPLE + path, headers, empty, now)
    assert made["authorization"].endswith(f"Signature={signature}")


def test_an_address_names_the_bucket_and_amazons_variables_the_rest() -> None:
    plain = s3_place("s3://media", KEYS)
    assert (plain.bucket, plain.full("uploads/1"), plain.region) == ("media", "uploads/1", "us-east-1")
    assert plain.url(plain.full("a b/ü")) == "https://s3.us-east-1.amazonaws.com/media/a%20b/%C3%BC"
    own = s3_place("s3://media/a/b/", KEYS | {"AWS_ENDPOINT_URL_S3": "http://s3:9000/", "AWS_DEFAULT_REGION": "eu"})
    assert (own.full("uploads/1"), own.region) == ("a/b/uploads/1", "eu")
    assert own.url("x") == "http://s3:9000/media/x"
    assert "hush" not in repr(own)


@pytest.mark.parametrize("wrong", [{"AWS_SECRET_ACCESS_KEY": ""}, {"AWS_ENDPOINT_URL": "s3:9000"}])
def test_what_is_missing_is_said(wrong: dict[str, str]) -> None:
    with pytest.raises(StorageUnavailable):
        s3_place("s3://media", KEYS | wrong)
