"""What ffmpeg says of its progress, word by word, however its words are cut."""

import pytest

from media.progress import Progress, Reports

# As ffmpeg 8.1 and 7.0 said them. In the third block one of three outputs had ended: its time is the largest number.
SAID = b"""frame=0
fps=0.00
out_time_us=N/A
speed=N/A
progress=continue
frame=184
fps=149.96
out_time_us=5866667
speed=4.78x
progress=continue
frame=205
fps=161.50
out_time_us=9223372036854543000
speed=7.27e+12x
progress=continue
frame=240
fps=182.26
out_time_us=7733334
speed=5.87x
progress=end
"""
HEARD = [
    Progress(),
    Progress(frame=184, fps=149.96, speed=4.78, out_time_s=5.866667),
    Progress(frame=205, fps=161.5, speed=4.78, out_time_s=5.866667),
    Progress(frame=240, fps=182.26, speed=5.87, out_time_s=7.733334, ended=True),
]


@pytest.mark.parametrize("length", [1, 7, 64, 4096])
def test_an_output_that_has_ended_makes_neither_time_nor_speed_endless(length: int) -> None:
    """Sound would be whole before it is, and a slow encode fast enough to be watched."""
    reports = Reports()
    pieces = (SAID[at : at + length] for at in range(0, len(SAID), length))
    assert [report for piece in pieces for report in reports.feed(piece)] == HEARD
