"""Prometheus' text format: what its parser is picky about."""

from api.exposition import Family, Sample, by, one, render


def test_names_kinds_labels_and_numbers_are_written_as_prometheus_reads_them() -> None:
    families = [
        one("a_total", "counter", "Back\\slash and\nline.", 3),
        by("b", "gauge", "Odd labels.", "code", {'say "hi"\n\\': 0.25}),
        Family(
            "c", "summary", "Parts.", [Sample(1.5, {"step": "probe"}, "_sum"), Sample(2, {"step": "probe"}, "_count")]
        ),
        Family("d", "gauge", "Nothing yet.", []),
    ]
    assert render(families).splitlines() == [
        r"# HELP a_total Back\\slash and\nline.",
        "# TYPE a_total counter",
        "a_total 3",
        "# HELP b Odd labels.",
        "# TYPE b gauge",
        r'b{code="say \"hi\"\n\\"} 0.25',
        "# HELP c Parts.",
        "# TYPE c summary",
        'c_sum{step="probe"} 1.5',
        'c_count{step="probe"} 2',
        "# HELP d Nothing yet.",
        "# TYPE d gauge",
    ]
    assert render(families).endswith("\n")
