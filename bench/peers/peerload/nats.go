// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nats publishes into a stream on disk, one replica; each answer says that the message is stored.
func (l load) nats() report {
	ctx := context.Background()
	streams := make([]jetstream.JetStream, l.conns)
	for i := range streams {
		connection, err := nats.Connect("nats://" + l.addr)
		fail(err)
		streams[i], err = jetstream.New(connection)
		fail(err)
	}
	_, err := streams[0].CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: l.topic, Subjects: []string{l.topic}, Storage: jetstream.FileStorage, Replicas: 1,
		MaxBytes: 1 << 30, Discard: jetstream.DiscardOld})
	fail(err)
	value := make([]byte, l.size)
	return l.run(func(i int, end time.Time) (found outcome) {
		for began := time.Now(); began.Before(end); began = time.Now() {
			if _, err := streams[i].Publish(ctx, l.topic, value); err != nil {
				found.errors++
			}
			found.latencies = append(found.latencies, time.Since(began))
		}
		return found
	})
}
