"""Headers of tus clients, kind and hostile."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import ApiError
from api.tus_headers import ALGORITHMS, clean_checksum, clean_metadata, clean_number, described
from contracts.states import Tier

LADDER = ("720p", "360p")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


names = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=","), min_size=1, max_size=20)


@given(st.dictionaries(names, st.text(max_size=50), max_size=20))
def test_metadata_comes_out_as_it_went_in(said: dict[str, str]) -> None:
    assert clean_metadata(",".join(f"{name} {encoded(value)}" for name, value in said.items())) == said


@given(st.text(max_size=200), st.text(max_size=200))
def test_whatever_a_header_holds_it_is_read_or_refused_with_a_code(text: str, value: str) -> None:
    for header in (
        text,
        f"title {value}",
        f"title {encoded(value)}",
        f"tier {encoded(value)},qualities {encoded(text)}",
    ):
        try:
            told = described(clean_metadata(header), LADDER)
            assert len(told.details.title) <= 255 and "/" not in told.filename and "\0" not in told.filename
        except ApiError as error:
            assert error.status == 400
    for read in (clean_checksum, lambda said: clean_number(said, "Upload-Length")):
        try:
            read(text)
        except ApiError as error:
            assert error.status == 400


def test_what_is_known_is_taken_and_the_rest_is_left() -> None:
    said = {"filename": "../My Film.MP4", "title": "Grüße", "owner": "ana", "tier": "creator", "qualities": "720p"}
    told = described(clean_metadata(",".join(f"{name} {encoded(value)}" for name, value in said.items())), LADDER)
    assert (told.filename, told.details.title, told.details.owner) == ("My Film.MP4", "Grüße", "ana")
    assert (told.details.tier, told.details.qualities) == (Tier.CREATOR, ("720p",))
    assert described({"name": "uppy.mov", "is_paid": "no", "tier": "viral"}, LADDER).details.waits_as is not Tier.VIRAL
    assert described(clean_metadata("is_confidential"), LADDER).filename == ""


@pytest.mark.parametrize(
    "header", ["a b c", "a YQ==,a YQ==", "ä YQ==", "a YQ", "a //8=", ",", "a YQ==,", "a é", "x" * 20_000]
)
def test_bad_metadata_is_refused(header: str) -> None:
    with pytest.raises(ApiError) as refused:
        clean_metadata(header)
    assert refused.value.code.startswith("UPLOAD_METADATA_")


@pytest.mark.parametrize("text", [None, "", "-1", "+1", "1.0", "0x1", "１", " 1", "1" * 19, "nan"])
def test_a_number_is_plain_digits(text: str | None) -> None:
    with pytest.raises(ApiError) as refused:
        clean_number(text, "Upload-Offset")
    assert refused.value.code == "UPLOAD_OFFSET_INVALID"
    assert clean_number("0", "Upload-Offset") == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_checksum_fits_its_bytes_and_no_others(algorithm: str) -> None:
    header = f"{algorithm} {base64.b64encode(hashlib.new(algorithm, b'film').digest()).decode()}"
    for data, fits in ((b"film", True), (b"fi1m", False)):
        checksum = clean_checksum(header)
        assert checksum is not None
        checksum.update(data)
        assert checksum.fits() is fits
    for bad in (header[:-4], algorithm, f"{algorithm} YQ==", f"{algorithm} ü", "crc32 YQ==", ""):
        with pytest.raises(ApiError):
            clean_checksum(bad)
    assert clean_checksum(None) is None
