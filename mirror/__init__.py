"""The picture of Temporal and storage that people and tools query: tables, guarded writes, reads, the job's state."""
