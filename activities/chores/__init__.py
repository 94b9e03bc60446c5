"""Housekeeping's chores, one per file: each small, bounded, safe to repeat and safe beside running jobs."""
