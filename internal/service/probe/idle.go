package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// LongestIdle is the maximum of Config.Length for Idle.
const LongestIdle = 15 * time.Minute

// checkTimes are the silences after which a message checks a stream: 30 s, and times just below and just above each
// known limit. A message ends the silence, so each stream has one check.
var checkTimes = []time.Duration{
	30 * time.Second, 55 * time.Second, 65 * time.Second, 115 * time.Second, 125 * time.Second, 235 * time.Second, 245 * time.Second,
	345 * time.Second, 355 * time.Second,
}

var knownLimits = []struct {
	after  time.Duration
	source string
}{
	{time.Minute, "nginx's proxy_read_timeout (https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_read_timeout)"},
	{time.Minute, "an AWS Application Load Balancer (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/edit-load-balancer-attributes.html)"},
	{2 * time.Minute, "Cloudflare's proxy read timeout (https://developers.cloudflare.com/fundamentals/reference/connection-limits/)"},
	{4 * time.Minute, "an Azure Load Balancer (https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-reset)"},
	{350 * time.Second, "an AWS NAT gateway (https://aws.amazon.com/blogs/networking-and-content-delivery/implementing-long-running-tcp-connections-within-vpc-networking/)"},
	{350 * time.Second, "an AWS Network Load Balancer (https://docs.aws.amazon.com/elasticloadbalancing/latest/network/update-idle-timeout.html)"},
	{350 * time.Second, "a security group on Nitro v6 (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ConnectionTrackingSpecificationRequest.html)"},
}

type silenceOutcome int

const (
	open   silenceOutcome = iota // the stream was open when the probe ended
	alive                        // the message that was published after the silence arrived
	closed                       // the stream ended
	lost                         // the message did not arrive, and the stream did not end
)

// A silentStream is a stream to which the probe publishes nothing before its check, except one message at the start
// that tests publishing.
type silentStream struct {
	*track
	checkAfter time.Duration // silence before the check, or 0 without a check
	outcome    silenceOutcome
	silence    time.Duration // silence before the outcome
	longest    time.Duration // longest silence that the stream survived
}

type idleProbe struct {
	*session
	canPublish bool // messages can check whether a stream is alive
	checkTimes []time.Duration

	mu      sync.Mutex // guards outcome and silence of the streams, and the fields that send changes
	streams []*silentStream
}

// Idle keeps streams silent, and reports the silence after which the service or the network closes them.
//
// A NAT drops a connection without a packet to the client. So, if each stream has its own topic and the probe can
// publish to these topics, one message checks each stream. TCP keep-alive is off, because it would preserve the state
// of a NAT.
func Idle(ctx context.Context, c Config) (text string, err error) {
	a, err := c.prepare()
	if err != nil {
		return "", err
	}
	i := &idleProbe{session: newSession(ctx, c, a)}
	i.silent = true
	if i.canPublish = i.service.Publish != nil && a.connect.contains("{topic}"); i.canPublish {
		i.checkTimes = i.checkTimesWithin(checkTimes)
		i.Streams = len(i.checkTimes)
	}
	if err := i.watchSilence(ctx); err != nil {
		return "", err
	}
	return i.report(), nil
}

// checkTimesWithin returns at most MaxStreams silences: the silences in all that the probe can measure, and then the
// longest silence that it can measure.
func (c *Config) checkTimesWithin(all []time.Duration) (out []time.Duration) {
	last := c.Length - c.Pace // the streams open one after the other
	for _, silence := range all {
		if silence < last {
			out = append(out, silence)
		}
	}
	return append(out[:min(len(out), MaxStreams-1)], last)
}

func (i *idleProbe) watchSilence(ctx context.Context) error {
	i.started = time.Now()
	streamCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer i.closeAll()
	if err := i.start(ctx, streamCtx); err != nil {
		return err
	}
	for n, t := range i.tracks {
		if t.open == nil {
			return i.checkFirst(t)
		}
		s := &silentStream{track: t}
		if i.canPublish {
			s.checkAfter = i.checkTimes[n]
			isAlive, err := i.check(ctx, s)
			if err == nil && !isAlive && ctx.Err() == nil {
				err = fmt.Errorf("a message to the topic %s was confirmed, but did not arrive on the stream of that topic within %s, so silent streams cannot be checked",
					i.values(t.n).Topic, formatSeconds(10*i.Pace))
			}
			if err != nil {
				return err
			}
		}
		i.streams = append(i.streams, s)
	}
	limit, stop := context.WithTimeout(ctx, i.Length)
	defer stop()
	i.Progress(fmt.Sprintf("holding %s silent, for %s at most", format.Count(len(i.streams), "stream"), formatSeconds(i.Length)))
	var watching sync.WaitGroup
	for _, s := range i.streams {
		watching.Go(func() {
			if i.follow(ctx, limit, s); len(i.withOutcome(lost)) > 1 { // a single lost stream may have a different cause
				stop()
			}
		})
	}
	watching.Wait()
	if ctx.Err() != nil {
		i.notes = append(i.notes, fmt.Sprintf("The probe was stopped after %s.", formatSeconds(time.Since(i.started))))
	}
	return nil
}

// check publishes a message to the topic of a stream, and reports whether the message arrives within ten times Pace. It
// returns an error if the service does not confirm the message.
func (i *idleProbe) check(ctx context.Context, s *silentStream) (isAlive bool, err error) {
	i.mu.Lock()
	requested := time.Now()
	err = i.send(ctx, s.n)
	if err == nil && ctx.Err() == nil && !i.published[len(i.published)-1].confirmed {
		err = fmt.Errorf("a message to the topic %s was not confirmed, so silent streams cannot be checked; probe again", i.values(s.n).Topic)
	}
	i.mu.Unlock()
	if err != nil {
		return false, err
	}
	arrived := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.parts, func(p stream.Part) bool {
			return !p.Line && p.HasData && p.At.After(requested) && (!i.publishes("{run}") || bytes.Contains(slices.Concat(p.Event, p.ID, p.Data), []byte(i.marker)))
		})
	}
	for until := time.Now().Add(10 * i.Pace); time.Now().Before(until) && ctx.Err() == nil && !s.endedByService() && !arrived(); {
		i.sleep(ctx, i.Pace/20)
	}
	return arrived(), nil
}

// follow waits until a stream has an outcome, or limit ends. Each byte of the stream starts a new silence.
func (i *idleProbe) follow(ctx, limit context.Context, s *silentStream) {
	for limit.Err() == nil {
		last := s.lastByte()
		quiet := time.Since(last)
		switch {
		case s.endedByService():
			i.decide(s, closed, s.endedAt.Sub(last))
			return
		case s.checkAfter > 0 && quiet >= s.checkAfter:
			isAlive, err := i.check(ctx, s)
			switch {
			case isAlive:
				s.longest = max(s.longest, quiet)
				i.decide(s, alive, quiet)
			case s.endedByService():
				i.decide(s, closed, quiet)
			case err == nil && ctx.Err() == nil: // send has recorded an unconfirmed message in the notes
				i.decide(s, lost, quiet)
			}
			return
		}
		s.longest = max(s.longest, quiet)
		i.sleep(limit, i.Pace/4)
	}
}

func (i *idleProbe) decide(s *silentStream, outcome silenceOutcome, silence time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.outcome, s.silence = outcome, silence
	i.Progress(fmt.Sprintf("stream %d after a silence of %s: %s", s.n+1, formatSeconds(silence), [...]string{"", "alive", "closed", "lost without notice"}[outcome]))
}

func (i *idleProbe) withOutcome(outcome silenceOutcome) []*silentStream {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(i.streams), func(s *silentStream) bool { return s.outcome != outcome })
	slices.SortFunc(out, func(a, b *silentStream) int { return cmp.Compare(a.silence, b.silence) })
	return out
}

// lastByte returns the time of the last byte of the body, or of the headers. An empty line is not a part, but resets
// the timeout of a proxy.
func (t *track) lastByte() time.Time {
	if t.open != nil {
		if n, at := t.open.Received(); n > 0 {
			return at
		}
	}
	return t.headersAt
}

func (t *track) endReason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(t.ended, io.ErrUnexpectedEOF):
		return "the connection was closed in the middle of the response"
	case errors.Is(t.ended, io.EOF):
		return "the response was complete; the service may limit the lifetime of streams (end.lifetime)"
	case errors.Is(t.ended, syscall.ECONNRESET):
		return "the connection was reset"
	}
	return t.ended.Error()
}

func (i *idleProbe) report() string {
	var b strings.Builder
	v := i.values(0)
	fmt.Fprintf(&b, "%s: %s, silent for up to %s, without TCP keep-alive\n", stream.Fill(&i.service.Connect, &v), format.Count(len(i.streams), "stream"), formatSeconds(i.Length))
	if !i.canPublish {
		b.WriteString("Only closed streams can be detected. To detect a NAT, add --publish-url, with {topic} in both URLs.\n")
	}
	b.WriteString("\n")
	for _, outcome := range []silenceOutcome{alive, closed, lost} {
		for _, s := range i.withOutcome(outcome) {
			text := "alive"
			switch outcome {
			case closed:
				text = "closed: " + s.endReason()
			case lost:
				text = "lost: the message did not arrive, and the stream did not end"
			}
			fmt.Fprintf(&b, "after %7.1f s  %s\n", s.silence.Seconds(), text)
		}
	}
	b.WriteString("\n" + i.conclusion() + "\n")
	for _, note := range i.notes {
		b.WriteString(note + "\n")
	}
	return b.String()
}

// conclusion returns the known limits near the measured one, and a remedy. If no limit was measured, conclusion returns
// the reason.
func (i *idleProbe) conclusion() string {
	dead := append(i.withOutcome(closed), i.withOutcome(lost)...)
	survived := time.Duration(0)
	for _, s := range i.streams {
		survived = max(survived, s.longest)
	}
	if len(dead) == 0 {
		return fmt.Sprintf("No stream was closed during a silence of %s.", formatSeconds(survived))
	}
	first := slices.MinFunc(dead, func(a, b *silentStream) int { return cmp.Compare(a.silence, b.silence) })
	to := first.silence
	slack := max(to/50, 2*time.Second) // a timeout may start earlier or later than the silence that the client measures
	from := time.Duration(0)
	for _, s := range i.withOutcome(alive) {
		switch {
		case s.silence < to:
			from = max(from, s.silence)
		case len(dead) == 1 && s.silence > to+slack:
			return "One stream failed, and another was alive after a longer silence, so the silence was not the reason. Probe again."
		}
	}
	if first.outcome == closed {
		from = to // the end of a stream was observed, so its time is exact
	}
	var out []string
	for _, l := range knownLimits {
		if l.after >= from-slack && l.after <= to+slack {
			out = append(out, fmt.Sprintf("Known limit of %s: %s.", formatSeconds(l.after), l.source))
		}
	}
	remedy := fmt.Sprintf("Send something on each stream, such as a comment, at least every %s, or raise the limit.", formatSeconds(from/2))
	if from == 0 {
		remedy = fmt.Sprintf("The limit is at most %s; probe again with --seconds %.0f to measure it.", formatSeconds(to), Shortest.Seconds())
	}
	return strings.Join(append(out, remedy), "\n")
}
