"""How often a server is asked that fails once or twice: a part may be long on its way, and a film has thousands."""

import asyncio

import httpx
import pytest

from contracts.errors import StorageUnavailable
from storage import s3_multipart
from storage.s3_keys import Keys
from storage.s3_multipart import Multipart, Refused
from storage.s3_place import S3Place

PLACE = S3Place("media", "", "http://s3.test", "us-east-1", Keys("k", "hush"))
PATIENCE_S = 0.05
WORD = "<Error><Code>{}</Code></Error>"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_multipart, "FIRST_WAIT_S", 0.001)


class Server:
    """Answers so, one after the other and the last one for ever, each after a while."""

    def __init__(self, *answers: httpx.Response | httpx.TransportError, takes_s: float = 0.0) -> None:
        self._answers, self._takes_s, self.asked = list(answers), takes_s, 0
        self.calls = Multipart(PLACE, httpx.AsyncClient(transport=httpx.MockTransport(self._answer)), PATIENCE_S)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        await asyncio.sleep(self._takes_s)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer


@pytest.mark.parametrize(
    "fault",
    [
        httpx.Response(503, text=WORD.format("SlowDown")),
        httpx.Response(408),
        httpx.Response(400, text=WORD.format("RequestTimeout")),  # Amazon's word for a line that stood still
        httpx.ReadError("reset"),
    ],
)
async def test_a_part_that_was_long_on_its_way_is_tried_again(fault: httpx.Response | httpx.TransportError) -> None:
    stored = httpx.Response(200, headers={"etag": "e"})
    server = Server(fault, fault, stored, takes_s=1.5 * PATIENCE_S)
    assert await server.calls.put_part("film", "u", 1, b"bytes") == "e"


async def test_a_server_that_stays_away_is_given_up() -> None:
    server = Server(httpx.Response(503))
    with pytest.raises(StorageUnavailable):
        await server.calls.put_part("film", "u", 1, b"bytes")
    assert server.asked >= s3_multipart.LEAST_TRIES


async def test_what_is_refused_is_not_asked_again() -> None:
    server = Server(httpx.Response(400, text=WORD.format("InvalidPart")))
    with pytest.raises(Refused, match="InvalidPart"):
        await server.calls.complete("film", "u", {1: "e"}, create_only=False)
    assert server.asked == 1


async def test_a_completion_that_fails_after_its_200_is_tried_again() -> None:
    blanks = '<?xml version="1.0"?>\n\n'  # sent meanwhile, so that nobody takes the line for dead
    server = Server(
        httpx.Response(200, text=blanks + WORD.format("InternalError")),
        httpx.Response(200, text="\n\n" + blanks + "<CompleteMultipartUploadResult/>"),
    )
    assert await server.calls.complete("film", "u", {1: "e"}, create_only=True)
    assert server.asked == 2
    server = Server(httpx.Response(200, text=WORD.format("InvalidPart")))
    with pytest.raises(Refused, match="InvalidPart"):
        await server.calls.complete("film", "u", {1: "e"}, create_only=True)
