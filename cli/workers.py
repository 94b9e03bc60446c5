"""`vlog workers`: who encodes, and what people do with them. All of it is HTTP.

A worker is named by its name, its id or the beginning of that; one that several answer to is asked for again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import typer

from cli.client import ApiClient, Json
from cli.finding import called, client_settings
from cli.terminal import CliError, printable, say, seconds_text, show_table
from cli.videos import ApiOption, JsonOption, print_json
from contracts.queues import Pool
from contracts.states import WorkerStatus, WorkerType

app = typer.Typer(help="The workers: list, show, register, disable, enable, revoke, delete.", no_args_is_help=False)

Name = Annotated[str, typer.Argument(metavar="WORKER", help="Its name, its id, or the beginning of its id.")]
Result = TypeVar("Result")
LEAST_OF_AN_ID = 4
SHOWN_OF_AN_ID = 8  # enough to name one by; `show` and --json have the whole
MOST_SLOTS = 10_000  # of a machine that says so


@app.callback(invoke_without_command=True)
def workers(context: typer.Context, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """The workers; without a command, their list."""
    if context.invoked_subcommand is None:
        list_workers(as_json=as_json, api=api)


@app.command("list")
def list_workers(
    status: Annotated[WorkerStatus | None, typer.Option(help="Only those in this state.")] = None,
    worker_type: Annotated[WorkerType | None, typer.Option("--type", help="Only local or remote ones.")] = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """List workers, the newest first."""
    found = _ask(api, lambda client: client.workers(status=status, type=worker_type))
    if as_json:
        print_json({"items": found})
        return
    if not found:
        say(f"No workers: `{called()} worker` starts one here, `{called()} workers register` lets a remote one in.")
        return
    columns = ("name", "status", "heard", "job", "slots", "version", "id")
    show_table("", columns, [_row(worker) for worker in found], right=("heard", "job"))


@app.command()
def show(worker: Name, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Show one worker: how it stands, its job, what it did last, what is known of its keys."""

    async def act(client: ApiClient) -> Json:
        return await client.worker(await _find(client, worker))

    shown = _ask(api, act)
    if as_json:
        print_json(shown)
        return
    say(f"{_name(shown)}  ({shown['worker_type']}, {_status(shown)})", style="bold")
    for name, value in _facts(shown):
        say(f"  {name:<10} {printable(value)}")
    for key in shown["keys"]:
        say(f"  {'key':<10} {_key(key)}")
    if shown["steps"]:
        rows = [_step(step) for step in shown["steps"]]
        show_table("last steps", ("job", "step", "outcome", "began", "error"), rows, right=("job",))


@app.command()
def register(
    name: Annotated[str | None, typer.Argument(help="A name for people.")] = None,
    capabilities: Annotated[str, typer.Option(metavar="JSON", help="What it can do.")] = "{}",
    metadata: Annotated[str, typer.Option(metavar="JSON", help="Where it runs.")] = "{}",
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Register a remote worker and print its key, which is shown this once. Local ones register themselves."""
    body = {
        "worker_name": name,
        "capabilities": _object("capabilities", capabilities),
        "metadata": _object("metadata", metadata),
    }
    own = client_settings().worker_admin_secret
    secret = own.get_secret_value() if own else None
    _say_key(_ask(api, lambda client: client.command("POST", "/api/worker/register", body, secret=secret)), as_json)


@app.command()
def key(
    worker: Name,
    days: Annotated[float | None, typer.Option(min=0.001, max=3650, help="It expires after so many.")] = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Give a worker another key, beside those it has, and print it: it is shown this once."""
    _say_key(_command(api, worker, "POST", "/keys", {"expires_in_days": days}), as_json)


@app.command()
def disable(worker: Name, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Give a worker no more work; with its next heartbeat it hands back what it has."""
    _say_state(_command(api, worker, "PUT", "/disable"), as_json)


@app.command()
def enable(worker: Name, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Let a disabled worker work again."""
    _say_state(_command(api, worker, "PUT", "/enable"), as_json)


@app.command()
def revoke(
    worker: Name,
    key_id: Annotated[int | None, typer.Option("--key", min=1, help="Only this key, by its number.")] = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Shut a worker out: none of its keys is good any more."""
    if key_id is None:
        _say_state(_command(api, worker, "POST", "/revoke"), as_json)
    else:
        _say_state(_command(api, worker, "DELETE", f"/keys/{key_id}"), as_json)


@app.command()
def delete(worker: Name, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Forget a worker and its keys; the jobs it worked on keep its name."""
    gone = _command(api, worker, "DELETE")
    if as_json:
        print_json(gone)
    else:
        say(f"Worker {gone['worker_id']} is deleted.")


def _ask(api: str | None, act: Callable[[ApiClient], Awaitable[Result]]) -> Result:
    async def ask() -> Result:
        async with ApiClient.of(client_settings(), api) as client:
            return await act(client)

    return asyncio.run(ask())


def _command(api: str | None, worker: str, method: str, verb: str = "", body: Json | None = None) -> Json:
    async def act(client: ApiClient) -> Json:
        return await client.command(method, f"/api/workers/{await _find(client, worker)}{verb}", body)

    return _ask(api, act)


async def _find(client: ApiClient, said: str) -> str:
    """Find the one worker that is meant."""
    known = {worker["worker_id"]: worker for worker in await client.workers()}
    if said in known:
        return said
    named = [worker_id for worker_id, worker in known.items() if worker["worker_name"] == said]
    begun = [worker_id for worker_id in known if len(said) >= LEAST_OF_AN_ID and worker_id.startswith(said)]
    meant: list[str] = named or begun
    if len(meant) > 1:
        raise CliError(f"{len(meant)} workers answer to {said!r}: {', '.join(meant)}.", mend="name one by its id")
    if not meant:
        raise CliError(f"There is no worker {said!r}.", mend=f"{called()} workers lists them")
    return meant[0]


def _object(name: str, text: str) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CliError(f"--{name} is not a JSON object.", mend=f"""write it like --{name} '{{"gpu": "nvenc"}}'""")
    return value


def _say_key(made: Json, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    say(f"worker  {made['worker_id']}")
    say(f"key     {made['api_key']}")
    say("Give the key to the worker, which sends it as X-Worker-API-Key. Keep it now: it is not shown again.")


def _say_state(worker: Json, as_json: bool) -> None:
    if as_json:
        print_json(worker)
    else:
        say(f"Worker {_name(worker)} is {_status(worker)}.")


def _name(worker: Json) -> str:
    return printable(worker["worker_name"] or worker["worker_id"])


def _status(worker: Json) -> str:
    if worker["standing"] == "revoked":
        return "revoked"
    aside = ", ".join(worker["pools_aside"])
    return f"{worker['status']}, set aside: {printable(aside)}" if aside else str(worker["status"])


def _row(worker: Json) -> tuple[object, ...]:
    shown = " ".join(f"{pool}:{count}" for pool, count in _slots(worker["capabilities"].get("slots")))
    return (
        _name(worker),
        _status(worker),
        _ago(worker["last_heartbeat"]),
        worker["current_job_id"] or "–",
        shown or "–",
        worker["version"] or "–",
        worker["worker_id"][:SHOWN_OF_AN_ID],
    )


def _slots(told: object) -> list[tuple[str, int]]:
    """Read a worker's own word for its slots: what cannot be one would push everybody's state out of the table."""
    said = told if isinstance(told, dict) else {}
    return [
        (pool, count)
        for pool, count in said.items()
        if pool in set(Pool) and type(count) is int and 0 <= count < MOST_SLOTS
    ]


def _facts(worker: Json) -> Iterator[tuple[str, str]]:
    yield "id", worker["worker_id"]
    yield "registered", _when(worker["registered_at"])
    yield "heard", f"{_ago(worker['last_heartbeat'])} ago" if worker["last_heartbeat"] else "never"
    if job := worker["job"]:
        yield "job", f"{job['job_id']} of video {job['video_id']}: {job['current_step']}, {job['progress_percent']:g} %"
    if worker["version"]:
        yield "version", worker["version"]
    if worker["quarantined_at"]:
        pools = printable(", ".join(worker["pools_aside"]))
        yield (
            "set aside",
            f"{pools}, since {_when(worker['quarantined_at'])}: it failed a test of its own, or five steps",
        )
    for name in ("capabilities", "metadata"):
        if worker[name]:
            yield name[:10], json.dumps(worker[name], ensure_ascii=False)


def _key(key: Json) -> str:
    said = [f"{key['key_id']}: {printable(key['key_prefix'])}…, made {_when(key['created_at'])}"]
    said += [f"revoked {_when(key['revoked_at'])}"] if key["revoked_at"] else []
    said += [f"expires {_when(key['expires_at'])}"] if key["expires_at"] else []
    said += [f"last used {_when(key['last_used_at'])}" if key["last_used_at"] else "never used"]
    return ", ".join(said)


def _step(step: Json) -> tuple[object, ...]:
    error = f"{step['error_code']}: {step['error_message'] or ''}" if step["error_code"] else ""
    return step["job_id"], step["step_key"], step["outcome"], _when(step["started_at"]), error[:80]


def _when(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def _ago(text: str | None) -> str:
    if text is None:
        return "–"
    return seconds_text(max(0.0, (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()))
