"""The registry of workers: who was shut out for good, and what each did last."""

from alembic import op

revision: str = "0011"
down_revision: str | None = "0009"

STATEMENTS = (
    # A worker with keys is shut out by revoking them; a local one, which has none, by this alone.
    "ALTER TABLE workers ADD COLUMN revoked_at TIMESTAMP WITH TIME ZONE",
    # A worker's last steps, without reading those of everybody.
    "CREATE INDEX ix_job_steps_worker_id ON job_steps (worker_id, id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
