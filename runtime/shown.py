"""Secrets made fit to be seen."""

import re

_ALL_SECRET = frozenset({"admin_secret", "worker_admin_secret", "sealing_key", "worker_api_key"})
# Slack's and Discord's webhook addresses are passwords: whoever has one can post.
_PATH_SECRET = frozenset({"alert_webhook_url"})
_PASSWORD = re.compile(r"(?<=//)([^/@:]*):([^/@]*)@")
_SECRET_QUERY = re.compile(r"(?i)([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*")
_HOST = re.compile(r"^([a-z+]+://[^/?]*).*$", re.IGNORECASE)
MASK = "********"


def masked(name: str, value: str | int | float | bool | None) -> str | int | float | bool | None:
    """Mask a setting's value where it is, or holds, a secret."""
    if not isinstance(value, str):
        return value
    if name in _ALL_SECRET:
        return MASK
    if name in _PATH_SECRET:
        return _HOST.sub(rf"\1/{MASK}", without_password(value))
    return without_password(value)


def without_password(url: str) -> str:
    """Mask the password of an address, in its authority or its query; other text stays as it is."""
    return _SECRET_QUERY.sub(rf"\1{MASK}", _PASSWORD.sub(rf"\1:{MASK}@", url))
