"""The database is what the models say, what the documents say, and what several starters make of it at once."""

import asyncio

import pytest
from sqlalchemy import CheckConstraint, Enum, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from mirror import migrate as migrating
from mirror.migrate import SchemaDrift, check, is_current, migrate
from mirror.sessions import Database, SchemaNotReady
from mirror.states import JOB_STATES
from mirror.tables import Base
from tests.integration.mirror.story import planned, register, rows_of, upload
from tests.support.postgres import PostgresServer, execute

DOCUMENTED = {
    "videos": "id title slug description category_id duration source_width source_height status error_message "
    "created_at published_at deleted_at thumbnail_source thumbnail_timestamp streaming_format primary_codec "
    "is_featured featured_at has_chapters sprite_sheet_status sprite_sheet_error sprite_sheet_count "
    "sprite_sheet_interval sprite_sheet_tile_size sprite_sheet_frame_width sprite_sheet_frame_height",
    "transcoding_jobs": "id video_id worker_id current_step progress_percent started_at last_checkpoint completed_at "
    "claimed_at claim_expires_at attempt_number max_attempts last_error processed_by_worker_id "
    "processed_by_worker_name retranscode_metadata",
    "quality_progress": "id job_id quality status segments_total segments_completed progress_percent started_at "
    "completed_at error_message",
    "video_qualities": "id video_id quality width height bitrate codec segment_format",
    "workers": "id worker_id worker_name worker_type registered_at last_heartbeat status current_job_id capabilities "
    "metadata",
    "worker_api_keys": "id worker_id key_hash hash_version key_prefix created_at expires_at revoked_at last_used_at",
    "transcriptions": "id video_id status language started_at completed_at duration_seconds transcript_text vtt_path "
    "word_count error_message",
}


async def test_every_documented_column_is_there(database: Database) -> None:
    query = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    found = await rows_of(database, query)
    columns = {(column["table_name"], column["column_name"]) for column in found}
    for table, names in DOCUMENTED.items():
        assert {(table, name) for name in names.split()} <= columns
    naive = [c for c in found if c["data_type"] == "timestamp without time zone"]
    assert naive == []


async def test_the_models_and_the_migrations_say_the_same(database: Database) -> None:
    await check(database.url)
    # Alembic does not compare CHECK constraints, so their names and words are compared here.
    query = "SELECT conname, pg_get_constraintdef(oid) AS says FROM pg_constraint WHERE contype = 'c'"
    found = {row["conname"]: row["says"] for row in await rows_of(database, query)}
    for table in Base.metadata.sorted_tables:
        for constraint in table.constraints:
            if isinstance(constraint, CheckConstraint):
                assert f"ck_{table.name}_{str(constraint.name).removeprefix(f'ck_{table.name}_')}" in found
        for column in table.columns:
            if isinstance(column.type, Enum):
                says = found[f"ck_{table.name}_{column.type.name}"]
                assert sorted(column.type.enums) == sorted(says.split("'")[1::2])


async def test_the_view_in_the_migration_is_the_one_in_the_code(database: Database) -> None:
    async with database.write() as s:
        await s.execute(text(f"CREATE VIEW job_states_now AS {JOB_STATES}"))
        views = text("SELECT pg_get_viewdef('job_states'::regclass) = pg_get_viewdef('job_states_now'::regclass)")
        assert (await s.execute(views)).scalar_one()


async def test_drift_is_found(database: Database) -> None:
    async with database.write() as s:
        await s.execute(text("ALTER TABLE videos DROP COLUMN playable_at"))
    with pytest.raises(SchemaDrift):
        await check(database.url)


async def test_several_may_migrate_at_once(postgres: PostgresServer) -> None:
    await execute(postgres, "CREATE DATABASE fresh")
    url = postgres.url("fresh")
    database = Database(url)
    with pytest.raises(SchemaNotReady):
        await database.wait_for_schema(0.1)
    waiting = asyncio.create_task(database.wait_for_schema(30))
    await asyncio.gather(*(migrate(url) for _ in range(4)))
    await waiting
    await migrate(url)
    await database.close()
    await execute(postgres, "DROP DATABASE fresh WITH (FORCE)")


async def test_newer_schemas_are_left_alone_by_older_code(database: Database) -> None:
    async with database.write() as s:
        await s.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await migrate(database.url)
    await database.wait_for_schema(5)
    assert is_current("9999")
    assert not is_current(None)
    assert not is_current("0001") or migrating._known()[1] == "0001"


async def test_words_outside_the_enumerations_are_refused(database: Database) -> None:
    video = await planned(database)
    await register(database)
    for statement in (
        "UPDATE videos SET status = 'paused'",
        "UPDATE videos SET tier = 'gold'",
        "UPDATE transcoding_jobs SET current_step = 'lunch'",
        "UPDATE transcoding_jobs SET progress_percent = 101",
        "UPDATE transcoding_jobs SET claimed_at = now()",
        "UPDATE quality_progress SET status = 'half'",
        "UPDATE quality_progress SET quality = 'big'",
        "UPDATE workers SET status = 'asleep'",
        "UPDATE workers SET metadata = jsonb_build_object('x', repeat('y', 10300))",
        f"INSERT INTO job_events (job_id, event, level) VALUES ({video.job_id}, 'x', 'loud')",
    ):
        with pytest.raises(IntegrityError):
            async with database.write() as s:
                await s.execute(text(statement))


async def test_a_video_has_at_most_one_unfinished_job(database: Database) -> None:
    video = await upload(database)
    second = f"INSERT INTO transcoding_jobs (video_id) VALUES ({video.video_id})"
    with pytest.raises(IntegrityError):
        async with database.write() as s:
            await s.execute(text(second))
    for ended in ("completed_at = now()", "completed_at = NULL, cancelled_at = now()"):
        async with database.write() as s:
            await s.execute(text(f"UPDATE transcoding_jobs SET {ended} WHERE id = {video.job_id}"))
            await s.execute(text(second))
            await s.execute(text(f"DELETE FROM transcoding_jobs WHERE id <> {video.job_id}"))
    async with database.write() as s:
        failed = "cancelled_at = NULL, last_error = 'x', attempt_number = 3"
        await s.execute(text(f"UPDATE transcoding_jobs SET {failed} WHERE id = {video.job_id}"))
        await s.execute(text(second))


async def test_a_read_session_cannot_write(database: Database) -> None:
    with pytest.raises(DBAPIError, match="read-only"):
        async with database.read() as s:
            await s.execute(text("INSERT INTO videos (title, slug) VALUES ('x', 'x')"))
