"""Lists of videos by state, owner and tier: each page comes out of an index, in its order."""

from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"


def upgrade() -> None:
    for name in ("status", "owner", "tier"):
        op.execute(f"CREATE INDEX ix_videos_{name}_id ON videos ({name}, id)")
    # They know no order, yet look cheaper: a page would be sorted out of all that fit.
    op.execute("DROP INDEX ix_videos_status, ix_videos_owner")
