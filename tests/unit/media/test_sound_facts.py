"""Which tracks of sound are taken, and what is told of the others."""

from media import describe
from media.packets import SoundScan
from tests.support.media_facts import video


def test_sound_that_is_not_taken_is_told_of() -> None:
    streams = [
        {"index": 0, "codec_type": "video", "codec_name": "h264"},
        {"index": 1, "codec_type": "audio", "codec_name": "unknown"},
        {"index": 2, "codec_type": "audio", "codec_name": "mp2", "channels": 0},
        {"index": 3, "codec_type": "audio", "codec_name": "aac", "channels": 2},
        {"index": 4, "codec_type": "audio", "codec_name": "aac", "channels": 2},
    ]
    sound = {int(str(stream["index"])): SoundScan() for stream in streams if describe.is_audio(stream)}
    sound[4].see("0.000000,0.021333,K__")
    kept, told = describe.tracks(streams, sound, video())
    assert [track.stream for track in kept] == [4]
    assert told == [
        "Audio track 1 is of a kind that is not known and is left out.",
        "Audio track 2 is of a kind that is not known and is left out.",
        "Audio track 3 (aac) is empty and is left out.",
    ]
