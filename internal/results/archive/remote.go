package archive

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

	"github.com/sse-soak/sse-soak/internal/secret"
)

const (
	// readRange is the time range of one remote read. Ranges are copied in chronological order, because a Prometheus
	// server rejects samples that are more than an hour older than its newest sample.
	readRange    = 5 * time.Minute
	minReadRange = 5 * time.Second // minimum range after halving

	maxResponse   = 256 << 20 // maximum bytes of a response, uncompressed
	remoteTimeout = time.Minute
	retries       = 3 // of a read, if an earlier read succeeded
	retryDelay    = time.Second
	errorExcerpt  = 300 // maximum characters of a response in an error
)

// Series is a series of Prometheus with its samples in one range.
type Series = prompb.TimeSeries

// samplesOf returns the number of samples of a series, including native histograms.
func samplesOf(s *Series) int { return len(s.Samples) + len(s.Histograms) }

// A Remote reads and writes the data of a Prometheus server by remote read and remote write. Both preserve timestamps,
// exact values and stale markers. They need neither the admin API nor a shell on the host.
type Remote struct {
	base    *url.URL
	client  *http.Client
	hasRead bool // a read has succeeded
}

// NewRemote returns the Remote at an address. Its error does not quote the address, which may contain a password.
func NewRemote(address string) (*Remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of Prometheus must begin with http:// or https:// and name a host")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Remote{base: u, client: &http.Client{Timeout: remoteTimeout}}, nil
}

// String returns the address without secrets.
func (r *Remote) String() string { return secret.Address(r.base) }

// errTooMuch reports that the response for a range would be too large.
var errTooMuch = errors.New("the response would have too many samples")

// Read calls handle with all series between two times, both included, range by range in chronological order.
func (r *Remote) Read(ctx context.Context, from, to time.Time, handle func([]*Series) error) error {
	return r.readRanges(ctx, from, to, readRange, handle)
}

// readRanges reads ranges of the given width. It halves a range that has too many samples.
func (r *Remote) readRanges(ctx context.Context, from, to time.Time, width time.Duration, handle func([]*Series) error) error {
	for at := from; !at.After(to); at = at.Add(width) {
		last := at.Add(width - time.Millisecond) // both ends are included
		if last.After(to) {
			last = to
		}
		series, err := r.readOnce(ctx, at, last)
		switch {
		case errors.Is(err, errTooMuch) && width > minReadRange:
			err = r.readRanges(ctx, at, last, max(width/2, minReadRange), handle)
		case err == nil && len(series) > 0:
			err = handle(series)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Remote) readOnce(ctx context.Context, from, to time.Time) ([]*Series, error) {
	request := &prompb.ReadRequest{Queries: []*prompb.Query{{
		StartTimestampMs: from.UnixMilli(), EndTimestampMs: to.UnixMilli(),
		Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: ".+"}},
	}}}
	packed, err := r.post(ctx, "query", "/api/v1/read", request)
	for range retries {
		if err == nil || !r.hasRead || errors.Is(err, errTooMuch) || ctx.Err() != nil {
			break
		}
		select { // a proxy or a tunnel may fail temporarily, and one missing range makes the export useless
		case <-ctx.Done():
		case <-time.After(retryDelay):
			packed, err = r.post(ctx, "query", "/api/v1/read", request)
		}
	}
	if err != nil {
		return nil, err
	}
	r.hasRead = true
	if n, err := snappy.DecodedLen(packed); err == nil && n > maxResponse {
		return nil, errTooMuch
	}
	var response prompb.ReadResponse
	unpacked, err := snappy.Decode(nil, packed)
	if err == nil {
		err = proto.Unmarshal(unpacked, &response)
	}
	if err == nil && len(response.Results) != 1 {
		err = fmt.Errorf("got %d results for one query", len(response.Results))
	}
	if err != nil {
		return nil, fmt.Errorf("unexpected response from %s: %w; check that this is the address of a Prometheus server", r, err)
	}
	// Prometheus 2.42 returns native histograms as series without samples.
	return slices.DeleteFunc(response.Results[0].Timeseries, func(s *Series) bool { return samplesOf(s) == 0 }), nil
}

// Write stores series in Prometheus.
func (r *Remote) Write(ctx context.Context, series []*Series) error {
	_, err := r.post(ctx, "write to", "/api/v1/write", &prompb.WriteRequest{Timeseries: series})
	return err
}

// post returns the response to a request, or errTooMuch. Most other errors begin with operation: "query" or "write to".
func (r *Remote) post(ctx context.Context, operation, path string, content proto.Message) ([]byte, error) {
	body, err := proto.Marshal(content)
	if err != nil {
		return nil, err
	}
	to := *r.base
	to.Path += path
	to.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		return nil, err
	}
	if user := r.base.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s Prometheus at %s: %w", operation, r, err)
	}
	defer resp.Body.Close()
	response, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s Prometheus at %s: %w", operation, r, err)
	case resp.StatusCode == http.StatusBadRequest && bytes.Contains(response, []byte("exceeded sample limit")), len(response) > maxResponse:
		return nil, errTooMuch
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s has no %s; check the address of Prometheus, and its path if it has one (…/prometheus)", r, path)
	case resp.StatusCode/100 != 2:
		cause := strings.TrimSuffix(fmt.Sprintf("%s: %.*s", resp.Status, errorExcerpt, bytes.TrimSpace(response)), ": ")
		return nil, fmt.Errorf("%s Prometheus at %s: %s", operation, r, cause)
	}
	return response, nil
}
