"""Two more steps: a remux of what seeks badly, and text tracks that become WebVTT."""

from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"

# Both columns take any step's name; which of them `current_step` shows is the code's business.
STATEMENTS = (
    "ALTER TABLE job_steps DROP CONSTRAINT ck_job_steps_step",
    """
    ALTER TABLE job_steps ADD CONSTRAINT ck_job_steps_step
        CHECK (step IN ('probe', 'remux', 'plan', 'thumbnail', 'audio', 'subtitles', 'transcode',
            'verify', 'master_playlist', 'publish', 'finalize', 'storyboard'))
    """,
    "ALTER TABLE transcoding_jobs DROP CONSTRAINT ck_transcoding_jobs_current_step",
    """
    ALTER TABLE transcoding_jobs ADD CONSTRAINT ck_transcoding_jobs_current_step
        CHECK (current_step IN ('probe', 'remux', 'plan', 'thumbnail', 'audio', 'subtitles', 'transcode',
            'verify', 'master_playlist', 'publish', 'finalize', 'storyboard'))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
