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

// responsesOptions are those of the program responses: a Go client with net/http and a scanner that reads answers of the numbered
// model to their terminal event, and checks nothing else.
type responsesOptions struct {
	URL         string
	Concurrency int
	For         time.Duration
}

type responsesResult struct {
	Complete   int64
	CPUSeconds float64
}

func responses(ctx context.Context, o responsesOptions) (r responsesResult, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.Concurrency}
	client, end := &http.Client{Transport: transport}, time.Now().Add(o.For)
	var complete, number atomic.Int64
	failed := make(chan error, o.Concurrency)
	var all sync.WaitGroup
	for range o.Concurrency {
		all.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				done, err := oneResponse(ctx, client, o.URL, number.Add(1))
				if err != nil {
					failed <- err
					return
				}
				if done {
					complete.Add(1)
				}
			}
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return r, fmt.Errorf("read the CPU of this process: %w", err)
	}
	select {
	case err = <-failed:
	default:
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return responsesResult{complete.Load(), cpu.Seconds()}, err
}

// oneResponse reports whether a response had its terminal event.
func oneResponse(ctx context.Context, client *http.Client, url string, n int64) (done bool, err error) {
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
