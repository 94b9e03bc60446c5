"""The report as `vlog show` prints it."""

from cli.reporting import report_lines

REPORT = {
    "container": "mpegts",
    "remuxed_to": "matroska",
    "size_bytes": 10_485_760,
    "duration": 20.02,
    "video": {
        "codec": "hevc",
        "width": 1920,
        "height": 1080,
        "display_width": 1080,
        "display_height": 1920,
        "rotation": 90,
        "bit_depth": 10,
        "frame_rate": "30000/1001",
        "average_rate": "30000/1001",
        "variable_rate": False,
        "field_order": "tt",
    },
    "hdr": "HLG",
    "audio": [{"codec": "aac", "channels": 2, "layout": "stereo", "sample_rate": 48000, "language": "deu"}],
    "subtitles": [{"codec": "subrip", "language": "eng", "title": "\x1b[31mSigns", "forced": True}],
    "warnings": ["The file is cut short."],
    "decided": {
        "frame_rate": "60000/1001",
        "segment_seconds": 6.006,
        "tone_map": "zscale",
        "renditions": [
            {"quality": "720p", "width": 720, "height": 1280, "bitrate": 2500, "encoder": "h264_nvenc", "gpu": True},
            {"quality": "480p", "width": 480, "height": 854, "bitrate": 1000, "encoder": "libx264", "ffmpeg": "8.1-x"},
        ],
        "notes": ["Interlaced pictures are deinterlaced."],
    },
}


def test_a_report_is_told_line_by_line() -> None:
    lines = list(report_lines(REPORT))
    assert lines == [
        ("source", "mpegts, copied to matroska first, 10.5 MB, 0:20"),
        (
            "picture",
            "hevc, 1080x1920 (stored 1920x1080), turned by 90°, 29.97 fps, interlaced, 10 bit, HLG, to SDR by zscale",
        ),
        ("sound", "aac, stereo, 48 kHz, deu"),
        ("subtitles", "subrip, eng, “ [31mSigns”, forced"),
        ("made into", "59.94 fps, segments of 6.006 s"),
        ("", "720p       720x1280, 2500 kbit/s, h264_nvenc, on a GPU"),
        ("", "480p       480x854, 1000 kbit/s, libx264, by ffmpeg 8.1-x"),
        ("note", "Interlaced pictures are deinterlaced."),
        ("warning", "The file is cut short."),
    ]


def test_before_the_source_was_read_there_is_nothing_to_tell() -> None:
    assert list(report_lines(None)) == []
