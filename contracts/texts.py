"""What a name or a title may not have in it. Pure."""

import unicodedata

# Cc: control. Cs: half a surrogate pair, which no database takes. Zl, Zp: line breaks in disguise.
# Bidi overrides are "format" characters like the joiners of emoji, so they are named one by one.
_UNWANTED = frozenset({"Cc", "Cs", "Zl", "Zp"})
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_unwanted(char: str) -> bool:
    """Tell what steers a terminal, hides, or cannot be kept."""
    return unicodedata.category(char) in _UNWANTED or char in _BIDI
