"""A Temporal that is not ours: found by its own environment configuration, behind TLS, in a namespace of its own."""

import asyncio
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
import structlog.testing
from google.protobuf.duration_pb2 import Duration
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client

from contracts.housekeeping import HOUSEKEEPING
from runtime import temporal
from runtime.embedded import embedded_temporal
from runtime.joining import Joined, resolve
from runtime.names import SettingsError
from runtime.schedules import keep_scheduled
from runtime.settings import Settings
from runtime.temporal import connect, ensure_search_attributes, retention_of
from tests.support.eventually import eventually
from tests.support.shared_temporal import shared_temporal
from tests.support.tls import behind_tls, make_certificate

PATIENCE = timedelta(seconds=5)

PROFILE = """
[profile.films]
address = "{address}"
namespace = "films"
[profile.films.tls]
server_ca_cert_path = "{server}"
client_cert_path = "{certificate}"
client_key_path = "{key}"
"""


async def test_a_profile_with_tls_and_a_namespace_is_all_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, ours = make_certificate(tmp_path, "server"), make_certificate(tmp_path, "vlog")
    async with (
        embedded_temporal(tmp_path / "t", namespace="films") as there,
        behind_tls(there.address, server, ours) as address,
    ):
        file = tmp_path / "temporal.toml"
        file.write_text(
            PROFILE.format(address=address, server=server.certificate, certificate=ours.certificate, key=ours.key)
        )
        monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
        monkeypatch.setenv("TEMPORAL_PROFILE", "films")
        settings = Settings(home=tmp_path / "home", database_url="postgresql://db/vlog")
        client = await connect(resolve(settings), connect_timeout=PATIENCE)
        assert (client.namespace, client.service_client.config.target_host) == ("films", address)

        # What Temporal must know of us is made over the same way, once.
        monkeypatch.setattr(temporal, "RETENTION", timedelta(days=45))
        with structlog.testing.capture_logs() as said:
            keeping = asyncio.create_task(keep_scheduled(client, 60))

            async def scheduled() -> bool:
                return any(line["event"] == "housekeeping_scheduled" for line in said)

            await eventually(scheduled, within=5)
            keeping.cancel()
        assert [line["event"] for line in said if line["log_level"] == "warning"] == ["retention_short"]
        assert (await client.get_schedule_handle(HOUSEKEEPING).describe()).schedule.spec.intervals
        assert await retention_of(client) == timedelta(days=30)  # ours to say, not to change
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="films"))
        assert set(temporal.SEARCH_ATTRIBUTES) <= set(known.custom_attributes)

        # Without our certificate nobody answers; without the file it is said which setting is wrong.
        monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(server.certificate))
        monkeypatch.setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", str(server.key))
        with pytest.raises(RuntimeError, match="connect"):
            await connect(resolve(settings), connect_timeout=PATIENCE)
        monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(tmp_path / "gone.pem"))
        with pytest.raises(SettingsError, match="Temporal's own configuration"):
            await connect(resolve(settings), connect_timeout=PATIENCE)


async def test_an_api_key_is_sent_over_tls_and_never_to_the_embedded_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "films.a1b2c.tmprl.cloud:7233")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "films.a1b2c")
    monkeypatch.setenv("TEMPORAL_API_KEY", "a key")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    settings = Settings(home=tmp_path / "home", database_url="postgresql://db/vlog")
    client = await connect(resolve(settings), lazy=True)
    config = client.service_client.config
    assert (config.target_host, client.namespace) == ("films.a1b2c.tmprl.cloud:7233", "films.a1b2c")
    assert config.api_key == "a key" and config.tls

    ours = Joined(
        database_url="postgresql://db/vlog",
        temporal_address="127.0.0.1:7233",
        temporal_namespace="default",
        storage_url="file:///tmp",
        embedded_temporal=True,
    )
    config = (await connect(ours, lazy=True)).service_client.config
    assert config.api_key is None and not config.tls


async def test_six_processes_register_what_is_searched_by_in_a_new_namespace() -> None:
    name, month = f"bare-{uuid.uuid4().hex[:8]}", Duration(seconds=30 * 24 * 3600)
    async with shared_temporal() as client:
        await client.workflow_service.register_namespace(
            RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=month)
        )
        address = client.service_client.config.target_host
        there = [await Client.connect(address, namespace=name, lazy=True) for _ in range(6)]

        async def registered() -> bool:  # a server learns of its namespaces by and by, and each process looks again
            done = await asyncio.gather(*(ensure_search_attributes(each) for each in there), return_exceptions=True)
            return all(one is True for one in done)

        await eventually(registered, within=20)
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=name))
    assert {key: known.custom_attributes[key] for key in temporal.SEARCH_ATTRIBUTES} == temporal.SEARCH_ATTRIBUTES
