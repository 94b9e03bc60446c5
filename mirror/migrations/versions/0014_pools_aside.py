"""Which pools a worker has set aside: its GPU may be broken while its CPU works."""

from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"

STATEMENTS = (
    "ALTER TABLE workers ADD COLUMN pools_aside JSONB NOT NULL DEFAULT '[]'::jsonb",
    # Until now a worker was set aside as a whole.
    """
    UPDATE workers SET pools_aside = '["analysis", "cpu", "gpu", "io"]' WHERE quarantined_at IS NOT NULL
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
