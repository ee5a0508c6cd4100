// SPDX-License-Identifier: Apache-2.0

// peerload puts load on Kafka and NATS at little cost of its own.
//
//	peerload ready   -addr A -secs N              waits until the Kafka broker answers
//	peerload create  -addr A -topic T -parts N    makes a Kafka topic
//	peerload kafka   -addr A -topic T -parts N -conns C -depth D -batch B -size S -secs N
//	peerload nats    -addr A -topic T -conns C -size S -secs N
//
// kafka sends produce requests that are built once, over plain TCP with many in flight; nats publishes
// one message at a time on each connection and waits for its acknowledgement. Both print one JSON
// object: rates, latencies in ms, errors.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peerload:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: peerload ready|create|kafka|nats [options]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	addr := flags.String("addr", "127.0.0.1:9092", "the broker")
	topic := flags.String("topic", "load", "the topic, or the stream")
	parts := flags.Int("parts", 1, "its partitions")
	conns := flags.Int("conns", 1, "connections")
	depth := flags.Int("depth", 1, "requests in flight on each")
	batch := flags.Int("batch", 1, "records in a request")
	size := flags.Int("size", 100, "bytes of a record's value")
	secs := flags.Float64("secs", 5, "how long")
	fail(flags.Parse(os.Args[2:]))
	load := load{*addr, *topic, *parts, *conns, *depth, *batch, *size,
		time.Duration(*secs * float64(time.Second))}
	switch os.Args[1] {
	case "ready":
		fail(waitReady(*addr, load.duration))
	case "create":
		fail(createTopic(*addr, *topic, int32(*parts)))
	case "kafka":
		tell(load.kafka())
	case "nats":
		tell(load.nats())
	default:
		fail(fmt.Errorf("unknown command %q", os.Args[1]))
	}
}

func tell(found report) {
	text, err := json.Marshal(found)
	fail(err)
	fmt.Println(string(text))
}
