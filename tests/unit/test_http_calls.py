"""Where a worker's key may be sent without a word."""

import pytest

from storage.http_calls import is_open_to_all


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("https://vlog.example.org", False),
        ("http://vlog.example.org", True),
        ("http://192.168.1.5:9000", True),
        ("http://127.0.0.1:9000", False),
        ("http://[::1]:9000", False),
    ],
)
def test_over_plain_http_a_key_can_be_read_unless_it_stays_here(url: str, is_open: bool) -> None:
    assert is_open_to_all(url) is is_open
