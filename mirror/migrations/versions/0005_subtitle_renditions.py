"""Subtitle renditions beside the audio ones: manifests are built from rows, never from a folder listing."""

from alembic import op

revision: str = "0005"
down_revision: str | None = "0007"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE subtitle_renditions (
            id BIGSERIAL NOT NULL,
            video_id BIGINT NOT NULL,
            job_id BIGINT,
            track BIGINT NOT NULL,
            prefix TEXT NOT NULL,
            language TEXT NOT NULL,
            name TEXT NOT NULL,
            is_default BOOLEAN NOT NULL,
            forced BOOLEAN NOT NULL,
            cues BIGINT NOT NULL,
            size_bytes BIGINT NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            CONSTRAINT pk_subtitle_renditions PRIMARY KEY (id),
            CONSTRAINT uq_subtitle_renditions_video_id_track UNIQUE (video_id, track),
            CONSTRAINT fk_subtitle_renditions_video_id
                FOREIGN KEY(video_id) REFERENCES videos (id) ON DELETE CASCADE,
            CONSTRAINT fk_subtitle_renditions_job_id
                FOREIGN KEY(job_id) REFERENCES transcoding_jobs (id) ON DELETE SET NULL
        )
        """
    )
