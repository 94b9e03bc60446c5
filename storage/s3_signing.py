"""AWS Signature Version 4, for the few calls that obstore does not offer. Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, urlsplit

from storage.s3_keys import Keys


def query_string(query: Mapping[str, str]) -> str:
    """Write a query as it must be signed: sorted, and everything encoded but unreserved characters."""
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))


def signed_headers(
    keys: Keys, region: str, method: str, url: str, headers: Mapping[str, str], payload_sha256: str, now: datetime
) -> dict[str, str]:
    """Give the headers that prove who asks; `url` is sent exactly as it is signed."""
    parts = urlsplit(url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    ours = {name.lower(): value.strip() for name, value in headers.items()}
    ours |= {"host": parts.netloc, "x-amz-date": stamp, "x-amz-content-sha256": payload_sha256}
    if keys.token:
        ours["x-amz-security-token"] = keys.token
    names = ";".join(sorted(ours))
    canonical = "\n".join(
        (
            method,
            parts.path or "/",
            parts.query,
            *(f"{name}:{ours[name]}" for name in sorted(ours)),
            "",
            names,
            payload_sha256,
        )
    )
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{keys.secret}".encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    credential = f"Credential={keys.key_id}/{scope}"
    ours["authorization"] = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
    return ours
