"""The manifests: valid by Kubernetes' own schemas, and true of the code."""

import ipaddress
import re
import shutil
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml

from api.health import router
from contracts.queues import TaskQueue
from runtime.names import SettingsError
from tests.support.deploying import DEPLOY, ROOT, check_command, check_settings, documents

FOLDER = DEPLOY / "kubernetes"
VERSIONS = ("1.32", "1.37")
SECRETS = {"VLOG_DATABASE_URL": "postgresql://u:p@db/vlog", "VLOG_ADMIN_SECRET": "secret"}
# Of the scaler's own source, KEDA 2.17 and later.
KEDA = {"endpointFromEnv", "namespaceFromEnv", "taskQueue", "queueTypes", "targetQueueSize"}


def merged(base: Any, patch: Any) -> Any:
    """Merge as Kubernetes' strategic merge does: tables by key, lists of named things by name, the patch's first."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return {key: merged(base[key], patch[key]) if key in base and key in patch else (base | patch)[key]
                for key in {**base, **patch}}  # fmt: skip
    if isinstance(base, list) and isinstance(patch, list) and all(isinstance(each, dict) for each in base + patch):
        by_name = {each.get("name"): each for each in base}
        known = {each.get("name") for each in patch}
        return [merged(by_name.get(each.get("name"), {}), each) for each in patch] + [
            each for each in base if each.get("name") not in known
        ]
    return patch


def built(*, gpu: bool = False) -> list[dict[str, Any]]:
    """Build what `kubectl kustomize` does, but for names, labels and images."""
    [kustomization] = documents(FOLDER / "kustomization.yaml")
    files = [FOLDER / name for name in kustomization["resources"]]
    for component in [*kustomization["components"], *(["gpu"] if gpu else [])]:
        [part] = documents(FOLDER / component / "kustomization.yaml")
        files += [FOLDER / component / name for name in part["resources"]]
    [patch] = documents(FOLDER / "pods.yaml")
    found = [each for file in files for each in documents(file)]
    return [merged(each, {"spec": patch["spec"]}) if each["kind"] == "Deployment" else each for each in found]


ALL = built(gpu=True)
DEPLOYMENTS = {each["metadata"]["name"]: each for each in ALL if each["kind"] == "Deployment"}
PODS = {name: each["spec"]["template"]["spec"] for name, each in DEPLOYMENTS.items()}
[KUSTOMIZATION] = documents(FOLDER / "kustomization.yaml")
CONFIG = dict(line.split("=", 1) for line in KUSTOMIZATION["configMapGenerator"][0]["literals"])


def container(name: str) -> dict[str, Any]:
    [found] = PODS[name]["containers"]
    assert isinstance(found, dict)
    return found


def environment(found: dict[str, Any]) -> dict[str, str]:
    given = dict(CONFIG) if found.get("envFrom") else {}
    for each in found.get("env", []):
        given[each["name"]] = each.get("value") or SECRETS.get(each["name"], "")
    return given


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_is_valid(version: str) -> None:
    for each in ALL:
        if not each["apiVersion"].startswith("keda.sh/"):
            kubernetes_validate.validate(each, version, strict=True)


def test_kustomize_builds_the_same() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not here")
    said = subprocess.run([kubectl, "kustomize", str(FOLDER)], capture_output=True, text=True, check=True, timeout=60)
    theirs = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(said.stdout)}
    for each in built():
        kind, name = each["kind"], each["metadata"]["name"]
        found = theirs[kind, name]
        if kind != "Deployment":
            assert found["spec"] == each["spec"]
            continue
        ours, other = (spec["spec"]["template"]["spec"] for spec in (each, found))
        for one, two in zip(ours["containers"], other["containers"], strict=True):
            assert two["image"] == "vlog:cpu"
            assert two["envFrom"][0]["configMapRef"]["name"].startswith("vlog-")
            for key in ("args", "env", "resources", "volumeMounts", "securityContext"):
                assert one.get(key) == two.get(key)
        assert ours["volumes"] == other["volumes"]
        assert found["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/part-of"] == "vlog"


@pytest.mark.parametrize("name", sorted(DEPLOYMENTS))
def test_every_pod_runs_a_real_command_with_real_settings_and_time_to_drain(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = PODS[name]
    for each in (*pod["containers"], *pod.get("initContainers", [])):
        check_command(each["args"])
        settings = check_settings(environment(each), monkeypatch)
        assert each["securityContext"]["readOnlyRootFilesystem"]
        assert each["resources"]["requests"]["memory"] and each["resources"]["limits"]["memory"]
    if container(name)["args"][0] == "worker":
        assert pod["terminationGracePeriodSeconds"] > settings.drain_seconds + 10
        assert check_command(container(name)["args"])[0].queue == name
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert DEPLOYMENTS[name]["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}


def test_no_pod_is_told_of_services_in_names_that_look_like_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    services = [each["metadata"]["name"] for each in ALL if each["kind"] == "Service"]
    link = f"{services[0]}_SERVICE_HOST".upper().replace("-", "_")
    with pytest.raises(SettingsError, match=link):
        check_settings({link: "10.0.0.1"}, monkeypatch)
    assert all(pod["enableServiceLinks"] is False for pod in PODS.values())


def test_a_new_pod_does_not_wait_for_the_gpu_of_the_one_it_replaces() -> None:
    rolling = DEPLOYMENTS["vlog-gpu"]["spec"]["strategy"]["rollingUpdate"]
    assert rolling["maxSurge"] == 0 and rolling["maxUnavailable"] > 0


def test_what_there_are_two_of_stands_on_two_nodes() -> None:
    for name, each in DEPLOYMENTS.items():
        if each["spec"].get("replicas", 1) > 1:
            [spread] = PODS[name]["topologySpreadConstraints"]
            assert spread["labelSelector"]["matchLabels"] == {"app.kubernetes.io/name": name}
            assert spread["topologyKey"] == "kubernetes.io/hostname"


def test_nobody_asks_the_cloud_for_its_keys() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in ALL if each["kind"] == "NetworkPolicy"}
    for rule in policies["vlog-io"]["egress"]:
        assert rule, "an empty rule lets everything out"
        for way in rule["to"]:
            assert ipaddress.ip_network(way["ipBlock"]["cidr"]).prefixlen == 0 and way["ipBlock"]["except"]
    [base] = policies["vlog"]["egress"]
    assert {port["port"] for port in base["ports"]} == {53, 5432, 7233}


def test_every_queue_that_is_used_is_served() -> None:
    pools = {pool for name in PODS for pool in check_command(container(name)["args"])}
    assert {pool.queue for pool in pools} == set(TaskQueue) - {TaskQueue.ANALYSIS}


def test_probes_ask_what_the_api_answers_where_it_listens() -> None:
    api = container("vlog-api")
    known = {getattr(route, "path", "") for route in router.routes}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert api[probe]["httpGet"]["path"] in known
        assert api[probe]["httpGet"]["port"] == "http"
    assert api["ports"] == [{"name": "http", "containerPort": int(environment(api)["VLOG_PORT"])}]
    policy = next(each for each in ALL if each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == "vlog-api")
    assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == [api["ports"][0]["containerPort"]]


def test_pools_are_scaled_by_their_own_queue() -> None:
    scaled = [each for each in ALL if each["kind"] == "ScaledObject"]
    assert {each["metadata"]["name"] for each in scaled} == {"vlog-cpu", "vlog-io"}
    for each in scaled:
        target = each["spec"]["scaleTargetRef"]
        assert container(target["name"])["name"] == target["envSourceContainerName"]
        # Of every queue that its pods serve: one that nobody counts would wait for a pod that nobody starts.
        pools = check_command(container(target["name"])["args"])
        asked = [trigger["metadata"] for trigger in each["spec"]["triggers"]]
        assert sorted(given["taskQueue"] for given in asked) == sorted(pool.queue for pool in pools)
        assert {trigger["type"] for trigger in each["spec"]["triggers"]} == {"temporal"}
        for given in asked:
            assert set(given) == KEDA
            assert {given["endpointFromEnv"], given["namespaceFromEnv"]} <= set(CONFIG)
        # KEDA decides how many there are; a number here would be put back with each apply.
        assert "replicas" not in DEPLOYMENTS[target["name"]]["spec"]


def test_what_is_named_exists() -> None:
    claims = {each["metadata"]["name"] for each in ALL if each["kind"] == "PersistentVolumeClaim"}
    for name, pod in PODS.items():
        volumes = {each["name"] for each in pod["volumes"]}
        mounts = {mount["name"] for each in pod["containers"] for mount in each["volumeMounts"]}
        assert mounts == volumes, name
        used = {
            each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each
        }
        assert used <= claims
    for each in ALL:
        if each["kind"] == "PodDisruptionBudget":
            assert each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] in PODS


def test_pods_want_no_secret_that_the_page_does_not_tell_one_to_make() -> None:
    page = (ROOT / "docs/deployment.md").read_text()
    [made] = re.findall(r"create secret generic vlog \\\n(.+?)\n    kubectl", page, re.DOTALL)
    for pod in PODS.values():
        for each in (*pod["containers"], *pod.get("initContainers", [])):
            refs = [variable.get("valueFrom", {}).get("secretKeyRef") for variable in each.get("env", [])]
            assert all(ref.get("optional") or f"--from-literal={ref['key']}=" in made for ref in refs if ref)


def test_no_secret_is_written_down() -> None:
    assert not any(each["kind"] == "Secret" for each in ALL)
    assert not set(SECRETS) & set(CONFIG)
