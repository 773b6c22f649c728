//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkModel measures the cost of streams of the numbered model: CPU and allocations per chunk, and memory per
// stream.
func BenchmarkModel(b *testing.B) {
	const streams, delay = 4000, 100 * time.Millisecond
	for b.Loop() {
		p := startCommand(b, "model", "--listen=127.0.0.1:0", "--delay="+delay.String(), "--chunks=100000")
		pid := p.cmd.Process.Pid
		before := rssOf(b, pid)
		c := joinWith(b, p.addr, streams, func(i int) string {
			const request = `{"model":"m","stream":true,"messages":[{"role":"user","content":"soak id=run-%d"}]}`
			body := fmt.Sprintf(request, i)
			return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		})
		time.Sleep(2 * time.Second)
		began, chunks, cpu, mallocs := time.Now(), c.events.Load(), cpuOf(b, pid), mallocsOf(b, p.addr)
		time.Sleep(10 * time.Second)
		rate := float64(c.events.Load()-chunks) / time.Since(began).Seconds()
		chunks, cpu, mallocs = c.events.Load()-chunks, cpuOf(b, pid)-cpu, mallocsOf(b, p.addr)-mallocs
		b.ReportMetric(cpu/float64(chunks)*1e6, "CPU-µs/chunk")
		b.ReportMetric(mallocs/float64(chunks), "allocs/chunk")
		b.ReportMetric(float64(rssOf(b, pid)-before)/streams/1024, "KB/stream")
		b.ReportMetric(rate/(streams/delay.Seconds()), "of-planned-rate")
		b.ReportMetric(float64(chunks)/cpu*delay.Seconds(), "streams/core")
	}
}

var mallocsPattern = regexp.MustCompile(`(?m)^go_memstats_mallocs_total (.*)$`)

// mallocsOf returns the number of allocations of a model so far.
func mallocsOf(b *testing.B, addr string) float64 {
	resp, err := http.Get("http://" + addr + "/metrics")
	require.NoError(b, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b, err)
	found := mallocsPattern.FindSubmatch(text)
	require.NotNil(b, found)
	n, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(b, err)
	return n
}
