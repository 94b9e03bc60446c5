"""Our own tables: steps, events, audio, uploads, webhooks."""

from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"

# Written out, not taken from the models: a migration is a fact of its day and never follows a later change of them.
STATEMENTS = (
    """
    CREATE TABLE webhooks (
        id BIGSERIAL NOT NULL,
        name VARCHAR(100) NOT NULL,
        url VARCHAR(500) NOT NULL,
        events JSONB NOT NULL,
        secret VARCHAR(64),
        active BOOLEAN DEFAULT true NOT NULL,
        headers JSONB,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_triggered_at TIMESTAMP WITH TIME ZONE,
        total_deliveries BIGINT DEFAULT 0 NOT NULL,
        successful_deliveries BIGINT DEFAULT 0 NOT NULL,
        failed_deliveries BIGINT DEFAULT 0 NOT NULL,
        CONSTRAINT pk_webhooks PRIMARY KEY (id)
    )
    """,
    """
    CREATE TABLE uploads (
        id VARCHAR(64) NOT NULL,
        key TEXT NOT NULL,
        filename TEXT DEFAULT '' NOT NULL,
        title VARCHAR(255) DEFAULT '' NOT NULL,
        owner VARCHAR(255) DEFAULT '' NOT NULL,
        tier VARCHAR(20) DEFAULT 'free' NOT NULL,
        details JSONB DEFAULT '{}'::jsonb NOT NULL,
        size_bytes BIGINT,
        offset_bytes BIGINT DEFAULT 0 NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        finished_at TIMESTAMP WITH TIME ZONE,
        video_id BIGINT,
        CONSTRAINT pk_uploads PRIMARY KEY (id),
        CONSTRAINT ck_uploads_offset CHECK (offset_bytes >= 0 AND (size_bytes IS NULL OR offset_bytes <= size_bytes)),
        CONSTRAINT ck_uploads_tier CHECK (tier IN ('viral', 'creator', 'hobby', 'trial', 'free', 'bulk')),
        CONSTRAINT fk_uploads_video_id FOREIGN KEY(video_id) REFERENCES videos (id) ON DELETE SET NULL
    )
    """,
    "CREATE INDEX ix_uploads_expires_at ON uploads (expires_at)",
    """
    CREATE TABLE webhook_deliveries (
        id BIGSERIAL NOT NULL,
        webhook_id BIGINT NOT NULL,
        event_type VARCHAR(50) NOT NULL,
        event_data JSONB NOT NULL,
        request_body TEXT,
        response_status BIGINT,
        response_body TEXT,
        error_message TEXT,
        attempt_number BIGINT DEFAULT 1 NOT NULL,
        status VARCHAR(20) DEFAULT 'pending' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        next_retry_at TIMESTAMP WITH TIME ZONE,
        delivered_at TIMESTAMP WITH TIME ZONE,
        duration_ms BIGINT,
        CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id),
        CONSTRAINT fk_webhook_deliveries_webhook_id FOREIGN KEY(webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE,
        CONSTRAINT ck_webhook_deliveries_status
            CHECK (status IN ('pending', 'delivered', 'failed', 'failed_permanent'))
    )
    """,
    "CREATE INDEX ix_webhook_deliveries_created_at ON webhook_deliveries (created_at)",
    "CREATE INDEX ix_webhook_deliveries_status_next_retry_at ON webhook_deliveries (status, next_retry_at)",
    "CREATE INDEX ix_webhook_deliveries_webhook_id ON webhook_deliveries (webhook_id)",
    """
    CREATE TABLE audio_renditions (
        id BIGSERIAL NOT NULL,
        video_id BIGINT NOT NULL,
        job_id BIGINT,
        track BIGINT NOT NULL,
        prefix TEXT NOT NULL,
        codecs VARCHAR(100) NOT NULL,
        language TEXT NOT NULL,
        name TEXT NOT NULL,
        is_default BOOLEAN NOT NULL,
        channels BIGINT NOT NULL,
        timescale BIGINT NOT NULL,
        segment_durations JSONB NOT NULL,
        size_bytes BIGINT NOT NULL,
        peak_bandwidth BIGINT NOT NULL,
        average_bandwidth BIGINT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_audio_renditions PRIMARY KEY (id),
        CONSTRAINT uq_audio_renditions_video_id_track UNIQUE (video_id, track),
        CONSTRAINT fk_audio_renditions_video_id FOREIGN KEY(video_id) REFERENCES videos (id) ON DELETE CASCADE,
        CONSTRAINT fk_audio_renditions_job_id FOREIGN KEY(job_id) REFERENCES transcoding_jobs (id) ON DELETE SET NULL
    )
    """,
    """
    CREATE TABLE job_events (
        id BIGSERIAL NOT NULL,
        job_id BIGINT,
        event VARCHAR(100) NOT NULL,
        level VARCHAR(20) DEFAULT 'info' NOT NULL,
        message TEXT,
        fields JSONB DEFAULT '{}'::jsonb NOT NULL,
        actor VARCHAR(255),
        step_key TEXT,
        generation BIGINT,
        attempt BIGINT,
        repeats BOOLEAN DEFAULT false NOT NULL,
        ts TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT pk_job_events PRIMARY KEY (id),
        CONSTRAINT fk_job_events_job_id FOREIGN KEY(job_id) REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
        CONSTRAINT ck_job_events_level CHECK (level IN ('info', 'warning', 'error'))
    )
    """,
    "CREATE INDEX ix_job_events_job_id ON job_events (job_id, id)",
    "CREATE INDEX ix_job_events_ts ON job_events (ts)",
    """
    CREATE UNIQUE INDEX uq_job_events_once ON job_events (job_id, event, step_key, generation, attempt)
        NULLS NOT DISTINCT
        WHERE NOT repeats
    """,
    """
    CREATE TABLE job_steps (
        id BIGSERIAL NOT NULL,
        job_id BIGINT NOT NULL,
        step VARCHAR(50) NOT NULL,
        step_key TEXT NOT NULL,
        qualities JSONB DEFAULT '[]'::jsonb NOT NULL,
        first_segment BIGINT,
        segments BIGINT,
        generation BIGINT DEFAULT 0 NOT NULL,
        attempt BIGINT DEFAULT 1 NOT NULL,
        tries BIGINT DEFAULT 1 NOT NULL,
        worker_id VARCHAR(100),
        worker_name VARCHAR(100),
        queue VARCHAR(100) DEFAULT '' NOT NULL,
        scheduled_at TIMESTAMP WITH TIME ZONE,
        started_at TIMESTAMP WITH TIME ZONE NOT NULL,
        heartbeat_at TIMESTAMP WITH TIME ZONE NOT NULL,
        claim_expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        finished_at TIMESTAMP WITH TIME ZONE,
        outcome VARCHAR(20) DEFAULT 'running' NOT NULL,
        will_retry BOOLEAN DEFAULT false NOT NULL,
        percent DOUBLE PRECISION DEFAULT 0 NOT NULL,
        progress JSONB DEFAULT '{}'::jsonb NOT NULL,
        error_code VARCHAR(50),
        error_message TEXT,
        error_detail TEXT,
        CONSTRAINT pk_job_steps PRIMARY KEY (id),
        CONSTRAINT uq_job_steps_fence UNIQUE (job_id, step_key, generation, attempt),
        CONSTRAINT fk_job_steps_job_id FOREIGN KEY(job_id) REFERENCES transcoding_jobs (id) ON DELETE CASCADE,
        CONSTRAINT ck_job_steps_step
            CHECK (step IN ('probe', 'plan', 'thumbnail', 'audio', 'transcode',
                'verify', 'master_playlist', 'publish', 'finalize')),
        CONSTRAINT ck_job_steps_outcome
            CHECK (outcome IN ('running', 'completed', 'partial', 'failed', 'cancelled', 'lost'))
    )
    """,
    "CREATE INDEX ix_job_steps_running ON job_steps (worker_id) WHERE finished_at IS NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
