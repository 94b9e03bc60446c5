"""The documented tables, with our columns, and the view of job states."""

from alembic import op

revision: str = "0001"
down_revision: str | None = None

# Written out, not taken from the models: a migration is a fact of its day and never follows a later change of them.
STATEMENTS = (
    """
    CREATE TABLE videos (
        id BIGSERIAL NOT NULL,
        title VARCHAR(255) NOT NULL,
        slug VARCHAR(255) NOT NULL,
        description TEXT DEFAULT '' NOT NULL,
        category_id BIGINT,
        duration DOUBLE PRECISION DEFAULT 0 NOT NULL,
        source_width BIGINT DEFAULT 0 NOT NULL,
        source_height BIGINT DEFAULT 0 NOT NULL,
        status VARCHAR(20) DEFAULT 'pending' NOT NULL,
        error_message TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        published_at TIMESTAMP WITH TIME ZONE,
        deleted_at TIMESTAMP WITH TIME ZONE,
        thumbnail_source VARCHAR(20) DEFAULT 'auto' NOT NULL,
        thumbnail_timestamp DOUBLE PRECISION,
        streaming_format VARCHAR(20) DEFAULT 'cmaf' NOT NULL,
        primary_codec VARCHAR(20) DEFAULT 'h264' NOT NULL,
        is_featured BOOLEAN DEFAULT false NOT NULL,
        featured_at TIMESTAMP WITH TIME ZONE,
        has_chapters BOOLEAN DEFAULT false NOT NULL,
        sprite_sheet_status VARCHAR(20),
        sprite_sheet_error TEXT,
        sprite_sheet_count BIGINT DEFAULT 0 NOT NULL,
        sprite_sheet_interval BIGINT,
        sprite_sheet_tile_size BIGINT,
        sprite_sheet_frame_width BIGINT,
        sprite_sheet_frame_height BIGINT,
        owner VARCHAR(255) DEFAULT '' NOT NULL,
        tier VARCHAR(20) DEFAULT 'free' NOT NULL,
        source_key TEXT DEFAULT '' NOT NULL,
        source_filename TEXT DEFAULT '' NOT NULL,
        source_size_bytes BIGINT DEFAULT 0 NOT NULL,
        source_facts JSONB,
        error_code VARCHAR(50),
        playable_at TIMESTAMP WITH TIME ZONE,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        idempotency_key VARCHAR(255),
        CONSTRAINT pk_videos PRIMARY KEY (id),
        CONSTRAINT uq_videos_slug UNIQUE (slug),
        CONSTRAINT ck_videos_status CHECK (status IN ('pending', 'processing', 'ready', 'failed')),
        CONSTRAINT ck_videos_thumbnail_source CHECK (thumbnail_source IN ('auto', 'selected', 'custom')),
        CONSTRAINT ck_videos_streaming_format CHECK (streaming_format IN ('hls_ts', 'cmaf')),
        CONSTRAINT ck_videos_primary_codec CHECK (primary_codec IN ('h264', 'hevc', 'av1')),
        CONSTRAINT ck_videos_sprite_sheet_status
            CHECK (sprite_sheet_status IN ('pending', 'generating', 'ready', 'failed')),
        CONSTRAINT ck_videos_tier CHECK (tier IN ('viral', 'creator', 'hobby', 'trial', 'free', 'bulk')),
        CONSTRAINT uq_videos_idempotency_key UNIQUE (idempotency_key)
    )
    """,
    "CREATE INDEX ix_videos_created_at ON videos (created_at)",
    "CREATE INDEX ix_videos_deleted_at ON videos (deleted_at)",
    "CREATE INDEX ix_videos_owner ON videos (owner)",
    "CREATE INDEX ix_videos_status ON videos (status)",
    """
    CREATE TABLE transcoding_jobs (
        id BIGSERIAL NOT NULL,
        video_id BIGINT NOT NULL,
        worker_id VARCHAR(100),
        current_step VARCHAR(50),
        progress_percent BIGINT DEFAULT 0 NOT NULL,
        started_at TIMESTAMP WITH TIME ZONE,
        last_checkpoint TIMESTAMP WITH TIME ZONE,
        completed_at TIMESTAMP WITH TIME ZONE,
        claimed_at TIMESTAMP WITH TIME ZONE,
        claim_expires_at TIMESTAMP WITH TIME ZONE,
        attempt_number BIGINT DEFAULT 1 NOT NULL,
        max_attempts BIGINT DEFAULT 3 NOT NULL,
        last_error TEXT,
        processed_by_worker_id VARCHAR(100),
        processed_by_worker_name VARCHAR(100),
        retranscode_metadata JSONB,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        output VARCHAR(20) DEFAULT 'r1' NOT NULL,
        qualities JSONB DEFAULT '[]'::jsonb NOT NULL,
        owner VARCHAR(255) DEFAULT '' NOT NULL,
        tier VARCHAR(20) DEFAULT 'free' NOT NULL,
        workflow_id VARCHAR(255),
        workflow_started_at TIMESTAMP WITH TIME ZONE,
        cancelled_at TIMESTAMP WITH TIME ZONE,
        paused_at TIMESTAMP WITH TIME ZONE,
        error_code VARCHAR(50),
        plan JSONB,
        CONSTRAINT pk_transcoding_jobs PRIMARY KEY (id),
        CONSTRAINT ck_transcoding_jobs_progress_percent_range CHECK (progress_percent BETWEEN 0 AND 100),
        CONSTRAINT ck_transcoding_jobs_attempts CHECK (attempt_number >= 1 AND max_attempts >= 1),
        CONSTRAINT ck_transcoding_jobs_claim_whole CHECK ((claimed_at IS NULL) = (claim_expires_at IS NULL)),
        CONSTRAINT fk_transcoding_jobs_video_id FOREIGN KEY(video_id) REFERENCES videos (id) ON DELETE CASCADE,
        CONSTRAINT ck_transcoding_jobs_current_step
            CHECK (current_step IN ('probe', 'plan', 'thumbnail', 'audio', 'transcode',
                'verify', 'master_playlist', 'publish', 'finalize')),
        CONSTRAINT ck_transcoding_jobs_tier CHECK (tier IN ('viral', 'creator', 'hobby', 'trial', 'free', 'bulk'))
    )
    """,
    "CREATE INDEX ix_transcoding_jobs_claim_expires ON transcoding_jobs (claim_expires_at)",
    """
    CREATE INDEX ix_transcoding_jobs_unstarted ON transcoding_jobs (created_at)
        WHERE workflow_started_at IS NULL AND completed_at IS NULL AND cancelled_at IS NULL
    """,
    "CREATE INDEX ix_transcoding_jobs_video_id ON transcoding_jobs (video_id)",
    """
    CREATE UNIQUE INDEX uq_transcoding_jobs_unfinished ON transcoding_jobs (video_id)
        WHERE cancelled_at IS NULL AND completed_at IS NULL
        AND NOT (last_error IS NOT NULL AND attempt_number >= max_attempts)
    """,
    """
    CREATE TABLE transcriptions (
        id BIGSERIAL NOT NULL,
        video_id BIGINT NOT NULL,
        status VARCHAR(20) DEFAULT 'pending' NOT NULL,
        language VARCHAR(10) DEFAULT 'en' NOT NULL,
        started_at TIMESTAMP WITH TIME ZONE,
        completed_at TIMESTAMP WITH TIME ZONE,
        duration_seconds DOUBLE PRECISION,
        transcript_text TEXT,
        vtt_path VARCHAR(255),
        word_count BIGINT,
        error_message TEXT,
        CONSTRAINT pk_transcriptions PRIMARY KEY (id),
        CONSTRAINT uq_transcriptions_video_id UNIQUE (video_id),
        CONSTRAINT fk_transcriptions_video_id FOREIGN KEY(video_id) REFERENCES videos (id) ON DELETE CASCADE,
        CONSTRAINT ck_transcriptions_status CHECK (status IN ('pending', 'processing', 'completed', 'failed'))
    )
    """,
    """
    CREATE TABLE quality_progress (
        id BIGSERIAL NOT NULL,
        job_id BIGINT NOT NULL,
        quality VARCHAR(20) NOT NULL,
        status VARCHAR(20) DEFAULT 'pending' NOT NULL,
        segments_total BIGINT,
        segments_completed BIGINT DEFAULT 0 NOT NULL,
        progress_percent BIGINT DEFAULT 0 NOT NULL,
        started_at TIMESTAMP WITH TIME ZONE,
        completed_at TIMESTAMP WITH TIME ZONE,
        error_message TEXT,
        width BIGINT DEFAULT 0 NOT NULL,
        height BIGINT DEFAULT 0 NOT NULL,
        CONSTRAINT pk_quality_progress PRIMARY KEY (id),
        CONSTRAINT uq_job_quality UNIQUE (job_id, quality),
        CONSTRAINT ck_quality_progress_progress_percent_range CHECK (progress_percent BETWEEN 0 AND 100),
        CONSTRAINT ck_quality_progress_quality CHECK (quality ~ '^\\d+p(-(hevc|av1))?$'),
        CONSTRAINT fk_quality_progress_job_id FOREIGN KEY(job_id) REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
        CONSTRAINT ck_quality_progress_status
            CHECK (status IN ('pending', 'in_progress', 'uploading', 'uploaded', 'completed', 'failed', 'skipped'))
    )
    """,
    "CREATE INDEX ix_quality_progress_job_id ON quality_progress (job_id)",
    """
    CREATE TABLE video_qualities (
        id BIGSERIAL NOT NULL,
        video_id BIGINT NOT NULL,
        quality VARCHAR(20) NOT NULL,
        width BIGINT NOT NULL,
        height BIGINT NOT NULL,
        bitrate BIGINT NOT NULL,
        codec VARCHAR(20) DEFAULT 'h264' NOT NULL,
        segment_format VARCHAR(20) DEFAULT 'fmp4' NOT NULL,
        job_id BIGINT,
        prefix TEXT NOT NULL,
        codecs VARCHAR(100) NOT NULL,
        frame_rate_num BIGINT NOT NULL,
        frame_rate_den BIGINT NOT NULL,
        timescale BIGINT NOT NULL,
        frame_duration BIGINT NOT NULL,
        segment_frames BIGINT NOT NULL,
        frames BIGINT NOT NULL,
        size_bytes BIGINT NOT NULL,
        peak_bandwidth BIGINT NOT NULL,
        average_bandwidth BIGINT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_video_qualities PRIMARY KEY (id),
        CONSTRAINT uq_video_qualities_video_id_quality UNIQUE (video_id, quality),
        CONSTRAINT ck_video_qualities_quality CHECK (quality ~ '^\\d+p(-(hevc|av1))?$'),
        CONSTRAINT fk_video_qualities_video_id FOREIGN KEY(video_id) REFERENCES videos (id) ON DELETE CASCADE,
        CONSTRAINT ck_video_qualities_codec CHECK (codec IN ('h264', 'hevc', 'av1')),
        CONSTRAINT ck_video_qualities_segment_format CHECK (segment_format IN ('ts', 'fmp4')),
        CONSTRAINT fk_video_qualities_job_id FOREIGN KEY(job_id) REFERENCES transcoding_jobs (id) ON DELETE SET NULL
    )
    """,
    "CREATE INDEX ix_video_qualities_video_id ON video_qualities (video_id)",
    """
    CREATE TABLE workers (
        id BIGSERIAL NOT NULL,
        worker_id VARCHAR(100) NOT NULL,
        worker_name VARCHAR(100),
        worker_type VARCHAR(20) DEFAULT 'remote' NOT NULL,
        registered_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_heartbeat TIMESTAMP WITH TIME ZONE,
        status VARCHAR(20) DEFAULT 'active' NOT NULL,
        current_job_id BIGINT,
        capabilities JSONB,
        metadata JSONB,
        quarantined_at TIMESTAMP WITH TIME ZONE,
        version VARCHAR(100),
        CONSTRAINT pk_workers PRIMARY KEY (id),
        CONSTRAINT ck_workers_capabilities_size CHECK (octet_length(capabilities::text) <= 10240),
        CONSTRAINT ck_workers_metadata_size CHECK (octet_length(metadata::text) <= 10240),
        CONSTRAINT uq_workers_worker_id UNIQUE (worker_id),
        CONSTRAINT ck_workers_worker_type CHECK (worker_type IN ('local', 'remote')),
        CONSTRAINT ck_workers_status CHECK (status IN ('active', 'idle', 'busy', 'offline', 'disabled')),
        CONSTRAINT fk_workers_current_job_id FOREIGN KEY(current_job_id)
            REFERENCES transcoding_jobs (id) ON DELETE SET NULL
    )
    """,
    "CREATE INDEX ix_workers_last_heartbeat ON workers (last_heartbeat)",
    "CREATE INDEX ix_workers_status ON workers (status)",
    """
    CREATE TABLE worker_api_keys (
        id BIGSERIAL NOT NULL,
        worker_id BIGINT NOT NULL,
        key_hash VARCHAR(255) NOT NULL,
        hash_version BIGINT DEFAULT 1 NOT NULL,
        key_prefix VARCHAR(8) NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        revoked_at TIMESTAMP WITH TIME ZONE,
        last_used_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_worker_api_keys PRIMARY KEY (id),
        CONSTRAINT fk_worker_api_keys_worker_id FOREIGN KEY(worker_id) REFERENCES workers (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_worker_api_keys_key_prefix ON worker_api_keys (key_prefix)",
    "CREATE INDEX ix_worker_api_keys_worker_id ON worker_api_keys (worker_id)",
    """
    CREATE VIEW job_states AS
    SELECT id AS job_id, video_id,
      CASE
        WHEN cancelled_at IS NOT NULL THEN 'cancelled'
        WHEN completed_at IS NOT NULL THEN 'completed'
        WHEN last_error IS NOT NULL AND attempt_number >= max_attempts THEN 'failed'
        WHEN paused_at IS NOT NULL THEN 'paused'
        WHEN claim_expires_at > now() THEN 'claimed'
        WHEN claim_expires_at <= now() THEN 'expired'
        WHEN last_error IS NOT NULL THEN 'retrying'
        ELSE 'unclaimed'
      END AS state
    FROM transcoding_jobs
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
