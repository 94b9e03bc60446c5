"""Puts housekeeping's chores together: the one place where they meet the settings and a way to start workflows."""

from collections.abc import Callable
from typing import Any

from temporalio.client import Client

from activities.chores.claims import ClaimsChore
from activities.chores.counting import CountingChore
from activities.chores.deliveries import DeliveriesChore
from activities.chores.drift import DriftChore
from activities.chores.outputs import OutputsChore
from activities.chores.purging import PurgingChore
from activities.chores.scratch import ScratchChore
from activities.chores.starting import StartingChore
from activities.chores.uploads import UploadsChore
from activities.chores.workers import WorkersChore
from mirror.deliveries import DeliveryOutbox
from mirror.outbox import Outbox
from mirror.sessions import Database
from runtime.settings import Settings
from storage.store import Store
from workflows.delivering import DeliveryStarter
from workflows.starting import TranscodeStarter


def chores(client: Client, settings: Settings, database: Database, store: Store) -> list[Callable[..., Any]]:
    """Name the chores that a worker of the pool `orchestrate` serves."""
    starter = TranscodeStarter(
        client, heartbeat_timeout_s=settings.heartbeat_timeout_s, critical=settings.critical_qualities
    )
    outbox = Outbox(database, starter)
    retention_s = settings.archive_retention_days * 24 * 3600
    return [
        StartingChore(outbox).start_left_over,
        DriftChore(database, client, outbox, store).mend_drift,
        ClaimsChore(database, client).release_expired_claims,
        WorkersChore(database, silent_s=settings.worker_offline_threshold_minutes * 60).mark_silent_workers,
        DeliveriesChore(database, DeliveryOutbox(database, DeliveryStarter(client))).carry_deliveries,
        ScratchChore(database, store).remove_scratch,
        UploadsChore(database, store).remove_expired_uploads,
        OutputsChore(database, store, grace_s=settings.old_rendition_grace_seconds).remove_outputs,
        PurgingChore(database, store, retention_s=retention_s).purge_videos,
        CountingChore(database).count_events,
    ]
