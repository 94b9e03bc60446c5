"""Prometheus' text format, version 0.0.4. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Sample:
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""  # _bucket, _sum, _count


@dataclass(frozen=True)
class Family:
    """One name with all its samples."""

    name: str
    kind: str  # counter, gauge, histogram, summary
    about: str
    samples: Sequence[Sample]


def one(name: str, kind: str, about: str, value: float) -> Family:
    return Family(name, kind, about, [Sample(value)])


def by(name: str, kind: str, about: str, label: str, values: Mapping[str, float]) -> Family:
    return Family(name, kind, about, [Sample(value, {label: key}) for key, value in values.items()])


def render(families: Sequence[Family]) -> str:
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.about)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [
            f"{family.name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}" for sample in family.samples
        ]
    return "\n".join([*lines, ""])


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
