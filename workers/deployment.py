"""How a worker tells Temporal which code it runs and, where wished, keeps videos to the code they began with."""

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from contracts.queues import Pool
from runtime.settings import Settings

NAME = "vlog"

_BEHAVIOUR = {"pinned": VersioningBehavior.PINNED, "auto": VersioningBehavior.AUTO_UPGRADE}


def deployment(settings: Settings, pool: Pool, version: str) -> WorkerDeploymentConfig:
    """Name the code for Temporal's UI; with `VLOG_WORKER_DEPLOYMENT`, let Temporal choose by it who runs a workflow.

    Only workflows must not change half-way. Steps may: every version of them understands the messages of the others,
    and any worker may take them.
    """
    versioned = settings.worker_deployment is not None and pool is Pool.ORCHESTRATE
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=settings.worker_deployment or NAME, build_id=version),
        use_worker_versioning=versioned,
        default_versioning_behavior=(
            _BEHAVIOUR[settings.worker_versioning] if versioned else VersioningBehavior.UNSPECIFIED
        ),
    )
