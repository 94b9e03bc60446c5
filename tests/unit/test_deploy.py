"""Compose file, images and units: every name in them is one of the code's."""

import json
import re
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from api.__main__ import PREFERRED_PORT
from api.health import router
from contracts.queues import Pool, with_probes
from tests.support.deploying import (
    DEPLOY,
    ROOT,
    SETTINGS,
    check_command,
    check_settings,
    documents,
    named_settings,
)

PATHS = {getattr(route, "path", "") for route in router.routes}
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
IMAGES = sorted((DEPLOY / "docker").glob("Dockerfile.*"))


def test_every_setting_named_below_deploy_exists() -> None:
    for file in [*(file for file in DEPLOY.rglob("*") if file.is_file()), ROOT / "docs/deployment.md"]:
        assert named_settings(file.read_text()) <= SETTINGS, file


# --- compose ----------------------------------------------------------------------------------------------------


[COMPOSE] = documents(DEPLOY / "compose/compose.yml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service.get("image", "").startswith("${")}


def seconds(text: str) -> int:
    found = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", text)
    assert found
    return 60 * int(found[1] or 0) + int(found[2] or 0)


def filled(value: object) -> str:
    """Fill in `${NAME:-default}` as compose does, where nothing is set."""
    return re.sub(
        r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda found: "changeme" if found[1] is None else found[1], str(value)
    )


@pytest.mark.parametrize(
    "path", [DEPLOY / "compose/compose.yml", DEPLOY / "compose/s3.yml", ROOT / "temporal-dev/docker-compose.yml"]
)
def test_compose_files_follow_the_specification(path: Path) -> None:
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())
    [document] = documents(path)
    jsonschema.validate(document, schema)


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_runs_a_real_command_with_real_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = OURS[name]
    pools = check_command(service["command"])
    settings = check_settings({key: filled(value) for key, value in service["environment"].items()}, monkeypatch)
    assert settings.temporal_address == "temporal:7233"
    assert service["logging"] == {"driver": "local"}  # the default fills the disk
    if pools:
        assert seconds(service["stop_grace_period"]) > settings.drain_seconds + 10
        assert service["healthcheck"] == {"disable": True}


def test_each_image_is_built_once_and_the_gpus_on_the_one_that_is_being_built() -> None:
    built = {name: service["build"] for name, service in OURS.items() if "build" in service}
    # Two services that build one name do it side by side, and the second finds that it exists.
    assert sorted(OURS[name]["image"] for name in built) == sorted({each["image"] for each in OURS.values()})
    for build in built.values():
        assert (DEPLOY / "compose" / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).is_file()
    [builder] = set(built) - {"gpu"}
    assert built["gpu"]["additional_contexts"] == {built["gpu"]["args"]["CPU_IMAGE"]: f"service:{builder}"}
    # So that it is built whichever of them somebody starts.
    assert all(builder in service["depends_on"] for name, service in OURS.items() if name != builder)


def test_a_gpu_is_lent_with_all_that_the_image_wants_of_it() -> None:
    [device] = OURS["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    [wanted] = re.findall(r"NVIDIA_DRIVER_CAPABILITIES=(\S+)", (DEPLOY / "docker/Dockerfile.gpu").read_text())
    # What is named here replaces what the image says.
    assert set(device["capabilities"]) == {"gpu", *wanted.split(",")}


@pytest.mark.parametrize("path", [DEPLOY / "compose/compose.yml", ROOT / "temporal-dev/docker-compose.yml"])
def test_a_database_that_is_still_being_made_is_not_healthy(path: Path) -> None:
    [document] = documents(path)
    asked = [each["healthcheck"]["test"] for each in document["services"].values() if "postgres:" in each["image"]]
    assert asked and all(test[1:4] == ["pg_isready", "-h", "127.0.0.1"] for test in asked)  # not by its socket


def test_all_pools_that_do_something_are_served_once() -> None:
    pools = [pool for service in OURS.values() for pool in check_command(service["command"])]
    assert sorted(pools) == sorted(set(Pool) - {Pool.ANALYSIS})
    assert OURS["gpu"]["profiles"] == ["gpu"]  # not without being asked for


def test_what_a_service_waits_for_and_mounts_exists() -> None:
    [included] = COMPOSE["include"]
    [temporal] = documents(DEPLOY / "compose" / included)
    known = SERVICES | temporal["services"]
    assert not set(SERVICES) & set(temporal["services"]) and not set(COMPOSE["volumes"]) & set(temporal["volumes"])
    for name, service in SERVICES.items():
        for other, wanted in service.get("depends_on", {}).items():
            assert other in known, f"{name} waits for {other}"
            if wanted["condition"] == "service_healthy":
                assert "test" in known[other]["healthcheck"]
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"]


def test_the_api_is_asked_for_its_health_where_it_listens() -> None:
    api = OURS["api"]
    [asked] = re.findall(r"http://127\.0\.0\.1:(\d+)(/[\w/]+)", api["healthcheck"]["test"][-1])
    assert int(asked[0]) == api["environment"]["VLOG_PORT"] == PREFERRED_PORT and asked[1] in PATHS
    [published] = api["ports"]
    assert published.startswith("127.0.0.1:") and published.endswith(f":{PREFERRED_PORT}")


def test_every_variable_has_a_default_or_stands_in_the_example() -> None:
    text = (DEPLOY / "compose/compose.yml").read_text()
    example = (DEPLOY / "compose/env.example").read_text()
    for name in re.findall(r"\$\{(\w+)", text):
        assert re.search(rf"^(# )?{name}=", example, re.MULTILINE), name


# --- images -----------------------------------------------------------------------------------------------------


def instructions(image: Path) -> list[tuple[str, str]]:
    text = image.read_text().replace("\\\n", " ")
    return [(found[1], found[2].strip()) for found in re.finditer(r"^([A-Z]+) (.+)$", text, re.MULTILINE)]


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.suffix[1:])
def test_an_image_runs_our_command_as_nobody_special(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = instructions(image)
    last = dict(found)  # of each kind the last one
    assert last["USER"] == "10001:10001"
    check_command(json.loads(last["CMD"]))
    entry = last.get("ENTRYPOINT") or dict(instructions(DEPLOY / "docker/Dockerfile.cpu"))["ENTRYPOINT"]
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert json.loads(entry)[0] in tomllib.load(file)["project"]["scripts"]
    check_settings(dict(re.findall(r"(VLOG_\w+)=(\S+)", last["ENV"])), monkeypatch)
    for kind, words in found:
        if kind == "COPY" and "--from" not in words:
            assert all((ROOT / name).exists() for name in words.split()[:-1]), words
    if "urlopen" in last.get("HEALTHCHECK", ""):
        assert set(re.findall(r"\}(/\w+)", last["HEALTHCHECK"])) <= PATHS


def test_the_cpu_image_holds_all_that_is_imported_and_no_servers() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    with (ROOT / "pyproject.toml").open("rb") as file:
        packages = tomllib.load(file)["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.rstrip("*") for name in packages} <= kept
    lock = (ROOT / "requirements.lock").read_text()
    text = (DEPLOY / "docker/Dockerfile.cpu").read_text()
    [dropped] = re.findall(r"pip uninstall --yes (.+)", text)
    for name in dropped.split():
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name
    notice = (DEPLOY / "docker/NOTICE.ffmpeg.md").read_text()
    for name in re.findall(r"PyPI `([\w-]+)`", notice):
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name


# --- systemd ----------------------------------------------------------------------------------------------------


def unit(path: Path) -> ConfigParser:
    found = ConfigParser(interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(path.read_text())
    return found


def given_by(path: Path) -> dict[str, str]:
    lines = (DEPLOY / "systemd/vlog.env").read_text().splitlines()
    file = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return file | dict(word.split("=", 1) for word in unit(path)["Service"]["Environment"].split())


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_a_real_command_with_real_settings_and_time_to_drain(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = unit(path)["Service"]
    program, *words = service["ExecStart"].split()
    assert program == "/opt/vlog/bin/vlog"
    settings = check_settings(given_by(path), monkeypatch)
    if "%i" in words:
        for name in instances():
            check_command([name if word == "%i" else word for word in words])
        assert int(service["TimeoutStopSec"]) > settings.drain_seconds + 10
        assert (service["KillMode"], service["OOMPolicy"]) == ("mixed", "continue")
    else:
        check_command(words)
    # Whatever was away when the machine started is tried again, for ever.
    assert unit(path)["Unit"]["StartLimitIntervalSec"] == "0" and service["Restart"] in ("always", "on-failure")
    assert "Requires" not in unit(path)["Unit"]
    assert service["User"] == "vlog" and service["NoNewPrivileges"] == "true"
    assert service["EnvironmentFile"] == "/etc/vlog/vlog.env"


def instances() -> set[str]:
    wanted = unit(DEPLOY / "systemd/vlog.target")["Unit"]["Wants"].split()
    assert "vlog-api.service" in wanted
    return {name.split("@")[1].removesuffix(".service") for name in wanted if "@" in name} | {"gpu"}


def test_the_target_starts_every_pool_that_needs_no_gpu() -> None:
    assert set(with_probes([Pool(name) for name in instances()])) == set(Pool) - {Pool.ANALYSIS}


def test_units_come_back_after_a_reboot_workers_without_the_target_too() -> None:
    assert unit(DEPLOY / "systemd/vlog.target")["Install"]["WantedBy"] == "multi-user.target"
    workers = unit(DEPLOY / "systemd/vlog-worker@.service")["Install"]["WantedBy"].split()
    assert set(workers) == {"vlog.target", "multi-user.target"}


def test_the_page_copies_all_units_and_no_secrets() -> None:
    [line] = re.findall(
        r"^    cp -r (.+) /etc/systemd/system/$", (ROOT / "docs/deployment.md").read_text(), re.MULTILINE
    )
    copied = {file for word in line.split() for file in ROOT.glob(word.removeprefix("/opt/vlog/app/"))}
    assert copied == set((DEPLOY / "systemd").iterdir()) - {DEPLOY / "systemd/vlog.env"}


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not here")
    for path in (DEPLOY / "systemd").glob("vlog*"):
        if path.is_file() and path.suffix in (".service", ".target"):
            text = path.read_text().replace("/opt/vlog/bin/vlog", "/bin/true")
            (tmp_path / path.name).write_text(text.replace("EnvironmentFile=", "EnvironmentFile=-"))
    for name in instances():
        shutil.copy(tmp_path / "vlog-worker@.service", tmp_path / f"vlog-worker@{name}.service")
    units = [str(tmp_path / name) for name in ("vlog.target", "vlog-api.service", "vlog-migrate.service")]
    argv = [analyze, "verify", "--man=no", *units, str(tmp_path / "vlog-worker@cpu.service")]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    ours = [line for line in said.stderr.splitlines() if "vlog" in line]
    assert not ours and said.returncode == 0, said.stderr
