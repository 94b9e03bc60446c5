"""What housekeeping remembers, and which videos are gone for good."""

from alembic import op

revision: str = "0008"
down_revision: str | None = "0005"

STATEMENTS = (
    """
    CREATE TABLE housekeeping_marks (
        name varchar(100) NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        place bigint NOT NULL DEFAULT 0,
        CONSTRAINT pk_housekeeping_marks PRIMARY KEY (name)
    )
    """,
    # A purged video keeps its row: its slug is never given again.
    "ALTER TABLE videos ADD COLUMN purged_at timestamptz",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
