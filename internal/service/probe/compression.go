package probe

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
)

// compression returns a sentence for each request for a compressed stream, unless the user stopped the probe during the
// request. For a compressed stream, the sentence states the delay relative to the streams that did not request
// compression. If the streams of all encodings opened uncompressed, compression returns one sentence for all of them.
func (f *findings) compression() (out []string) {
	uncompressed := 0
	var reference []*track
	for _, t := range f.tracksOf(plain) {
		if t != f.session.disconnected || f.session.Streams == 1 {
			reference = append(reference, t)
		}
	}
	for _, t := range f.session.tracks {
		if t.role != compressed || t.isStopped {
			continue
		}
		prefix := "Accept-Encoding: " + t.encoding + ": "
		encoding := http.Header(t.header).Get("Content-Encoding")
		switch {
		case t.err != nil:
			out = append(out, prefix+t.err.Error()+": the service or a proxy delays even the headers, or refuses the request.")
		case t.open == nil:
			out = append(out, prefix+"no event stream (status "+http1.StatusText(t.status)+").")
		case cmp.Or(encoding, "identity") == "identity":
			uncompressed++
			out = append(out, prefix+"not compressed.")
		default:
			out = append(out, fmt.Sprintf("%scompressed (%s, %d bytes), and %s.", prefix, f.session.quote(encoding), t.bytes, f.delay(t, reference)))
		}
	}
	if uncompressed == len(encodings) {
		return []string{"Not compressed with any Accept-Encoding (" + strings.Join(encodings, ", ") + ")."}
	}
	return out
}

func (f *findings) delay(t *track, reference []*track) string {
	const slow = 300 * time.Millisecond
	var latest time.Duration
	compared, due := 0, 0
	var joint batchCounter
	for _, r := range reference {
		arrivals := map[string]time.Time{}
		for _, u := range f.units[t] {
			if _, known := arrivals[f.key(u)]; !known && !u.isComment() {
				arrivals[f.key(u)] = u.at
			}
		}
		counts := map[string]int{}
		for _, u := range f.units[r] {
			counts[f.key(u)]++
		}
		for _, u := range f.units[r] {
			if u.isComment() || f.heartbeat.matches(u) || u.at.Before(t.headersAt) || counts[f.key(u)] > 1 {
				continue
			}
			due++
			if at, arrived := arrivals[f.key(u)]; arrived {
				compared++
				latest = max(latest, at.Sub(u.at))
				joint.add(u.at, at)
			}
		}
	}
	switch {
	case due == 0:
		return "no event that could be compared arrived on another stream, so it is unknown whether events are delayed"
	case compared == 0 && len(f.units[t]) == 0:
		return fmt.Sprintf("everything was delayed: nothing arrived within %s", formatSeconds(t.lifetime()))
	case compared == 0:
		return "it is unknown whether events are delayed: no event was the same as on another stream"
	case latest > slow:
		return fmt.Sprintf("events were delayed by up to %s%s", formatSeconds(latest), joint.sentence())
	}
	return "no event was delayed"
}

// A batchCounter counts events that arrived together on a compressed stream, but separately on another stream.
type batchCounter struct {
	referenceAt, compressedAt time.Time // arrival of the last event on the other and on the compressed stream
	isJoint                   bool      // the last event arrived together with the previous one
	batches, events           int       // number of batches, and of the events in them
}

func (b *batchCounter) add(referenceAt, compressedAt time.Time) {
	const separateGap, jointGap = 30 * time.Millisecond, 20 * time.Millisecond
	isJoint := !b.referenceAt.IsZero() && referenceAt.Sub(b.referenceAt) > separateGap && compressedAt.Sub(b.compressedAt).Abs() < jointGap
	if isJoint {
		if !b.isJoint {
			b.batches++
			b.events++
		}
		b.events++
	}
	b.referenceAt, b.compressedAt, b.isJoint = referenceAt, compressedAt, isJoint
}

func (b *batchCounter) sentence() string {
	if b.batches == 0 {
		return ""
	}
	return fmt.Sprintf(", in bursts of %.0f: the service or a proxy buffers compressed data", math.Round(float64(b.events)/float64(b.batches)))
}
