"""Chaos uses the tools of the end-to-end tests, and services of its own."""

from tests.e2e.conftest import tools

__all__ = ["tools"]
