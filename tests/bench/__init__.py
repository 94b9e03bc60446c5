"""What a video costs: ours beside the best command by hand and beside one process per quality.

Run it with `make bench`, or `python -m tests.bench --only 60s-veryfast`. It writes docs/benchmarks.md.
"""
