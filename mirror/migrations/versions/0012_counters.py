"""Counters for /metrics: how often each event happened, and what workers count themselves."""

from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"

STATEMENTS = (
    """
    CREATE TABLE event_counts (
        event varchar(100) NOT NULL,
        code varchar(50) NOT NULL DEFAULT '',
        count bigint NOT NULL,
        seconds double precision NOT NULL DEFAULT 0,
        CONSTRAINT pk_event_counts PRIMARY KEY (event, code)
    )
    """,
    "ALTER TABLE workers ADD COLUMN heartbeats bigint NOT NULL DEFAULT 0",
    "ALTER TABLE workers ADD COLUMN heartbeat_failures bigint NOT NULL DEFAULT 0",
    "ALTER TABLE workers ADD COLUMN acquire_conflicts bigint NOT NULL DEFAULT 0",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
