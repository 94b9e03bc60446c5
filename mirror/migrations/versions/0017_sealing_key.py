"""The key that claims of remote workers are sealed with, where no setting names one: all APIs share it."""

from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"


def upgrade() -> None:
    # Empty: an API makes the key, so that no dump of a migrated and unused database has one.
    op.execute(
        """
        CREATE TABLE sealing_keys (
            id bigint NOT NULL,
            key text NOT NULL,
            made_at timestamp with time zone NOT NULL DEFAULT now(),
            CONSTRAINT pk_sealing_keys PRIMARY KEY (id),
            CONSTRAINT ck_sealing_keys_one CHECK (id = 1)
        )
        """
    )
