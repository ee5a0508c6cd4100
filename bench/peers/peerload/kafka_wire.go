// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batchOf is a record batch v2 of n records of size bytes each.
func batchOf(n, size int) []byte {
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	var records []byte
	for i := 0; i < n; i++ {
		record := []byte{0, 0} // attributes, timestamp delta
		record = binary.AppendVarint(record, int64(i))
		record = binary.AppendVarint(record, -1) // no key
		record = binary.AppendVarint(record, int64(size))
		record = append(record, value...)
		record = append(record, 0) // no headers
		records = binary.AppendVarint(records, int64(len(record)))
		records = append(records, record...)
	}
	now := uint64(time.Now().UnixMilli())
	tail := make([]byte, 0, 40+len(records)) // what the CRC covers
	tail = binary.BigEndian.AppendUint16(tail, 0)
	tail = binary.BigEndian.AppendUint32(tail, uint32(n-1))
	tail = binary.BigEndian.AppendUint64(tail, now)
	tail = binary.BigEndian.AppendUint64(tail, now)
	tail = binary.BigEndian.AppendUint64(tail, ^uint64(0)) // no producer
	tail = binary.BigEndian.AppendUint16(tail, ^uint16(0))
	tail = binary.BigEndian.AppendUint32(tail, ^uint32(0))
	tail = binary.BigEndian.AppendUint32(tail, uint32(n))
	tail = append(tail, records...)
	head := binary.BigEndian.AppendUint64(nil, 0)
	head = binary.BigEndian.AppendUint32(head, uint32(9+len(tail)))
	head = binary.BigEndian.AppendUint32(head, ^uint32(0))
	head = append(head, 2)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(tail, crc32.MakeTable(crc32.Castagnoli)))
	return append(head, tail...)
}

// frame is a request with header v1, its size in front.
func frame(request kmsg.Request) []byte {
	bytes := make([]byte, 4, 64)
	bytes = binary.BigEndian.AppendUint16(bytes, uint16(request.Key()))
	bytes = binary.BigEndian.AppendUint16(bytes, uint16(request.GetVersion()))
	bytes = binary.BigEndian.AppendUint32(bytes, 0)
	bytes = binary.BigEndian.AppendUint16(bytes, 4)
	bytes = append(bytes, "load"...)
	bytes = request.AppendTo(bytes)
	binary.BigEndian.PutUint32(bytes, uint32(len(bytes)-4))
	return bytes
}

// answer reads one answer into buffer, which grows, and gives its body.
func answer(from io.Reader, buffer *[]byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(size[:]))
	if length < 4 {
		return nil, errors.New("an answer is too short")
	}
	if length > len(*buffer) {
		*buffer = make([]byte, length)
	}
	if _, err := io.ReadFull(from, (*buffer)[:length]); err != nil {
		return nil, err
	}
	return (*buffer)[4:length], nil
}

func ask(addr string, request kmsg.Request) (kmsg.Response, error) {
	connection, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	if _, err := connection.Write(frame(request)); err != nil {
		return nil, err
	}
	var buffer []byte
	body, err := answer(connection, &buffer)
	if err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	return response, response.ReadFrom(body)
}

func waitReady(addr string, patience time.Duration) error {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		request := kmsg.NewPtrMetadataRequest()
		request.SetVersion(1)
		var response kmsg.Response
		if response, err = ask(addr, request); err == nil {
			if len(response.(*kmsg.MetadataResponse).Brokers) > 0 {
				return nil
			}
			err = errors.New("no broker yet")
		}
	}
	return err
}

func createTopic(addr, name string, partitions int32) error {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.SetVersion(2)
	request.TimeoutMillis = 30000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	request.Topics = append(request.Topics, topic)
	response, err := ask(addr, request)
	if err != nil {
		return err
	}
	if code := response.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("topic %s: error %d", name, code)
	}
	return waitLeaders(addr, name)
}

func waitLeaders(addr, name string) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		request := kmsg.NewPtrMetadataRequest()
		request.SetVersion(1)
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
		response, err := ask(addr, request)
		if err != nil {
			return err
		}
		ready := len(response.(*kmsg.MetadataResponse).Topics[0].Partitions) > 0
		for _, partition := range response.(*kmsg.MetadataResponse).Topics[0].Partitions {
			ready = ready && partition.ErrorCode == 0 && partition.Leader >= 0
		}
		if ready {
			return nil
		}
	}
	return fmt.Errorf("topic %s: no leaders", name)
}
