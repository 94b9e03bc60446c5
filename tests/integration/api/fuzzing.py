"""The worker API as its own document describes it, and as it does not: schemathesis makes the requests.

Everybody sends them: nobody, somebody with a key, and a worker that holds a step, with its own claim as often as not.
"""

import random
from contextlib import suppress
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from contracts.gateway import CLAIM_HEADER, KEY_HEADER
from tests.integration.api.claiming import Remote
from tests.integration.api.running import Api

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
TIMEOUT_S = 60.0
ENDS = ("/complete", "/fail")


def operations(api: Api) -> list[Any]:
    """Name what a worker can ask, at last what ends its step."""
    schema = schemathesis.openapi.from_dict(api.app.openapi()).include(path_regex="^/api/worker/")
    found: list[Any] = list(schema.get_all_operations())  # of its results, which say too what could not be read
    return sorted((each.ok() for each in found), key=lambda each: each.path.endswith(ENDS))


def attack(api: Api, remote: Remote, *, examples: int, first: int = 1) -> dict[str, int]:
    """Send so many requests of each kind to each operation; count the answers by their status. Blocks."""
    counted: dict[str, int] = {}
    dice = random.Random(first)
    with requests.Session() as session:
        session.trust_env = False
        for operation in operations(api):
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                with suppress(Unsatisfiable):  # of some nothing is ill formed
                    _of_one(api, remote, session, operation.as_strategy(mode), examples, first, dice, counted)
    return counted


def _of_one(
    api: Api,
    remote: Remote,
    session: requests.Session,
    cases: Any,
    examples: int,
    first: int,
    dice: random.Random,
    counted: dict[str, int],
) -> None:
    @seed(first)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # shrinking would ask a hundred times more
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        who = dice.choice(("nobody", "stranger", "worker", "worker", "worker"))
        headers = {"stranger": {KEY_HEADER: "A" * 43}, "worker": {KEY_HEADER: remote.machine.key}}.get(who, {})
        if dice.random() < 0.5:  # deeper in: with a claim that is right
            if isinstance(case.body, dict) and case.path.endswith(("/progress", *ENDS)):
                case.body["claim"] = remote.claim
            if case.path.startswith(("/api/worker/source", "/api/worker/output")):
                headers[CLAIM_HEADER] = remote.claim
        response = case.call(base_url=api.url, session=session, headers=headers, timeout=TIMEOUT_S)
        counted[str(response.status_code)] = counted.get(str(response.status_code), 0) + 1
        case.validate_response(response, checks=CHECKS)
        if who != "worker" and "/register" not in case.path:
            assert response.status_code in (401, 404, 405, 413, 422, 400), (who, case.path, response.status_code)

    ask()
