"""Where a bucket is and who we are there: the address people write, and Amazon's own variables for the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from contracts.errors import StorageUnavailable
from storage.keys import checked
from storage.s3_keys import Keys, LentKeys, find_keys


@dataclass(frozen=True)
class S3Place:
    bucket: str
    prefix: str  # of all keys, without slashes around it; may be empty
    endpoint: str  # http:// or https://, without a path
    region: str
    keys: Keys | LentKeys

    def full(self, key: str) -> str:
        """Name an object as the bucket knows it."""
        return f"{self.prefix}/{key}" if self.prefix else key

    def url(self, full_key: str = "") -> str:
        # The bucket in the path: every server takes it, and no name has to be resolved for each bucket.
        path = quote(f"/{self.bucket}/{full_key}" if full_key else f"/{self.bucket}", safe="/-_.~")
        return self.endpoint + path


def s3_place(url: str, environment: Mapping[str, str]) -> S3Place:
    """Read `s3://bucket/prefix` and the AWS_ variables; raises StorageUnavailable with what is missing."""
    parts = urlsplit(url)
    prefix = unquote(parts.path).strip("/")
    if prefix:
        checked(prefix)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    return S3Place(
        bucket=parts.netloc,
        prefix=prefix,
        endpoint=checked_endpoint(endpoint) if endpoint else f"https://s3.{region}.amazonaws.com",
        region=region,
        keys=find_keys(environment, region),
    )


def checked_endpoint(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise StorageUnavailable("The address of the S3 server must look like https://s3.example.org, without a path.")
    return f"{parts.scheme}://{parts.netloc}"
