"""Commands: why a job was made, what it continues and keeps, which wishes Temporal has not heard, what is missing."""

from alembic import op

revision: str = "0007"
down_revision: str | None = "0004"

STATEMENTS = (
    """
    ALTER TABLE transcoding_jobs
        ADD COLUMN kind VARCHAR(20) DEFAULT 'upload' NOT NULL,
        ADD COLUMN continues_job_id BIGINT,
        ADD COLUMN keep JSONB DEFAULT '[]'::jsonb NOT NULL,
        ADD COLUMN cancel_requested_at TIMESTAMP WITH TIME ZONE,
        ADD COLUMN command_at TIMESTAMP WITH TIME ZONE,
        ADD COLUMN untold JSONB DEFAULT '[]'::jsonb NOT NULL,
        ADD CONSTRAINT ck_transcoding_jobs_kind CHECK (kind IN ('upload', 'retry', 'retranscode')),
        ADD CONSTRAINT fk_transcoding_jobs_continues_job_id
            FOREIGN KEY(continues_job_id) REFERENCES transcoding_jobs (id) ON DELETE SET NULL
    """,
    "CREATE INDEX ix_transcoding_jobs_command_at ON transcoding_jobs (command_at) WHERE command_at IS NOT NULL",
    "ALTER TABLE videos ADD COLUMN missing JSONB DEFAULT '[]'::jsonb NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
