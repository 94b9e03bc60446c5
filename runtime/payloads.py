"""How messages become bytes for Temporal, and how many they may be.

Temporal takes two megabytes. What is larger it refuses in a way that nobody hears of: the workflow's task fails and is
tried again for ever, and the video is processing until somebody looks. So we measure first, and refuse with a code.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.exceptions import ApplicationError

from contracts.errors import MESSAGE_TOO_LARGE, FailureKind
from contracts.steps import StepFailure

LIMIT_BYTES = 2 * 1024**2 - 64 * 1024  # of Temporal's 2 MiB the rest is for what it wraps around a message


class BoundedConverter(PydanticPayloadConverter):
    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        payloads = super().to_payloads(values)
        size = sum(len(payload.data) for payload in payloads)
        if size > LIMIT_BYTES:
            raise too_large([type(value).__name__ for value in values], size)
        return payloads


def too_large(names: Sequence[str], size: int) -> ApplicationError:
    """Say it as a step's failure, so that workflows and the mirror read it like any other."""
    sentence = (
        f"{', '.join(names)} of {size} bytes is more than Temporal takes: the video has too many parts to describe."
    )
    failure = StepFailure(code=MESSAGE_TOO_LARGE, kind=FailureKind.FATAL, sentence=sentence)
    return ApplicationError(sentence, failure, type=MESSAGE_TOO_LARGE, non_retryable=True)


data_converter = replace(pydantic_data_converter, payload_converter_class=BoundedConverter)
