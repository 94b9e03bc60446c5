"""HTTP in and out. It reads the mirror, writes at intake, starts workflows, and serves what was published."""
