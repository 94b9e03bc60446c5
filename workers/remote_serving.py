"""`vlog worker --api … --key …`: a machine that reaches nothing but the API, from its start to its end."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from activities.failures import FailureInterceptor
from contracts.gateway import REMOTE_POOLS
from contracts.queues import Pool, with_probes
from media.tools import find_tools
from runtime.names import SettingsError
from runtime.settings import Settings
from storage.cache import Cache
from storage.http_calls import WorkerCalls, is_open_to_all
from storage.local import LocalStore
from workers.describing import about
from workers.gpu import look_for_gpu
from workers.machine import this_machine
from workers.remote import Kit, RemoteWorker
from workers.remote_api import RemoteApi
from workers.room import Room
from workers.slots import all_slots, memory_for_steps
from workers.stopping import stop_on_signals
from workers.version import code_version

log = logging.getLogger(__name__)

WORK = "work"  # below the home: scratch, and copies of sources
ABANDONED = 100


async def serve_remote(settings: Settings, pools: Sequence[Pool]) -> None:
    """Ask for steps until a signal says stop, then drain; a second signal hands everything back now."""
    url, key = settings.worker_api_url, settings.worker_api_key
    if url is None or key is None:
        raise SettingsError("A worker of an API elsewhere needs its address and a key: --api URL --key KEY.")
    if strange := [pool.value for pool in pools if pool not in REMOTE_POOLS]:
        raise SettingsError(f"A worker that reaches only the API serves cpu, gpu and probe, not {', '.join(strange)}.")
    failures = FailureInterceptor()
    stopping = stop_on_signals(failures.hand_back_now)

    tools = await find_tools(settings.ffmpeg)
    pools, gpu = await look_for_gpu(settings, pools, tools)
    machine = replace(this_machine(), gpu_sessions=gpu.sessions)
    pools = with_probes(pools)
    slots = all_slots(pools, settings, machine)
    work = LocalStore(settings.home / WORK, mounted=False)
    await work.remove_abandoned(limit=ABANDONED)
    cache = Cache(
        settings.home / WORK / "cache", limit_bytes=settings.cache_bytes, reserve_bytes=settings.scratch_reserve
    )
    room = Room(
        memory_for_steps(settings, machine),
        work.free_bytes,
        reserve_bytes=settings.scratch_reserve,
        encoder_bytes=settings.encoder_memory,
    )
    calls = WorkerCalls(url, key.get_secret_value())
    described = {"capabilities": about(slots, machine, tools, gpu), "version": code_version()}
    worker = RemoteWorker(RemoteApi(calls), Kit(settings, tools, gpu, work, cache), room, slots, failures)
    failures.health = worker.quarantine
    if is_open_to_all(url):
        log.warning("the key can be read on its way to %s: give the API a certificate, and an address with https", url)
    log.info("serving %s for %s", ", ".join(pools), url)
    try:
        await worker.run(stopping, described)
    finally:
        await calls.aclose()
