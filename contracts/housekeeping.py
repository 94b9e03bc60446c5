"""Housekeeping's messages: it is asked for nothing, and says what it found to do."""

from contracts.message import Message

HOUSEKEEPING = "housekeeping"  # the schedule, and how its workflows' ids begin


class KeepHouse(Message):
    """Ask for one chore. Empty: what counts as old or silent is the worker's setting, not the schedule's."""


class ChoreDone(Message):
    count: int = 0  # rows mended, jobs started, files removed; 0 is the usual answer


class KeptHouse(Message):
    """What a run did, by chore; a chore without anything to do is not named."""

    done: dict[str, int]
    failed: dict[str, str]
