"""Puts a worker together: what each pool serves, and what its steps need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from temporalio.client import Client
from temporalio.worker import FixedSizeSlotSupplier, Interceptor, Worker, WorkerTuner

from activities.audio import AudioSteps
from activities.ending import EndingSteps
from activities.failures import FailureInterceptor
from activities.pictures import PictureSteps
from activities.planning import PlanSteps
from activities.probing import ProbeSteps
from activities.publishing import ManifestSteps, PublishSteps
from activities.recording import RecordingInterceptor
from activities.removing import RemovalSteps
from activities.remuxing import RemuxSteps
from activities.subtitles import SubtitleSteps
from activities.transcode import TranscodeSteps
from activities.verifying import VerifySteps
from activities.webhooks import WebhookSteps
from contracts.queues import ENCODERS, Pool
from media.gpu import Gpu
from media.limits import Limits
from media.planning import PlanOptions
from media.tools import Toolbox
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from runtime.settings import Settings
from storage.store import Store
from workers.capacity import CapacityHint
from workers.chores import chores
from workers.deployment import deployment
from workers.idle_gpus import IdleGpus
from workers.room import Lane, Room, RoomInterceptor
from workers.version import code_version
from workflows.deliver_webhook import DeliverWebhook
from workflows.encode_list import TranscodeList
from workflows.housekeeping import Housekeeping
from workflows.transcode_video import TranscodeVideo

# Beats reach Temporal at least this often: a cancel is noticed as fast, and resume hints are as fresh.
HEARTBEAT_THROTTLE = timedelta(seconds=1)
WORKFLOW_TASKS = 100  # at once: each takes milliseconds


@dataclass(frozen=True)
class Parts:
    settings: Settings
    store: Store
    database: Database
    tools: Toolbox
    recorder: StepRecorder
    slots: Mapping[Pool, int] = field(default_factory=dict)  # how many steps of each pool run at once
    gpu: Gpu = field(default_factory=Gpu)
    room: Room | None = None  # none where nothing is run
    version: str = field(default_factory=code_version)

    @cached_property
    def webhooks(self) -> WebhookSteps:
        """One for the process, with one HTTP client, however often its pools are closed and opened."""
        # One slot is left to videos, however many receivers hang.
        return WebhookSteps(self.database, at_once=self.slots.get(Pool.IO, 2) - 1)


def steps(pool: Pool, parts: Parts) -> Sequence[Callable[..., Any]]:
    """Name the steps that a pool serves."""
    settings, store, tools = parts.settings, parts.store, parts.tools
    limits = limits_of(settings)
    match pool:
        case Pool.CPU | Pool.GPU:
            return encoding_steps(settings, store, tools, parts.gpu)
        case Pool.PROBE:
            return probing_steps(settings, store, tools)
        case Pool.IO:
            options = PlanOptions(
                ladder=settings.ladder,
                segment_seconds=settings.segment_seconds,
                preset=settings.preset,
                crf=settings.crf,
                span_seconds=settings.span_seconds,
                share_decode=settings.share_decode == "auto",
                codecs=settings.codecs,
                gpu_start_s=2 * settings.worker_heartbeat_interval,
            )
            gpus = IdleGpus(parts.database, heard_within_s=2 * settings.worker_heartbeat_interval)
            remuxing = RemuxSteps(store, tools, limits, stall_s=settings.stall_seconds)
            return (
                *probing_steps(settings, store, tools),  # of jobs that began when sources were looked at here
                remuxing.remux,
                remuxing.drop_remux,
                PlanSteps(tools, options, CapacityHint(parts.database, settings), gpus).plan,
                SubtitleSteps(store, tools).make_subtitles,
                VerifySteps(store).verify,
                ManifestSteps(store).write_manifests,
                parts.webhooks.post_delivery,
            )
        case Pool.ORCHESTRATE:
            ending = EndingSteps(parts.database)
            return (
                PublishSteps(store, parts.database).publish,
                RemovalSteps(store, parts.database).remove_partial,
                ending.finalize,
                ending.fail_job,
                parts.webhooks.record_attempt,
            )
        case Pool.ANALYSIS:
            return ()


def encoding_steps(settings: Settings, store: Store, tools: Toolbox, gpu: Gpu) -> Sequence[Callable[..., Any]]:
    """Name the steps of the encoders' pools. They need storage and ffmpeg only: remote workers run them too."""
    limits = limits_of(settings)
    pictures = PictureSteps(store, tools, limits)
    return (
        TranscodeSteps(store, tools, stall_s=settings.stall_seconds, limits=limits, gpu=gpu).transcode_span,
        AudioSteps(store, tools, stall_s=settings.stall_seconds, limits=limits).encode_audio,
        pictures.thumbnail,
        pictures.storyboard,
    )


def probing_steps(settings: Settings, store: Store, tools: Toolbox) -> Sequence[Callable[..., Any]]:
    """Name the steps that look at a source; remote workers run them too."""
    return (ProbeSteps(store, tools, limits_of(settings)).probe,)


def limits_of(settings: Settings) -> Limits:
    return Limits(
        pixels=settings.max_pixels,
        frame_rate=settings.max_frame_rate,
        streams=settings.max_streams,
        duration_s=settings.max_duration_seconds,
        least_share=settings.least_complete,
        probe_s=settings.probe_seconds,
        probe_memory_bytes=settings.probe_memory,
        encoder_memory_bytes=settings.encoder_memory,
    )


def build_worker(client: Client, pool: Pool, parts: Parts, failures: FailureInterceptor) -> Worker | None:
    """Make a pool's Temporal worker; all of a process share client and recorder. None: the pool has no steps yet."""
    # Recording is the outer one: it sees failures already translated.
    interceptors: list[Interceptor] = [RecordingInterceptor(parts.recorder), failures]
    assert parts.room is not None
    # Encodes differ in weight; of all else a slot is a slot.
    lane: Lane | None = parts.room.lane(parts.slots[pool]) if pool in ENCODERS else None
    interceptors.append(RoomInterceptor(parts.room, lane))
    served = [*steps(pool, parts)]
    workflows: list[type] = []
    if pool is Pool.ORCHESTRATE:
        workflows = [TranscodeVideo, TranscodeList, Housekeeping, DeliverWebhook]
        served += chores(client, parts.settings, parts.database, parts.store)
    if not served and not workflows:
        return None
    return Worker(
        client,
        task_queue=pool.queue,
        workflows=workflows,
        activities=served,
        interceptors=interceptors,
        tuner=WorkerTuner.create_composite(
            workflow_supplier=FixedSizeSlotSupplier(WORKFLOW_TASKS),
            activity_supplier=lane or FixedSizeSlotSupplier(parts.slots[pool]),
            local_activity_supplier=FixedSizeSlotSupplier(WORKFLOW_TASKS),
            nexus_supplier=FixedSizeSlotSupplier(1),
        ),
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        deployment_config=deployment(parts.settings, pool, parts.version),
        graceful_shutdown_timeout=timedelta(seconds=parts.settings.drain_seconds),
        disable_eager_activity_execution=True,  # eager steps would jump the priority queue
    )
