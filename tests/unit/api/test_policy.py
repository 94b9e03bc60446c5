"""What the pages may do: nothing inline, and segments only from where they are."""

from typing import cast

import pytest

from api.policy import elsewhere, page_headers, scripted
from storage.store import Store


class Linking:
    def __init__(self, link: str | None) -> None:
        self._link = link

    async def link(self, key: str) -> str | None:
        return self._link and f"{self._link}/{key}?X-Amz-Signature=abc"


@pytest.mark.parametrize(
    ("link", "sources"),
    [(None, "connect-src 'self';"), ("https://s3.example.org/bucket", "connect-src 'self' https://s3.example.org;")],
)
async def test_segments_may_come_from_the_server_that_has_them_and_from_no_other(
    link: str | None, sources: str
) -> None:
    policy = page_headers(scripted(await elsewhere(cast(Store, Linking(link)))))["Content-Security-Policy"]
    assert sources in policy
    assert "unsafe" not in policy and "default-src 'none'" in policy and "script-src 'self';" in policy
