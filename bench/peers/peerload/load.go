// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sort"
	"sync"
	"time"
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

func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(int(share*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[at]) / 1e6
}

// run drives every connection in a goroutine of its own and gathers what they found.
func (l load) run(drive func(connection int, end time.Time) outcome) report {
	var wait sync.WaitGroup
	found := make([]outcome, l.conns)
	began := time.Now()
	for i := range found {
		wait.Add(1)
		go func() {
			defer wait.Done()
			found[i] = drive(i, began.Add(l.duration))
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
