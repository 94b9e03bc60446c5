"""Processes that do the work: build the steps, serve the pools, drain."""
