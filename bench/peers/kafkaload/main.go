// SPDX-License-Identifier: Apache-2.0

// kafkaload puts load on a Kafka broker at little cost of its own: requests are built once, and sent
// over plain TCP with many in flight.
//
//	kafkaload ready  -addr A -secs N                        waits until the broker answers
//	kafkaload create -addr A -topic T -parts N              makes a topic
//	kafkaload produce -addr A -topic T -parts N -conns C -depth D -batch B -size S -secs N
//
// produce prints one JSON object: rates, latencies in ms, errors.
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
		fmt.Fprintln(os.Stderr, "kafkaload:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: kafkaload ready|create|produce [options]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	addr := flags.String("addr", "127.0.0.1:9092", "the broker")
	topic := flags.String("topic", "load", "the topic")
	parts := flags.Int("parts", 1, "its partitions")
	conns := flags.Int("conns", 1, "connections")
	depth := flags.Int("depth", 1, "requests in flight on each")
	batch := flags.Int("batch", 1, "records in a request")
	size := flags.Int("size", 100, "bytes of a record's value")
	secs := flags.Float64("secs", 5, "how long")
	fail(flags.Parse(os.Args[2:]))
	switch os.Args[1] {
	case "ready":
		fail(waitReady(*addr, time.Duration(*secs*float64(time.Second))))
	case "create":
		fail(createTopic(*addr, *topic, int32(*parts)))
	case "produce":
		load := load{*addr, *topic, *parts, *conns, *depth, *batch, *size,
			time.Duration(*secs * float64(time.Second))}
		text, err := json.Marshal(load.run())
		fail(err)
		fmt.Println(string(text))
	default:
		fail(fmt.Errorf("unknown command %q", os.Args[1]))
	}
}
