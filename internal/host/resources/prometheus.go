package resources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/internal/secret"
)

// notRunners excludes the machines of runners (infra/prometheus/runners-aws.yml) from queries about the target.
const notRunners = `instance!~"runner-.+"`

// machineQueries has the queries for nginx and the target's machines, each with a function that stores the value in a
// Sample. The metrics come from nginx's exporter, cAdvisor and node_exporter, which infra/prometheus scrapes.
var machineQueries = map[string]func(*Sample, float64){
	`sum(nginx_connections_active)`:                                       func(s *Sample, v float64) { s.NginxActive = int(v) },
	`sum(container_memory_rss{name=~".*nginx.*"})`:                        func(s *Sample, v float64) { s.NginxRSS = uint64(v) },
	`sum(container_cpu_usage_seconds_total{name=~".*nginx.*"})`:           func(s *Sample, v float64) { s.NginxCPU = v },
	`sum(node_cpu_seconds_total{mode!~"idle|iowait",` + notRunners + `})`: func(s *Sample, v float64) { s.BusySeconds, s.OfTarget = v, true },
	`sum(node_memory_MemAvailable_bytes{` + notRunners + `})`:             func(s *Sample, v float64) { s.Available = uint64(v) },
	`sum(node_memory_MemTotal_bytes{` + notRunners + `})`:                 func(s *Sample, v float64) { s.Memory = uint64(v) },
	`sum(node_network_receive_bytes_total{` + notRunners + `})`:           func(s *Sample, v float64) { s.Received = uint64(v) },
	`sum(node_network_transmit_bytes_total{` + notRunners + `})`:          func(s *Sample, v float64) { s.Transmitted = uint64(v) },
	`sum(node_netstat_Tcp_OutSegs{` + notRunners + `})`:                   func(s *Sample, v float64) { s.Sent = uint64(v) },
	`sum(node_netstat_Tcp_RetransSegs{` + notRunners + `})`:               func(s *Sample, v float64) { s.Retransmits, s.NetworkKnown = uint64(v), true },
	`sum(node_netstat_TcpExt_ListenOverflows{` + notRunners + `})`:        func(s *Sample, v float64) { s.Overflows = uint64(v) },
	`sum(node_netstat_TcpExt_ListenDrops{` + notRunners + `})`:            func(s *Sample, v float64) { s.Drops = uint64(v) },
}

// maxPoints is the maximum number of points per series in a query. Prometheus allows at most 11,000.
const maxPoints = 10_000

// FromPrometheus returns samples of the target and its machines from the Prometheus server at address, one per
// Interval. It returns an error if there is no data from any backend.
func FromPrometheus(ctx context.Context, address string, from, to time.Time) ([]Sample, error) {
	client, err := prometheusAt(address)
	if err != nil {
		return nil, err
	}
	from, to = from.Truncate(Interval), to.Truncate(Interval)
	samples := make([]Sample, int(to.Sub(from)/Interval)+1)
	for i := range samples {
		samples[i].Unix = from.Unix() + int64(i)*int64(Interval/time.Second)
	}
	found := false
	fill := func(query string, put func(*Sample, float64), isBackend bool) error {
		all, err := queryRange(ctx, client, query, from, to)
		if err != nil {
			return fmt.Errorf("query Prometheus at %s: %w", Redact(address), withoutURL(err))
		}
		for _, series := range all { // a sum has one series per request
			found = found || isBackend
			for _, v := range series.Values {
				if at := int(v.Timestamp.Time().Sub(from) / Interval); at >= 0 && at < len(samples) {
					put(&samples[at], float64(v.Value))
				}
			}
		}
		return nil
	}
	for metric, put := range backendMetrics {
		if metric == servedMetric {
			continue
		}
		if err := fill(fmt.Sprintf(`sum(%s{job="backend"})`, metric), put, true); err != nil {
			return nil, err
		}
	}
	for query, put := range machineQueries {
		if err := fill(query, put, false); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("query Prometheus at %s: no data from a job \"backend\" between %s and %s UTC",
			Redact(address), from.UTC().Format(time.TimeOnly), to.UTC().Format(time.TimeOnly))
	}
	return samples, nil
}

func prometheusAt(address string) (prometheus.API, error) {
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("PROMETHEUS_URL must begin with http:// or https:// and name a host") // the URL may contain a password
	}
	client, err := api.NewClient(api.Config{Address: address, Client: &http.Client{Timeout: 30 * time.Second}})
	if err != nil {
		return nil, fmt.Errorf("PROMETHEUS_URL %s: %w", Redact(address), withoutURL(err))
	}
	return prometheus.NewAPI(client), nil
}

// queryRange returns the values of a query between two times, one per Interval. A series of over maxPoints values is
// returned in several parts.
func queryRange(ctx context.Context, client prometheus.API, query string, from, to time.Time) (all model.Matrix, err error) {
	for ; !from.After(to); from = from.Add(maxPoints * Interval) {
		window := prometheus.Range{Start: from, End: from.Add((maxPoints - 1) * Interval), Step: Interval}
		if window.End.After(to) {
			window.End = to
		}
		answer, _, err := client.QueryRange(ctx, query, window)
		if err != nil {
			return nil, err
		}
		series, _ := answer.(model.Matrix)
		all = append(all, series...)
	}
	return all, nil
}

// Redact returns an address without its password, query and fragment. A user name without a password may be a token, so
// Redact hides it, too. It returns a placeholder for text that is not a URL.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	return secret.Address(u)
}

// withoutURL returns the error of a failed request without the URL, which may contain a token.
func withoutURL(err error) error {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		return request.Err
	}
	return err
}

// CopyHost copies Host from hostSamples, the samples of this host, into samples from a Prometheus server, unless the
// server monitors a host. Each sample receives the latest Host at its time. CopyHost reports whether it changed a
// sample.
func CopyHost(samples, hostSamples []Sample) bool {
	if slices.ContainsFunc(samples, func(s Sample) bool { return s.BusySeconds > 0 || s.NetworkKnown }) {
		return false
	}
	next, found := 0, false
	for i := range samples {
		for next+1 < len(hostSamples) && hostSamples[next+1].Unix <= samples[i].Unix {
			next++
		}
		if next < len(hostSamples) && hostSamples[next].Unix <= samples[i].Unix {
			samples[i].Host, found = hostSamples[next].Host, true
		}
	}
	return found
}
