"""Webhooks that are really told: the alert hook, the rate limit, and what a delivery remembers."""

from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"

STATEMENTS = (
    "ALTER TABLE webhooks ADD COLUMN builtin boolean NOT NULL DEFAULT false",
    "ALTER TABLE webhooks ADD COLUMN rate_limit_seconds double precision NOT NULL DEFAULT 0",
    "ALTER TABLE webhooks ADD COLUMN timeout_seconds double precision NOT NULL DEFAULT 10",
    "CREATE UNIQUE INDEX uq_webhooks_builtin ON webhooks (builtin) WHERE builtin",
    "ALTER TABLE webhook_deliveries ADD COLUMN uid uuid NOT NULL DEFAULT gen_random_uuid()",
    "ALTER TABLE webhook_deliveries ADD COLUMN event_id bigint",
    "ALTER TABLE webhook_deliveries ADD COLUMN released_at timestamptz",
    "ALTER TABLE webhook_deliveries ADD COLUMN started_at timestamptz",
    "ALTER TABLE webhook_deliveries ADD COLUMN round bigint NOT NULL DEFAULT 1",
    "ALTER TABLE webhook_deliveries ADD COLUMN attempts jsonb NOT NULL DEFAULT '[]'::jsonb",
    "ALTER TABLE webhook_deliveries ADD CONSTRAINT uq_webhook_deliveries_uid UNIQUE (uid)",
    "ALTER TABLE webhook_deliveries DROP CONSTRAINT ck_webhook_deliveries_status",
    """
    ALTER TABLE webhook_deliveries ADD CONSTRAINT ck_webhook_deliveries_status
        CHECK (status IN ('pending', 'delivered', 'failed', 'failed_permanent', 'suppressed'))
    """,
    """
    CREATE UNIQUE INDEX uq_webhook_deliveries_once ON webhook_deliveries (webhook_id, event_id, event_type)
    """,
    """
    CREATE INDEX ix_webhook_deliveries_waiting ON webhook_deliveries (id)
        WHERE status = 'pending' AND started_at IS NULL
    """,
    """
    CREATE INDEX ix_webhook_deliveries_released ON webhook_deliveries (webhook_id, event_type, released_at)
        WHERE released_at IS NOT NULL
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
