"""Cases that look at ours alone: does cost grow evenly, how soon can one watch, how much memory does an upload take?"""

from tests.bench.bench import Bench
from tests.bench.figures import Verdict, evenness
from tests.bench.machine import moment
from tests.bench.ours import DidNotEnd
from tests.bench.page import table, verdict_lines
from tests.bench.sources import HD, make_large

MEMORY_MB = 250.0
EVEN = 0.10
PLAYABLE_S = 20.0


def linearity(bench: Bench) -> str:
    """Measure what a minute of source costs in sources of different length.

    1080p and the ladder below it, as in the comparisons: on long videos the lowest rung runs ahead in steps of its
    own, and the decode that this costs weighs by what else is encoded. All three take half an hour.
    """
    when, rows = moment(), []
    walls, cpus = [], []
    for minutes in (1, 5, 20):
        source = bench.source(HD, 60 * minutes)
        length = bench.plan(source, "veryfast").grid.duration_s / 60
        cost = bench.service("veryfast").transcode(source, within_s=120 + 600 * length)
        walls.append(cost.wall_s / length)
        cpus.append(cost.cpu_s / length)
        row = [f"{length:.3g}", f"{cost.wall_s:.1f}", f"{cost.cpu_s:.1f}", f"{walls[-1]:.1f}", f"{cpus[-1]:.1f}"]
        rows.append([*row, f"{cost.other_share:.1%}", f"{cost.worker_mb:.0f} / {cost.api_mb:.0f}"])
        bench.say(f"{length:.3g} min: wall {cost.wall_s:.1f} s, CPU {cost.cpu_s:.1f} s")
        source.unlink()
    verdicts = [
        Verdict(f"{name} per minute within ±{EVEN:.0%}", f"±{evenness(values):.1%}", evenness(values) <= EVEN)
        for name, values in (("CPU", cpus), ("wall", walls))
    ]
    head = ["minutes", "wall s", "CPU s", "wall s per minute", "CPU s per minute", "not ffmpeg", "peak worker / API MB"]
    intro = f"1080p, veryfast, ladder 1080/720/480/360, ours only. {when}; one run each."
    return "\n\n".join(["## Linearity: 1, 5 and 20 minutes", intro, table(head, rows), verdict_lines(verdicts)])


def playable(bench: Bench) -> str:
    """Measure from the first transcode step to playable; then the service is stopped, the rest is known."""
    when, limit_s = moment(), 30.0 if bench.quick else 300.0
    source = bench.source(HD, 600)
    try:
        seconds, still_encoding = bench.service("veryfast").time_to_playable(source, within_s=limit_s)
        said = f"{seconds:.1f} s"
        met = seconds <= PLAYABLE_S
        if not still_encoding:
            said += ", when the whole video was ready: this code did not set `playable_at` any earlier"
    except DidNotEnd as error:
        said, met = f"none ({error})", False
    finally:
        bench.close()
    bench.say(f"playable: {said}")
    verdict = Verdict(f"a 10-minute source is playable within {PLAYABLE_S:g} s of its first transcode step", said, met)
    return f"## Time to playable\n\n10 minutes of 1080p, veryfast. {when}.\n\n{verdict_lines([verdict])}"


def upload_memory(bench: Bench) -> str:
    """Measure API and worker through an upload of 2 GB, until it is a video that plays."""
    when = moment()
    size = 50_000_000 if bench.quick else 2_000_000_000
    bench.say(f"source: {size / 1e9:g} GB")
    file = make_large(bench.tool, bench.folder / "large.mkv", size)
    sent = file.stat().st_size
    try:
        cost = bench.service("veryfast").transcode(file, within_s=900, look_every_s=0.1)
    finally:
        file.unlink()
    bench.say(f"peaks through {sent / 1e9:g} GB: worker {cost.worker_mb:.0f} MB, API {cost.api_mb:.0f} MB")
    verdicts = [
        Verdict(f"{name} under {MEMORY_MB:g} MB", f"{peak:.0f} MB", peak < MEMORY_MB)
        for name, peak in (("worker", cost.worker_mb), ("API", cost.api_mb))
    ]
    intro = (
        f"{sent / 1e9:.2f} GB in one request, which became a video {cost.wall_s:.0f} s later;"
        f" looked at ten times a second, without the worker's children. {when}."
    )
    return f"## Memory through a 2 GB upload\n\n{intro}\n\n{verdict_lines(verdicts)}"
