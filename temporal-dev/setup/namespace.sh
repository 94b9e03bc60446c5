#!/bin/sh
# Make the namespace, its retention and the names that VLog's workflows are searched by. Safe to repeat.
set -eu

namespace=${NAMESPACE:-default}

tries=0
until temporal operator cluster health >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || { echo "Temporal does not answer." >&2; exit 1; }
    sleep 1
done

temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$namespace" --retention 30d
temporal operator namespace update --namespace "$namespace" --retention 30d

known=$(temporal operator search-attribute list --namespace "$namespace")
for pair in VideoId:Keyword VideoStatus:Keyword Tier:Int VideoOwner:Keyword; do
    name=${pair%%:*}
    echo "$known" | grep -qw "$name" ||
        temporal operator search-attribute create --namespace "$namespace" --name "$name" --type "${pair##*:}"
done
