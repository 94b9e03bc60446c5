"""A video that somebody took off the site stays off it, also when a retranscode ends well."""

from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"


def upgrade() -> None:
    op.execute("ALTER TABLE videos ADD COLUMN unpublished_at timestamptz")
