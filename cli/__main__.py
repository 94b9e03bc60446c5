"""Let `python -m cli` be `vlog`."""

from cli.main import main

main()
