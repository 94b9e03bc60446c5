"""The way to Temporal: one connection, the names its UI searches by, and how long it remembers."""

from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from contracts.queues import SEARCH_TIER, SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS
from runtime.joining import Joined

RETENTION = timedelta(days=30)
RPC_TIMEOUT = timedelta(seconds=10)

SEARCH_ATTRIBUTES = {
    SEARCH_VIDEO_ID: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_VIDEO_STATUS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_TIER: IndexedValueType.INDEXED_VALUE_TYPE_INT,
}


async def connect(
    joined: Joined,
    *,
    lazy: bool = False,
    identity: str | None = None,
    worker_heartbeat_interval: timedelta | None = None,
    connect_timeout: timedelta | None = None,
) -> Client:
    """Connect to Temporal; lazily for a process that must start while Temporal is away.

    TLS and API keys come from Temporal's own environment configuration (TEMPORAL_TLS, TEMPORAL_API_KEY,
    temporal.toml), except for the embedded server, which has neither. A worker passes its heartbeat interval:
    it needs a runtime of its own, so connect once per process.
    """
    config: ClientConnectConfig = {} if joined.embedded_temporal else ClientConfig.load_client_connect_config()
    return await Client.connect(
        joined.temporal_address,
        namespace=joined.temporal_namespace,
        data_converter=pydantic_data_converter,
        api_key=config.get("api_key"),
        tls=config.get("tls"),
        rpc_metadata=config.get("rpc_metadata") or {},
        identity=identity,
        lazy=lazy,
        connect_timeout=connect_timeout,
        runtime=_runtime(worker_heartbeat_interval) if worker_heartbeat_interval else None,
    )


async def ensure_search_attributes(client: Client) -> None:
    """Register what the UI searches by. Safe to repeat, and side by side with another process doing the same."""
    known = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in known.custom_attributes}
    if not missing:
        return
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
    try:
        await client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            raise


async def ensure_retention(client: Client, retention: timedelta = RETENTION) -> None:
    """Make the namespace keep closed histories this long at least. For the embedded server, whose default is a day."""
    described = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    if described.config.workflow_execution_retention_ttl.ToTimedelta() >= retention:
        return
    ttl = Duration()
    ttl.FromTimedelta(retention)
    await client.workflow_service.update_namespace(
        UpdateNamespaceRequest(
            namespace=client.namespace, config=NamespaceConfig(workflow_execution_retention_ttl=ttl)
        ),
        timeout=RPC_TIMEOUT,
    )


def _runtime(worker_heartbeat_interval: timedelta) -> Runtime:
    return Runtime(telemetry=TelemetryConfig(), worker_heartbeat_interval=worker_heartbeat_interval)
