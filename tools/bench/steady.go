package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A steadyState is what a client cost while it held its connections and did nothing else.
type steadyState struct {
	rss      float64 // bytes: median of a sample each half second
	noops    uint64  // sent to it in the time
	cpu      time.Duration
	received uint64 // in its whole life
}

func (s steadyState) cpuPer1000() float64 { return s.cpu.Seconds() / float64(s.noops) * 1000 }

// watch waits until the client holds n connections and has settled, measures it for window,
// and ends it. A noop that was sent and not received is an error: a client that does less
// than all of the work has no figure.
func (o *options) watch(ctx context.Context, s service, c client, n int, window time.Duration) (st steadyState, err error) {
	defer c.kill()
	before, err := s.counts(ctx)
	if err != nil {
		return st, err
	}
	if err := s.held(ctx, n, c.done()); err != nil {
		return st, err
	}
	if err := sleep(ctx, o.size.settle); err != nil {
		return st, err
	}
	from, err := s.quiet(ctx)
	if err != nil {
		return st, err
	}
	began := time.Now()
	cpu, err := cpuSum(c.pids())
	if err != nil {
		return st, err
	}
	var rss []float64
	for time.Since(began) < window.Truncate(time.Second) {
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return st, err
		}
		v, err := sumOf(c.pids(), rssOf)
		if err != nil {
			return st, err
		}
		rss = append(rss, v)
	}
	to, err := s.quiet(ctx)
	if err != nil {
		return st, err
	}
	end, err := cpuSum(c.pids())
	if err != nil {
		return st, err
	}
	st.rss, st.noops, st.cpu = median(rss), to.noops-from.noops, end-cpu
	return st, o.account(ctx, s, c, before, &st)
}

// errUnaccounted: a client that did less than all of the work has no figure.
var errUnaccounted = errors.New("there is no figure for that")

// account ends the client and compares what it received with what the backend sent it: all that
// was sent before the client was asked to end, and nothing that was not sent. It is to be called
// in the pause after a round of noops: none may be on its way.
func (o *options) account(ctx context.Context, s service, c client, before counts, st *steadyState) error {
	asked, err := s.counts(ctx)
	if err != nil {
		return err
	}
	if err := c.has(ctx, asked.noops-before.noops); err != nil {
		return err
	}
	received, missed, err := c.end(ctx)
	if err != nil {
		return err
	}
	if err := s.held(ctx, 0, nil); err != nil {
		return err
	}
	after, err := s.counts(ctx)
	if err != nil {
		return err
	}
	st.received = received
	least, most := asked.noops-before.noops, after.noops-before.noops
	if received < least || received > most || missed > 0 {
		return fmt.Errorf("%d to %d noops were sent, %d received and %d missed or faulty: %w", least, most, received, missed, errUnaccounted)
	}
	return nil
}

func cpuSum(pids []int) (time.Duration, error) {
	sum, err := sumOf(pids, func(pid int) (float64, error) {
		d, err := cpuOf(pid)
		return float64(d), err
	})
	return time.Duration(sum), err
}
