// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

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

func (l load) kafka() report {
	connections := make([]net.Conn, l.conns)
	for i := range connections {
		connection, err := net.Dial("tcp", l.addr)
		fail(err)
		connections[i] = connection
	}
	return l.run(func(i int, end time.Time) outcome {
		return l.drive(connections[i], l.request(i), end)
	})
}
