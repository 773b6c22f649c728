package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/process"
)

const (
	churnMost     = 20_000           // streams in a window: see churner.dial
	churnInterval = 15 * time.Second // of noops, as in a soak
	churnRoom     = 800              // streams beyond those that are held; with 20,000 descriptors that leaves the plain connections theirs
)

// A churned is a way to end streams, and what was measured of it in each round.
type churned struct {
	name, what       string
	delete           bool
	rate, cpu        []float64 // pairs per second; µs of the backend's CPU for each
	connect99, end99 []float64 // ms
	pairs            int64
}

// measureChurn holds many streams, and opens and ends others beside them as fast as it goes.
func (b *bench) measureChurn() (out []Metric) {
	n := b.busy
	// By itself the backend takes no more streams than three quarters of its descriptors, which are just these.
	check(os.Setenv("MAX_CONNECTIONS", strconv.Itoa(n+churnRoom)))
	defer os.Unsetenv("MAX_CONNECTIONS")
	s := b.startService(n+churnRoom, churnInterval, false)
	defer s.stop()
	c := s.startRaw(rawOptions{Connections: n})
	defer c.kill()
	s.hold(c, n, b.settle)
	all := []*churned{
		{name: "connect and hang up", what: "the client resets each as soon as it has its headers"},
		{name: "connect and DELETE", what: "each is ended by a DELETE on another connection, which is kept, and is read to its end", delete: true},
	}
	for round := range b.rounds {
		b.say("round %d of %d", round+1, b.rounds)
		for _, one := range all {
			one.once(s, n)
		}
	}
	if received, missed := c.end(); missed > 0 {
		check(fmt.Errorf("the streams that were held missed %d of %d noops meanwhile: %w", missed, received+missed, errUnaccounted))
	}
	for _, one := range all {
		out = append(out, one.metrics(n, b)...)
	}
	return out
}

// once measures one way for a window, and until the backend has seen the last end.
func (m *churned) once(s service, held int) {
	dir := s.folder("churn")
	o := churnOptions{Address: must(url.Parse(s.URL)).Host, Prefix: s.prefix(), Token: s.Token, Delete: m.delete, For: s.window, Most: churnMost}
	before := sum(ours("backend"), cpuOf)
	p := must(process.Start(process.Spec{
		Name: "churn client", Path: must(os.Executable()), Args: []string{"churn-client", string(must(json.Marshal(o)))}, Env: os.Environ(), Log: dir + "/out.json", Orphan: syscall.SIGKILL,
	}))
	defer p.Stop(s.ctx, syscall.SIGKILL, time.Second)
	select {
	case <-p.Done():
	case <-s.ctx.Done():
		check(s.ctx.Err())
	case <-time.After(s.window + time.Minute):
		check(errors.New("the churn client did not end in time"))
	}
	var r churnResult
	check(json.Unmarshal(must(os.ReadFile(dir+"/out.json")), &r))
	seconds := r.Seconds
	if over := time.Now(); s.counts().open != held { // the backend is behind
		s.await(held, nil)
		seconds += time.Since(over).Seconds()
	}
	cpu := sum(ours("backend"), cpuOf) - before
	pairs := r.Connect.Count()
	if len(r.Errors) > 0 || pairs == 0 {
		check(fmt.Errorf("%s: %d streams were opened, and these errors came: %v: %w", m.name, pairs, r.Errors, errUnaccounted))
	}
	m.pairs += pairs
	m.rate, m.cpu = append(m.rate, float64(pairs)/seconds), append(m.cpu, cpu/float64(pairs)*1e6)
	m.connect99, m.end99 = append(m.connect99, r.Connect.Quantile(.99).Seconds()*ms), append(m.end99, r.End.Quantile(.99).Seconds()*ms)
	s.say("  %s: %.0f per second, %.0f µs of the backend's CPU each", m.name, float64(pairs)/seconds, cpu/float64(pairs)*1e6)
}

func (m *churned) metrics(held int, b *bench) []Metric {
	out := []Metric{
		metric(m.name, "/s", m.rate...).means(
			"streams opened and ended per second beside %d that are held and get a noop every %v, %d at a time; %s; until the backend has seen the last end; "+
				"%d in %d windows of %v or %d streams, none refused, and none of those that were held missed a noop; the client is on the same cores",
			held, churnInterval, churnAtATime, m.what, m.pairs, b.rounds, b.window, churnMost),
		metric(m.name+", backend's CPU each", "µs", m.cpu...).means("user and system CPU of the backend in that time ÷ streams opened; nothing subtracted"),
		metric(m.name+", p99 of the connect", "ms", m.connect99...).means("from the dial to the last header, by the client"),
	}
	if m.delete {
		out = append(out, metric("connect and DELETE, p99 of the DELETE", "ms", m.end99...).means("from sending it to the end of its answer, by the client"))
	}
	return out
}
