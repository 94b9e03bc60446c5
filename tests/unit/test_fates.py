"""Which qualities decide a job's fate."""

import pytest

from contracts.end_steps import VerifiedRenditions
from contracts.plan import PlannedAudio, PlannedRendition
from contracts.states import Codec, JobKind
from contracts.steps import MissingRendition
from tests.replay.fake_plans import PLAN
from tests.replay.fake_steps import whole
from tests.replay.stories import REQUEST
from workflows.fates import critical_qualities, is_critical_sound, lost_picture

AV1 = PlannedRendition(quality="360p-av1", width=640, height=360, video_kbps=400, codec=Codec.AV1)
RICH = PLAN.model_copy(update={"renditions": (*PLAN.renditions, AV1)})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("360p",)),
        ({"critical": ("720p",)}, ("720p",)),
        ({"critical": ("audio",)}, ()),
        ({"critical": ("360p-av1", "720p")}, ("720p",)),
        ({"kind": JobKind.RETRANSCODE}, ("720p", "360p")),
        ({"kind": JobKind.RETRY, "keep": ("480p",)}, ()),
    ],
)
def test_the_lowest_rung_is_critical_unless_somebody_says_otherwise(
    change: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert critical_qualities(REQUEST.model_copy(update=change), RICH) == expected


def test_only_the_default_sound_is_critical() -> None:
    first, second = (PlannedAudio(track=n, stream=n + 1, kbps=96, default=n == 0) for n in range(2))
    assert is_critical_sound(REQUEST, first) and not is_critical_sound(REQUEST, second)
    without = REQUEST.model_copy(update={"critical": ("360p",)})
    assert not is_critical_sound(without, first)


def test_sound_alone_is_no_video_unless_a_picture_is_kept() -> None:
    lost = {name: MissingRendition(name=name, code="X", sentence="Lost.") for name in ("audio_1", "720p", "360p")}
    only_sound = REQUEST.model_copy(update={"critical": ("audio",)})
    assert lost_picture(only_sound, VerifiedRenditions(video=()), lost) == lost["720p"]
    assert lost_picture(only_sound, VerifiedRenditions(video=(whole(PLAN.renditions[1]),)), lost) is None
    assert (
        lost_picture(REQUEST.model_copy(update={"keep": ("audio_0",)}), VerifiedRenditions(video=()), lost) is not None
    )
    assert lost_picture(REQUEST.model_copy(update={"keep": ("480p",)}), VerifiedRenditions(video=()), lost) is None
    assert lost_picture(REQUEST, VerifiedRenditions(video=()), {"audio_1": lost["audio_1"]}) is None, (
        "no rung was asked for"
    )
