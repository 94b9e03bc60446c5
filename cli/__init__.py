"""The `vlog` command: starts the service, talks HTTP to it, and shows people what happens.

It never loads the Temporal SDK itself, which may abort a short-lived process at its exit; what needs Temporal
is another process, started as a module.
"""
