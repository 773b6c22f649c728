package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// responsesOptions has the options of a Go client that uses net/http and a scanner. The client reads responses of the
// numbered model, and checks only whether they have their terminal event.
type responsesOptions struct {
	URL         string
	Concurrency int
	Duration    time.Duration
}

// A responsesResult has the number of complete responses, and the CPU time of the process.
type responsesResult struct {
	Complete   int64
	CPUSeconds float64
}

// responses requests responses for a duration. A worker stops at its first error; one of these errors is returned.
func responses(ctx context.Context, o responsesOptions) (r responsesResult, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.Concurrency}
	client, end := &http.Client{Transport: transport}, time.Now().Add(o.Duration)
	var complete, number atomic.Int64
	errs := make(chan error, o.Concurrency)
	var workers sync.WaitGroup
	for range o.Concurrency {
		workers.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				done, err := readResponse(ctx, client, o.URL, number.Add(1))
				if err != nil {
					errs <- err
					return
				}
				if done {
					complete.Add(1)
				}
			}
		})
	}
	workers.Wait()
	transport.CloseIdleConnections()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return r, fmt.Errorf("read the CPU of this process: %w", err)
	}
	select {
	case err = <-errs:
	default:
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return responsesResult{complete.Load(), cpu.Seconds()}, err
}

func readResponse(ctx context.Context, client *http.Client, url string, n int64) (done bool, err error) {
	body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"soak id=b-%d"}]}`, n)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	resp, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		done = done || lines.Text() == "data: [DONE]"
	}
	return done, lines.Err()
}
