// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"net"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// load is a closed loop: each connection keeps depth requests in flight, all to one partition.
type load struct {
	addr, topic                      string
	parts, conns, depth, batch, size int
	duration                         time.Duration
}

type report struct {
	Requests          int     `json:"requests"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	RecordsPerSecond  float64 `json:"records_per_second"`
	P50               float64 `json:"p50_ms"`
	P99               float64 `json:"p99_ms"`
	Errors            int     `json:"errors"`
}

type outcome struct {
	latencies []time.Duration
	errors    int
}

func (l load) request(connection int) []byte {
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(7)
	request.Acks = -1
	request.TimeoutMillis = 30000
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Partition = int32(connection % l.parts)
	partition.Records = batchOf(l.batch, l.size)
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = l.topic
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	return frame(request)
}

// drive sends from one goroutine and reads in another; answers come in order.
func (l load) drive(connection net.Conn, request []byte, end time.Time) (found outcome) {
	free := make(chan struct{}, l.depth)
	sent := make(chan time.Time, l.depth)
	go func() {
		for time.Now().Before(end) {
			free <- struct{}{}
			sent <- time.Now()
			_, err := connection.Write(request)
			fail(err)
		}
		close(sent)
	}()
	from := bufio.NewReaderSize(connection, 64<<10)
	var buffer []byte
	for began := range sent {
		body, err := answer(from, &buffer)
		fail(err)
		<-free
		found.latencies = append(found.latencies, time.Since(began))
		response := kmsg.NewPtrProduceResponse()
		response.SetVersion(7)
		fail(response.ReadFrom(body))
		if response.Topics[0].Partitions[0].ErrorCode != 0 {
			found.errors++
		}
	}
	return found
}

func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(int(share*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[at]) / 1e6
}

func (l load) run() report {
	var wait sync.WaitGroup
	found := make([]outcome, l.conns)
	connections := make([]net.Conn, l.conns)
	for i := range connections {
		connection, err := net.Dial("tcp", l.addr)
		fail(err)
		connections[i] = connection
	}
	began := time.Now()
	for i := range connections {
		wait.Add(1)
		go func() {
			defer wait.Done()
			found[i] = l.drive(connections[i], l.request(i), began.Add(l.duration))
		}()
	}
	wait.Wait()
	seconds := time.Since(began).Seconds()
	var all []time.Duration
	errors := 0
	for _, each := range found {
		all = append(all, each.latencies...)
		errors += each.errors
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return report{len(all), float64(len(all)) / seconds, float64(len(all)*l.batch) / seconds,
		quantile(all, .5), quantile(all, .99), errors}
}
