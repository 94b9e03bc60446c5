"""When a worker last asked for work: one that only registers and beats is given none."""

from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"


def upgrade() -> None:
    op.execute("ALTER TABLE workers ADD COLUMN asked_at TIMESTAMP WITH TIME ZONE")
