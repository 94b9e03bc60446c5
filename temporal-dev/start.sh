#!/bin/sh
# A Temporal to develop against, in this terminal, with the flags that `vlog up` gives its embedded one
# (runtime/temporal_server.py; a test keeps the two alike).
#
#   temporal-dev/start.sh                       # then: VLOG_TEMPORAL_ADDRESS=127.0.0.1:7233 vlog up
#   PORT=7300 UI_PORT=8300 DB=/tmp/t.db temporal-dev/start.sh
set -eu

here=$(cd "$(dirname "$0")" && pwd)
port=${PORT:-7233}
ui_port=${UI_PORT:-8233}
db=${DB:-$here/temporal.db}

# Beside the venv's python where its wheel puts it, else on PATH.
temporal=${TEMPORAL:-$here/../.venv/bin/temporal}
[ -x "$temporal" ] || temporal=$(command -v temporal) || {
    echo "No temporal command: run 'make setup', or install Temporal's CLI." >&2
    exit 1
}

# start-dev has no option for retention, whose default is a day: set it once the server answers, or give up after 30 s.
(
    tries=0
    until "$temporal" operator namespace update --disable-config-file --disable-config-env --env-file /dev/null \
        --address "127.0.0.1:$port" --namespace default --retention 30d >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ] || exit 0
        sleep 0.5
    done
) &

exec "$temporal" server start-dev --disable-config-file --disable-config-env --env-file /dev/null \
    --ip 127.0.0.1 --port "$port" --ui-port "$ui_port" --db-filename "$db" \
    --sqlite-pragma journal_mode=wal --sqlite-pragma synchronous=normal \
    --dynamic-config-value matching.enableFairness=true \
    --dynamic-config-value matching.numTaskqueueReadPartitions=1 \
    --dynamic-config-value matching.numTaskqueueWritePartitions=1 \
    --dynamic-config-value system.enableCancelActivityWorkerCommand=true \
    --dynamic-config-value frontend.WorkerCommandsEnabled=true \
    --dynamic-config-value frontend.enableCancelWorkerPollsOnShutdown=true \
    --search-attribute VideoId=Keyword --search-attribute VideoStatus=Keyword --search-attribute Tier=Int \
    --search-attribute VideoOwner=Keyword \
    --ui-disable-news-fetch
