"""What a key may look like, in every kind of storage."""


def checked(key: str) -> str:
    """Give the key back, or refuse: one that climbs out of its root is a bug or an attack."""
    if not key or "\0" in key or "\\" in key or any(part in ("", ".", "..") for part in key.split("/")):
        raise ValueError("not a storage key")
    return key
