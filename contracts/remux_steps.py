"""Requests and results of the steps around the copy of a source that seeks badly."""

from contracts.ids import ObjectKey
from contracts.media import SourceFacts
from contracts.message import Message
from contracts.states import StepName
from contracts.steps import StepRequest


class Remux(StepRequest):
    """Ask for a copy of the source's packets in a container that seeks well."""

    step = StepName.REMUX
    source_key: ObjectKey
    facts: SourceFacts  # of the source as it was sent


class DropRemux(Message):
    """Ask to remove the copy; its job has ended."""

    source_key: ObjectKey
