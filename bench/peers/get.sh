#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the peers into a folder: get.sh FOLDER. Each is independent; one that is not to be had is
# told on stderr and left out. Needs mvn and a JDK for Kafka, go for NATS and the load program.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

missing() { echo "left out: $1" >&2; }

if ! [ -e "$folder/kafka/done" ]; then
    if mvn -q -B -f "$here/kafka.pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$folder/kafka" -DincludeScope=runtime; then
        touch "$folder/kafka/done"
    else
        missing "Kafka: Maven does not answer, or is not installed"
    fi
fi
if ! [ -x "$folder/peerload" ]; then
    (cd "$here/peerload" && go build -o "$folder/peerload" .) ||
        missing "the loads: Go's registry does not answer, or go is not installed"
fi
if ! [ -x "$folder/nats-server" ]; then
    GOBIN="$folder" go install github.com/nats-io/nats-server/v2@v2.15.2 ||
        missing "NATS: Go's registry does not answer, or go is not installed"
fi
exit 0
