#!/bin/sh
# Make or update Temporal's two databases. Safe to repeat: each command leaves alone what is already there.
set -eu

tool() {
    temporal-sql-tool --plugin postgres12 --ep postgres -p 5432 -u temporal "$@"
}

for pair in temporal:temporal temporal_visibility:visibility; do
    database=${pair%%:*}
    tool --db "$database" create
    tool --db "$database" setup-schema -v 0.0
    tool --db "$database" update-schema -d "/etc/temporal/schema/postgresql/v12/${pair##*:}/versioned"
done
