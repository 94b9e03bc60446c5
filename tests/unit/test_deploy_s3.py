"""The same deployments with their files in S3."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support.deploying import DEPLOY, check_settings, documents

[OVER] = documents(DEPLOY / "compose/s3.yml")
[UNDER] = documents(DEPLOY / "compose/compose.yml")
COPIES = ("vlog-cpu", "vlog-io", "vlog-gpu")  # who copies sources
AWS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def test_every_service_that_touches_files_is_told_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {name for name, each in UNDER["services"].items() if "storage:/srv/vlog" in each.get("volumes", [])}
    assert {*OVER["services"]} - {"s3"} == wanted - {"migrate"}
    for name in wanted - {"migrate"}:
        given: dict[str, Any] = UNDER["services"][name]["environment"] | OVER["services"][name]["environment"]
        plain = {key: re.sub(r"\$\{[^}]*\}", "changeme" * 2, str(value)) for key, value in given.items()}
        assert check_settings(plain, monkeypatch).storage_url == "s3://media"
        assert set(given) >= AWS
        assert given["AWS_ENDPOINT_URL_S3"] == "http://s3:8333"
        assert OVER["services"][name]["depends_on"]["s3"]["condition"] == "service_healthy"
    said = " ".join(OVER["services"]["s3"]["command"])
    assert "http://127.0.0.1:8333/healthz" in OVER["services"]["s3"]["healthcheck"]["test"]
    assert "-s3.port=8333" in said and "-bucket=media" in said and "-master.telemetry=false" in said
    assert {volume.split(":")[0] for each in OVER["services"].values() for volume in each["volumes"]} == {
        *OVER["volumes"]
    }


@pytest.mark.parametrize("gpu", [False, True], ids=["as it is", "with GPUs"])
def test_pods_with_s3_need_no_shared_volume(gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not here")
    for name in ("kubernetes", "kubernetes-s3"):
        shutil.copytree(DEPLOY / name, tmp_path / name)
    if gpu:
        listed = tmp_path / "kubernetes/kustomization.yaml"
        listed.write_text(listed.read_text().replace("  # - gpu ", "  - gpu "))
    folder = tmp_path / "kubernetes-s3"
    said = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=True, timeout=60)
    found = list(yaml.safe_load_all(said.stdout))
    assert not any(each["kind"] == "PersistentVolumeClaim" for each in found)
    deployed = {each["metadata"]["name"] for each in found if each["kind"] == "Deployment"}
    assert ("vlog-gpu" in deployed) == gpu
    [config] = [each["data"] for each in found if each["kind"] == "ConfigMap"]
    assert check_settings(config, monkeypatch).storage_url == "s3://vlog-media"
    for each in found:
        if not each["apiVersion"].startswith("keda.sh/"):
            kubernetes_validate.validate(each, "1.37", strict=True)
        if each["kind"] == "Deployment":
            pod = each["spec"]["template"]["spec"]
            assert {volume["name"] for volume in pod["volumes"]} == {"home", "tmp"}
            # What copies may take follows the node's disk unless it is told; beyond its limit a pod is evicted.
            [home] = [volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if volume["name"] == "home"]
            told = check_settings(config, monkeypatch).cache_bytes
            assert told is not None and told < 0.8 * int(home.removesuffix("Gi")) * 1024**3
            wanted = pod["containers"][0]["resources"]["requests"]
            assert ("ephemeral-storage" in wanted) == (each["metadata"]["name"] in COPIES)
            assert AWS <= {variable["name"] for variable in pod["containers"][0]["env"]}
