// Package history takes what a Prometheus knows of a time, and gives it to another Prometheus: samples as they are, with
// their timestamps, their bits, and the markers with which a series ends. It reads by remote read and writes by remote
// write, which every Prometheus speaks over HTTP: no admin API, no shell on its host.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	prompb "buf.build/gen/go/prometheus/prometheus/protocolbuffers/go"
	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/proto"
)

const (
	// window is how much time is asked for at once. A Prometheus takes samples that are up to an hour older than its
	// newest: windows that follow each other are in order enough.
	window   = 5 * time.Minute
	shortest = 5 * time.Second // of a window that was halved

	mostAnswer   = 256 << 20 // bytes of one answer, unpacked
	askTimeout   = time.Minute
	again        = 3 // times that one that has answered before is asked again
	pause        = time.Second
	perRequest   = 20_000 // samples that are given at once: some hundred KB
	errorExcerpt = 300    // bytes of what it says instead
)

// A Series is one series of a window.
type Series = prompb.TimeSeries

// Labels are those of a series by name.
func Labels(s *Series) map[string]string {
	labels := make(map[string]string, len(s.Labels))
	for _, l := range s.Labels {
		labels[l.Name] = l.Value
	}
	return labels
}

// Count is how many samples a series has here, native histograms among them.
func Count(s *Series) int { return len(s.Samples) + len(s.Histograms) }

// A Prometheus is one at an address.
type Prometheus struct {
	base     *url.URL
	client   *http.Client
	answered bool // to a read
}

// At is the Prometheus at an address, which may have a user and a password in it: they appear in no error.
func At(address string) (*Prometheus, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of Prometheus must begin with http:// or https:// and name a host") // it may hold a password: not shown
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Prometheus{base: u, client: &http.Client{Timeout: askTimeout}}, nil
}

// String is the address without what may be secret in it: the password, parameters, and a user that stands there alone.
func (p *Prometheus) String() string {
	shown := *p.base
	shown.RawQuery, shown.Fragment = "", ""
	if user := shown.User; user != nil {
		if _, named := user.Password(); !named {
			shown.User = url.User("xxxxx")
		}
	}
	return shown.Redacted()
}

// errTooMuch says that a window holds more than an answer may.
var errTooMuch = errors.New("more samples than one answer may have")

// Take asks for all series between two times, both included, and hands them over window by window, in the order of time.
func (p *Prometheus) Take(ctx context.Context, from, to time.Time, hand func([]*Series) error) error {
	return p.take(ctx, from, to, window, hand)
}

func (p *Prometheus) take(ctx context.Context, from, to time.Time, width time.Duration, hand func([]*Series) error) error {
	for at := from; !at.After(to); at = at.Add(width) {
		last := at.Add(width - time.Millisecond) // both ends are included
		if last.After(to) {
			last = to
		}
		series, err := p.read(ctx, at, last)
		switch {
		case errors.Is(err, errTooMuch) && width > shortest:
			err = p.take(ctx, at, last, max(width/2, shortest), hand)
		case err == nil && len(series) > 0:
			err = hand(series)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read is one remote read.
func (p *Prometheus) read(ctx context.Context, from, to time.Time) ([]*Series, error) {
	body, err := proto.Marshal(&prompb.ReadRequest{Queries: []*prompb.Query{{
		StartTimestampMs: from.UnixMilli(), EndTimestampMs: to.UnixMilli(),
		Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: ".+"}},
	}}})
	if err != nil {
		return nil, err
	}
	packed, err := p.post(ctx, "/api/v1/read", body)
	for range again {
		if err == nil || !p.answered || errors.Is(err, errTooMuch) || ctx.Err() != nil {
			break
		}
		select { // a proxy or a tunnel between: what it told so far would be of no use without the rest
		case <-ctx.Done():
		case <-time.After(pause):
			packed, err = p.post(ctx, "/api/v1/read", body)
		}
	}
	if err != nil {
		return nil, err
	}
	p.answered = true
	if n, err := snappy.DecodedLen(packed); err == nil && n > mostAnswer {
		return nil, errTooMuch
	}
	var answer prompb.ReadResponse
	unpacked, err := snappy.Decode(nil, packed)
	if err == nil {
		err = proto.Unmarshal(unpacked, &answer)
	}
	if err == nil && len(answer.Results) != 1 {
		err = fmt.Errorf("%d results to one query", len(answer.Results))
	}
	if err != nil {
		return nil, fmt.Errorf("what %s answers is none of a Prometheus (%w): is that its address?", p, err)
	}
	// Prometheus 2.42 names native histograms, and tells nothing of them.
	return slices.DeleteFunc(answer.Results[0].Timeseries, func(s *Series) bool { return Count(s) == 0 }), nil
}

// Requests packs series into bodies of remote write, each of some thousand samples, before snappy.
func Requests(series []*Series) (bodies [][]byte, err error) {
	var request prompb.WriteRequest
	samples := 0
	flush := func() error {
		if len(request.Timeseries) == 0 {
			return nil
		}
		body, err := proto.Marshal(&request)
		bodies, request.Timeseries, samples = append(bodies, body), nil, 0
		return err
	}
	for _, s := range series {
		request.Timeseries = append(request.Timeseries, s)
		if samples += Count(s); samples >= perRequest {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return bodies, flush()
}

// Give has Prometheus store one body, which Requests made.
func (p *Prometheus) Give(ctx context.Context, body []byte) error {
	_, err := p.post(ctx, "/api/v1/write", body)
	return err
}

func (p *Prometheus) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	to := *p.base
	to.Path += path
	to.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		return nil, err
	}
	if user := p.base.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus at %s: %w", p, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask Prometheus at %s: %w", p, err)
	case resp.StatusCode == http.StatusBadRequest && bytes.Contains(answer, []byte("exceeded sample limit")), len(answer) > mostAnswer:
		return nil, errTooMuch
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s does not know %s: is that the address of a Prometheus, with its path where it has one (…/prometheus)?", p, path)
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("Prometheus at %s answers %s: %.*s", p, resp.Status, errorExcerpt, bytes.TrimSpace(answer)) //nolint:staticcheck // a name
	}
	return answer, nil
}
