"""The worker process: join, register, serve the pools, drain on SIGTERM."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from temporalio.client import Client

from activities.failures import FailureInterceptor
from contracts.queues import ENCODERS, Pool, with_probes
from contracts.states import WorkerType
from media.tools import find_tools
from mirror import writes
from mirror.claims import WorkerIdentity, WorkerRegistration
from mirror.newness import newness
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from runtime.joining import Joined, resolve
from runtime.schedules import keep_scheduled
from runtime.settings import Settings
from runtime.temporal import connect, ensure_search_attributes, whereabouts
from storage.opening import open_store
from storage.store import Store
from workers.build import Parts, build_worker
from workers.describing import about
from workers.gate import Gate
from workers.gpu import look_for_gpu
from workers.machine import this_machine
from workers.naming import name_for
from workers.quarantine import Quarantine
from workers.quarantine_notes import MirrorNotes
from workers.registering import keep_registered
from workers.room import Room
from workers.self_test import test_encode, test_gpu
from workers.serving import Serving
from workers.slots import all_slots, memory_for_steps
from workers.stopping import stop_on_signals

log = logging.getLogger(__name__)

T = TypeVar("T")

POOL_CONNECTIONS = 2
TEMPORAL_WAIT_S = 3.0


async def serve(settings: Settings, pools: Sequence[Pool]) -> None:
    """Run the pools until a signal says stop, then drain; a second signal stops now."""
    failures = FailureInterceptor()
    stopping = stop_on_signals(failures.hand_back_now)

    joined = resolve(settings)
    called = name_for(settings, pools)  # by what it is told to serve: a GPU that fails today does not rename it
    tools = await find_tools(settings.ffmpeg)
    pools, gpu = await look_for_gpu(settings, pools, tools)
    machine = replace(this_machine(), gpu_sessions=gpu.sessions)
    pools = with_probes(pools)
    slots = all_slots(pools, settings, machine)
    identity = WorkerIdentity(
        worker_id=called.worker_id,
        worker_name=called.name,
        # A worker is busy when its encoders are: a probe under way keeps nobody waiting.
        slots={pool.queue: room for pool, room in slots.items() if pool in ENCODERS},
    )
    database = Database(joined.database_url, pool_size=POOL_CONNECTIONS)
    neighbours = await _unless(stopping, _neighbours(database, joined, settings, identity.worker_name))
    if neighbours is None:
        log.info("stopped before there was anybody to work for")
        await database.close()
        return
    client, store = neighbours
    claim_minutes = settings.worker_claim_duration_minutes
    recorder = StepRecorder(database, identity, claim_s=claim_minutes * 60 if claim_minutes else None)
    room = Room(
        memory_for_steps(settings, machine),
        store.free_bytes,
        reserve_bytes=settings.scratch_reserve,
        encoder_bytes=settings.encoder_memory,
    )
    parts = Parts(settings, store, database, tools, recorder, slots, gpu, room)

    registration = WorkerRegistration(
        worker_id=identity.worker_id,
        worker_name=identity.worker_name,
        worker_type=WorkerType.LOCAL,
        capabilities=about(slots, machine, tools, gpu),
        version=parts.version,
    )
    recording = asyncio.create_task(recorder.run())
    serving = Serving(lambda pool: build_worker(client, pool, parts, failures), failures)
    gate = Gate(pools, serving)
    quarantine = Quarantine(
        MirrorNotes(database, identity.worker_id, heard_within_s=3 * settings.worker_heartbeat_interval),
        pools,
        gate.set_aside,
        encode=partial(test_encode, store, tools),
        encode_on_device=partial(test_gpu, tools, gpu, settings.gpu_device or ""),
        first_wait_s=settings.quarantine_seconds,
    )
    failures.health, failures.storage = quarantine, store.check
    testing = asyncio.create_task(quarantine.run())

    async def be_known() -> None:
        await quarantine.recall()  # first: whoever is welcome gets work
        await keep_registered(database, registration, recorder, settings.worker_heartbeat_interval, gate.heard)

    registering = asyncio.create_task(be_known())
    scheduling = asyncio.create_task(keep_scheduled(client, settings.stale_job_check_interval))
    log.info("serving %s as %s", ", ".join(pools), identity.worker_name)
    try:
        await serving.run(stopping)
    finally:
        registering.cancel()
        testing.cancel()
        scheduling.cancel()
        await recorder.close()
        recording.cancel()
        with contextlib.suppress(Exception):  # Postgres may be gone already; housekeeping will notice the silence
            async with asyncio.timeout(3), database.write() as session:
                await writes.worker_gone(session, identity.worker_id)
        await database.close()


async def _unless(stopping: asyncio.Event, waiting: Coroutine[Any, Any, T]) -> T | None:
    """Wait, unless a signal comes first: what would wait for ever could only be killed."""
    work, stop = asyncio.create_task(waiting), asyncio.create_task(stopping.wait())
    await asyncio.wait([work, stop], return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if work.done():
        return work.result()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    return None


async def _neighbours(database: Database, joined: Joined, settings: Settings, name: str) -> tuple[Client, Store]:
    client = await _connected(joined, name)
    await ensure_search_attributes(client)
    await database.wait_for_schema(timeout_s=120)
    return client, open_store(joined.storage_url, settings, is_new=await newness(database))


async def _connected(joined: Joined, name: str) -> Client:
    """Connect to Temporal; one that is not there yet is waited for, for workers often start first."""
    address = whereabouts(joined)["target_host"]
    while True:
        try:
            return await connect(joined, identity=name)
        except RuntimeError as error:  # the SDK's word for "cannot connect"
            log.warning("Temporal does not answer at %s, trying again: %s", address, error)
            await asyncio.sleep(TEMPORAL_WAIT_S)
