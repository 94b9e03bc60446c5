"""A local worker's quarantine is written to the mirror by itself."""

from dataclasses import dataclass

from contracts.queues import Pool
from mirror import writes_quarantine
from mirror.reads_workers import others_serve
from mirror.sessions import Database


@dataclass(frozen=True)
class MirrorNotes:
    database: Database
    worker_id: str
    heard_within_s: float  # whoever was silent for longer is not counted on

    async def aside(self) -> frozenset[str]:
        async with self.database.read() as session:
            return await writes_quarantine.pools_aside(session, self.worker_id)

    async def set_aside(self, pools: frozenset[str], why: str) -> None:
        async with self.database.write() as session:
            await writes_quarantine.set_pools_aside(session, self.worker_id, pools, why)

    async def others_serve(self, pool: Pool) -> bool:
        async with self.database.read() as session:
            return await others_serve(session, self.worker_id, pool, heard_within_s=self.heard_within_s)
