"""The OpenAPI page: every route explains itself and shows what it answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from api.app import create_app
from mirror.sessions import Database
from runtime.settings import Settings
from storage.local import LocalStore


@pytest.fixture
async def schema(tmp_path: Path) -> dict[str, Any]:
    database = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none")
    temporal = await Client.connect("127.0.0.1:1", lazy=True)
    store = LocalStore(tmp_path / "storage")
    return create_app(Settings(home=tmp_path), database, store, temporal, sealing_key="x" * 16).openapi()


async def test_the_routes_of_the_design_are_there(schema: dict[str, Any]) -> None:
    routes = {(method, path) for path, methods in schema["paths"].items() for method in methods}
    assert routes >= {
        ("post", "/api/videos"),
        ("put", "/api/videos"),
        ("get", "/api/videos"),
        ("get", "/api/videos/{video_id}"),
        ("get", "/api/videos/{video_id}/progress"),
        ("get", "/api/jobs"),
        ("get", "/api/jobs/{job_id}"),
        ("get", "/api/jobs/{job_id}/events"),
        ("get", "/api/jobs/{job_id}/steps"),
        ("post", "/api/videos/{video_id}/retry"),
        ("post", "/api/videos/{video_id}/retranscode"),
        ("post", "/api/videos/{video_id}/cancel"),
        ("post", "/api/videos/{video_id}/restore"),
        ("delete", "/api/videos/{video_id}"),
        ("post", "/api/jobs/{job_id}/cancel"),
        ("post", "/api/jobs/{job_id}/pause"),
        ("post", "/api/jobs/{job_id}/resume"),
        ("post", "/api/jobs/{job_id}/priority"),
        ("post", "/api/videos/{video_id}/publish"),
        ("post", "/api/videos/{video_id}/unpublish"),
        ("post", "/api/videos/{video_id}/links"),
        ("get", "/videos/~{link}/{slug}/{path}"),
        ("get", "/api/queues"),
        ("post", "/api/uploads"),
        ("head", "/api/uploads/{upload_id}"),
        ("patch", "/api/uploads/{upload_id}"),
        ("delete", "/api/uploads/{upload_id}"),
        ("post", "/api/session"),
        ("get", "/api/session"),
        ("delete", "/api/session"),
        ("post", "/api/worker/register"),
        ("post", "/api/worker/heartbeat"),
        ("post", "/api/worker/claim"),
        ("post", "/api/worker/progress"),
        ("post", "/api/worker/complete"),
        ("post", "/api/worker/fail"),
        ("get", "/api/worker/source/{key}"),
        ("get", "/api/worker/output/{key}"),
        ("put", "/api/worker/output/{key}"),
        ("delete", "/api/worker/output/{key}"),
        ("get", "/api/workers"),
        ("get", "/api/workers/{worker_id}"),
        ("delete", "/api/workers/{worker_id}"),
        ("put", "/api/workers/{worker_id}/disable"),
        ("put", "/api/workers/{worker_id}/enable"),
        ("post", "/api/workers/{worker_id}/revoke"),
        ("post", "/api/workers/{worker_id}/keys"),
        ("delete", "/api/workers/{worker_id}/keys/{key_id}"),
        ("get", "/api/events/progress"),
        ("get", "/api/events/workers"),
        ("get", "/api/events"),
        ("post", "/api/webhooks"),
        ("get", "/api/webhooks"),
        ("get", "/api/webhooks/{webhook_id}"),
        ("patch", "/api/webhooks/{webhook_id}"),
        ("delete", "/api/webhooks/{webhook_id}"),
        ("post", "/api/webhooks/{webhook_id}/test"),
        ("get", "/api/webhooks/{webhook_id}/deliveries"),
        ("get", "/api/webhooks/{webhook_id}/deliveries/{delivery_id}"),
        ("post", "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"),
        ("get", "/metrics"),
        ("get", "/health"),
        ("get", "/api/health"),
        ("get", "/videos/{slug}/{path}"),
        ("head", "/videos/{slug}/{path}"),
    }


async def test_every_answer_has_an_example(schema: dict[str, Any]) -> None:
    lists = {"Span"}
    for name, model in schema["components"]["schemas"].items():
        if model.get("type") == "object" and not name.startswith("Listing") and name not in lists:
            assert model.get("examples"), name


async def test_every_example_fits_its_model() -> None:
    from api import (
        schemas,
        schemas_events,
        schemas_gateway,
        schemas_jobs,
        schemas_queues,
        schemas_report,
        schemas_session,
        schemas_sharing,
        schemas_webhooks,
        schemas_workers,
    )

    modules = (
        schemas,
        schemas_events,
        schemas_gateway,
        schemas_jobs,
        schemas_queues,
        schemas_report,
        schemas_session,
        schemas_sharing,
        schemas_webhooks,
        schemas_workers,
    )
    models = [
        model
        for module in modules
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, schemas.Answer) and model is not schemas.Answer
    ]
    checked = 0
    for model in models:
        extra = model.model_config.get("json_schema_extra")
        if isinstance(extra, dict):
            examples = extra["examples"]
            assert isinstance(examples, list)
            for example in examples:
                model.model_validate(example)
                assert isinstance(example, dict) and not example.keys() - model.model_fields.keys()
                checked += 1
    assert checked >= 10


async def test_every_route_has_a_summary_a_tag_and_its_errors_in_one_shape(schema: dict[str, Any]) -> None:
    ids = set()
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            assert route.get("summary") and route.get("tags"), (method, path)
            assert route["operationId"] not in ids, (method, path)
            ids.add(route["operationId"])
            for status, answer in route["responses"].items():
                if status.startswith(("4", "5")) and path != "/api/health" and "content" in answer:
                    content = answer["content"]["application/json"]
                    assert content["schema"] == {"$ref": "#/components/schemas/ErrorBody"}, (method, path, status)
                    assert content["example"].keys() == {"error", "detail"}


async def test_uploads_describe_their_bodies(schema: dict[str, Any]) -> None:
    form = schema["paths"]["/api/videos"]["post"]["requestBody"]["content"]["multipart/form-data"]
    assert form["schema"]["properties"]["file"]["format"] == "binary"
    assert form["example"]["title"]
    raw = schema["paths"]["/api/videos"]["put"]["requestBody"]["content"]["application/octet-stream"]
    assert raw["schema"]["format"] == "binary"


async def test_every_name_in_the_document_leads_somewhere(schema: dict[str, Any]) -> None:
    names = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema)))
    assert names and names <= {f"#/components/schemas/{name}" for name in schema["components"]["schemas"]}
