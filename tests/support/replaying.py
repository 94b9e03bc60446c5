"""Does today's code, given a history, decide again what was decided then?"""

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from runtime.payloads import data_converter
from workflows.deliver_webhook import DeliverWebhook
from workflows.encode_list import TranscodeList
from workflows.housekeeping import Housekeeping
from workflows.transcode_video import TranscodeVideo

WORKFLOWS = (TranscodeVideo, TranscodeList, DeliverWebhook, Housekeeping)


async def replay(history: WorkflowHistory) -> None:
    """Fail where it does not: then a video under way would be stuck on the new code."""
    await Replayer(workflows=WORKFLOWS, data_converter=data_converter).replay_workflow(history)
