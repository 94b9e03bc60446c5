"""The way to Temporal: one connection, the names its UI searches by, and how long it remembers."""

from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from contracts.queues import SEARCH_OWNER, SEARCH_TIER, SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS
from runtime.joining import Joined, NotRunning
from runtime.names import SettingsError
from runtime.payloads import data_converter

RETENTION = timedelta(days=30)  # what a rebuild of the mirror wants; the embedded server is given it
RPC_TIMEOUT = timedelta(seconds=10)

SEARCH_ATTRIBUTES = {
    SEARCH_VIDEO_ID: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_VIDEO_STATUS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_OWNER: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_TIER: IndexedValueType.INDEXED_VALUE_TYPE_INT,
}


def whereabouts(joined: Joined) -> ClientConnectConfig:
    """Say how to reach Temporal: what VLog's settings name, and of the rest what Temporal's own configuration says.

    That is its environment (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS…) and the profile of
    its configuration file. The embedded server has neither TLS nor keys: a person's profile is not about it.
    Raises SettingsError or NotRunning.
    """
    config: ClientConnectConfig = {}
    if not joined.embedded_temporal:
        try:
            config = ClientConfig.load_client_connect_config()
        except (RuntimeError, ValueError, OSError) as error:  # an unknown profile, a broken file, no such certificate
            raise SettingsError(f"Temporal's own configuration cannot be used: {error}") from error
    address = joined.temporal_address or config.get("target_host")
    if not address:
        raise NotRunning("Nobody says where Temporal is. Set VLOG_TEMPORAL_ADDRESS, or TEMPORAL_ADDRESS.")
    config["target_host"] = address
    config["namespace"] = joined.temporal_namespace or config.get("namespace") or "default"
    return config


async def connect(
    joined: Joined,
    *,
    lazy: bool = False,
    identity: str | None = None,
    worker_heartbeat_interval: timedelta | None = None,
    connect_timeout: timedelta | None = None,
) -> Client:
    """Connect to Temporal; lazily for a process that must start while Temporal is away.

    A worker passes its heartbeat interval: it needs a runtime of its own, so connect once per process.
    """
    config = whereabouts(joined)
    return await Client.connect(
        config["target_host"],
        namespace=config["namespace"],
        data_converter=data_converter,
        api_key=config.get("api_key"),
        # Named either way: without a word the SDK takes a key for a sign of TLS.
        tls=config.get("tls", False),
        rpc_metadata=config.get("rpc_metadata") or {},
        identity=identity,
        lazy=lazy,
        connect_timeout=connect_timeout,
        runtime=_runtime(worker_heartbeat_interval) if worker_heartbeat_interval else None,
    )


async def ensure_search_attributes(client: Client) -> bool:
    """Register what the UI searches by; False where that is an administrator's, and they may be missing.

    Safe to repeat, and side by side with another process doing the same.
    """
    try:
        known = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
        )
        missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in known.custom_attributes}
        if missing:
            request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
            await client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            return False
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            raise
    return True


async def retention_of(client: Client) -> timedelta:
    """Say how long the namespace keeps the history of what has ended."""
    described = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    return described.config.workflow_execution_retention_ttl.ToTimedelta()


def too_forgetful(retention: timedelta) -> str:
    """Say what a short memory costs; nothing when it is long enough."""
    if retention >= RETENTION:
        return ""
    days = retention / timedelta(days=1)
    return (
        f"Temporal forgets an ended job after {days:g} days: `vlog mirror rebuild` cannot bring back older ones. "
        f"{RETENTION.days} days are meant: temporal operator namespace update --retention {RETENTION.days}d"
    )


def _runtime(worker_heartbeat_interval: timedelta) -> Runtime:
    return Runtime(telemetry=TelemetryConfig(), worker_heartbeat_interval=worker_heartbeat_interval)
