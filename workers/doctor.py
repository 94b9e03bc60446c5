"""`vlog doctor`: look at everything a video needs, and say how to mend what is missing."""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from contracts.errors import VlogError
from contracts.queues import Pool
from media.tools import find_tools
from mirror.newness import is_new
from mirror.sessions import Database
from runtime.exiting import exit_now
from runtime.joining import Joined, NotRunning, resolve
from runtime.names import SettingsError
from runtime.settings import Settings, load_settings
from runtime.temporal import connect, retention_of, too_forgetful
from storage.local import KEPT, SCRATCH
from storage.opening import open_store
from workers.capabilities import describe, missing
from workers.gpu import examine_gpu
from workers.machine import this_machine
from workers.slots import all_slots, memory_for_steps

Finding = dict[str, Any]
NEIGHBOURS = ("postgres", "temporal", "storage")
LOW_DISK_BYTES = 5 << 30
STORAGE_MEND = "mount it, or start it; a folder of which you know that it is new gets an empty uploads/"
PATIENCE_S = 5
GPU_PATIENCE_S = 60  # a sleeping card, several devices, several builds


async def examine(settings: Settings) -> dict[str, Finding]:
    """Check each part on its own; one that fails does not hide the others."""
    findings: dict[str, Finding] = {"ffmpeg": await _try(_ffmpeg, settings)}
    findings["gpu"] = await _try(_gpu, settings, within_s=GPU_PATIENCE_S)
    try:
        joined = resolve(settings)
    except NotRunning as error:
        away = {"ok": False, "service": "not running", "problem": str(error), "mend": "vlog up"}
        findings |= dict.fromkeys(NEIGHBOURS, away)
    else:
        findings["postgres"] = await _try(_postgres, joined)
        findings["temporal"] = await _try(_temporal, joined)
        findings["storage"] = await _try(_storage, (joined, settings))
    findings["disk"] = await _try(_disk, settings)
    findings["worker"] = await _try(_worker, settings)
    return findings | {"settings": settings.shown()}


async def _try(
    check: Callable[[Any], Awaitable[Finding]], subject: Any, *, within_s: float = PATIENCE_S * 2
) -> Finding:
    try:
        async with asyncio.timeout(within_s):
            return {"ok": True} | await check(subject)
    except VlogError as error:
        return {"ok": False, "problem": error.sentence}
    except Exception as error:
        return {"ok": False, "problem": f"{type(error).__name__}: {error}"[:300]}


async def _ffmpeg(settings: Settings) -> Finding:
    box = await find_tools(settings.ffmpeg)
    best = box.pick()
    return {
        "path": str(best.ffmpeg),
        "version": best.version,
        "build": best.build,
        "found": [describe(tool) for tool in box.tools],
        "missing": missing(box, settings.codecs),
    }


async def _gpu(settings: Settings) -> Finding:
    return await examine_gpu(settings, await find_tools(settings.ffmpeg), trial_s=PATIENCE_S * 2)


async def _postgres(joined: Joined) -> Finding:
    database = Database(joined.database_url, pool_size=1)
    try:
        await database.wait_for_schema(timeout_s=PATIENCE_S)
    finally:
        await database.close()
    return {"address": urlsplit(joined.database_url).netloc.rsplit("@", 1)[-1]}


async def _temporal(joined: Joined) -> Finding:
    client = await connect(joined)
    healthy = await client.service_client.check_health()
    config = client.service_client.config
    retention = await retention_of(client)
    return {
        "ok": healthy,
        "address": config.target_host,
        "namespace": client.namespace,
        "tls": bool(config.tls),
        "ui": joined.temporal_ui_url,
        "retention_days": retention / timedelta(days=1),
        "warning": too_forgetful(retention) or None,
    }


async def _storage(subject: tuple[Joined, Settings]) -> Finding:
    joined, settings = subject
    new = await _is_new(joined)
    if new and (place := await asyncio.to_thread(_yet_to_make, joined.storage_url)) is not None:
        # We may be root: what we made the service could not use.
        if os.access(place, os.W_OK | os.X_OK):
            return {"url": joined.storage_url, "new": "nothing is in it yet"}
        problem = f"{place} cannot be written to by this user."
        return {"ok": False, "url": joined.storage_url, "problem": problem, "mend": STORAGE_MEND}
    store = open_store(joined.storage_url, settings, is_new=lambda: new, patience_s=PATIENCE_S)
    try:
        await store.check()
    except VlogError as error:
        return {"ok": False, "url": joined.storage_url, "problem": error.sentence, "mend": STORAGE_MEND}
    return {"url": joined.storage_url, "free_bytes_for_work": await store.free_bytes()}


async def _is_new(joined: Joined) -> bool:
    """Tell whether an empty storage is as it should be; while Postgres is away nobody can."""
    database = Database(joined.database_url, pool_size=1)
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await is_new(database)
    except Exception:  # which is said of Postgres, not of the storage
        return False
    finally:
        await database.close()


async def _disk(settings: Settings) -> Finding:
    free = await asyncio.to_thread(_free_bytes, settings.home)
    found: Finding = {"ok": free > LOW_DISK_BYTES, "free_bytes": free}
    return found if found["ok"] else found | {"mend": "free some space, or set VLOG_HOME or VLOG_STORAGE_URL"}


async def _worker(settings: Settings) -> Finding:
    """Say what a worker here would take on; a GPU's share is known only to the worker that has tried it."""
    machine = this_machine()
    pools = [pool for pool in Pool if pool is not Pool.GPU]
    return {
        "cores": machine.cores,
        "memory_bytes": machine.memory_bytes,
        "memory_for_steps_bytes": memory_for_steps(settings, machine),
        "slots": {pool.value: room for pool, room in all_slots(pools, settings, machine).items()},
    }


def _yet_to_make(storage_url: str) -> Path | None:
    """Find where the service will begin its folder; None when it has, or when it is no folder."""
    parts = urlsplit(storage_url)
    folder = Path(unquote(parts.path))
    if parts.scheme != "file" or any((folder / name).is_dir() for name in (SCRATCH, *KEPT)):
        return None
    return _there(folder)


def _free_bytes(place: Path) -> int:
    return shutil.disk_usage(_there(place)).free


def _there(place: Path) -> Path:
    """Go up to a folder that exists."""
    while not place.exists():
        place = place.parent
    return place


def show(findings: dict[str, Finding]) -> None:
    not_running = "service" in findings[NEIGHBOURS[0]]
    for name, finding in findings.items():
        if name == "settings" or (not_running and name in NEIGHBOURS[1:]):
            continue
        if not_running and name in NEIGHBOURS:  # one reason, said once
            print(f"BAD  service: {finding['service']}. {finding['problem']}")
            continue
        print(f"{'ok ' if finding['ok'] else 'BAD'}  {name}")
        for key, value in finding.items():
            if key != "ok" and value not in (None, {}, []):
                _show(key, value)
    print("settings")
    for key, value in findings["settings"].items():
        print(f"       {key}={'' if value is None else value}")


def _show(key: str, value: Any) -> None:
    """Print one line, or one per entry of a list or a table."""
    if isinstance(value, list):
        for entry in value:
            print(f"       {key}: {_line(entry)}")
    elif isinstance(value, dict):
        for name, entry in value.items():
            print(f"       {key} {name}: {_line(entry)}")
    else:
        print(f"       {key}: {value}")


def _line(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    return "; ".join(f"{key} {', '.join(value) if isinstance(value, list) else value}" for key, value in entry.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="vlog doctor")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--home", help="the home of the service, instead of VLOG_HOME")
    arguments = parser.parse_args()
    try:
        settings = load_settings(home=arguments.home)
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    findings = asyncio.run(examine(settings))
    with contextlib.suppress(BrokenPipeError):  # `vlog doctor | head`
        if arguments.json:
            print(json.dumps(findings, indent=2, default=str), flush=True)
        else:
            show(findings)
    exit_now(0 if all(f["ok"] for name, f in findings.items() if name != "settings") else 1)


if __name__ == "__main__":
    main()
