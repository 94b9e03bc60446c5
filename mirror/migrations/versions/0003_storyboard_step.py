"""One more step: the storyboard, made after the job's end."""

from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"

# Both columns take any step's name; which of them `current_step` shows is the code's business.
STATEMENTS = (
    "ALTER TABLE job_steps DROP CONSTRAINT ck_job_steps_step",
    """
    ALTER TABLE job_steps ADD CONSTRAINT ck_job_steps_step
        CHECK (step IN ('probe', 'plan', 'thumbnail', 'audio', 'transcode',
            'verify', 'master_playlist', 'publish', 'finalize', 'storyboard'))
    """,
    "ALTER TABLE transcoding_jobs DROP CONSTRAINT ck_transcoding_jobs_current_step",
    """
    ALTER TABLE transcoding_jobs ADD CONSTRAINT ck_transcoding_jobs_current_step
        CHECK (current_step IN ('probe', 'plan', 'thumbnail', 'audio', 'transcode',
            'verify', 'master_playlist', 'publish', 'finalize', 'storyboard'))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
