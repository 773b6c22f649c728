package resources

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/internal/host/machine"
)

// Names in Prometheus: the job of node_exporter, and the metrics that the hosts of infra/terraform write into
// node_exporter's textfile directory.
const (
	nodes      = `job="node"`
	hostInfo   = "soak_host_info"                     // label boot_id: identifies the host
	hostNotice = "soak_host_notice_timestamp_seconds" // label what: the notice from AWS; value: its time
)

// MachinesFromPrometheus returns the records of the machines that the Prometheus server at address monitored between
// from and to. lateThreshold is the lateness above which a message counts as late. The absence of machines is not an
// error.
func MachinesFromPrometheus(ctx context.Context, address string, from, to time.Time, lateThreshold time.Duration) ([]*machine.Record, error) {
	client, err := prometheusAt(address)
	if err != nil {
		return nil, err
	}
	m := machines{client: client, from: from.Truncate(Interval), to: to.Truncate(Interval), byInstance: map[string]*readings{}}
	if err := m.collect(ctx); err != nil {
		return nil, fmt.Errorf("query the machines from Prometheus at %s: %w", Redact(address), withoutURL(err))
	}
	var out []*machine.Record
	for _, name := range slices.Sorted(maps.Keys(m.byInstance)) {
		record := m.byInstance[name].record(name, lateThreshold)
		if err := record.Check(); err != nil { // readers of a file with this record would reject it
			return nil, fmt.Errorf("query the machines from Prometheus at %s: invalid record of %.100q: %w", Redact(address), name, err)
		}
		out = append(out, record)
	}
	return out, nil
}

// machines collects the readings of all machines that a Prometheus server monitors.
type machines struct {
	client     prometheus.API
	from, to   time.Time
	byInstance map[string]*readings // by the label instance
}

// readings has the counters of one machine by time, its notices and its identity.
type readings struct {
	bySecond map[int64]machine.Reading // Unix seconds
	notices  []machine.Notice
	boot     string
	node     string
	bootUnix int64 // seconds
	cores    int
}

func (m *machines) readingsOf(metric model.Metric) *readings {
	name := string(metric["instance"])
	if m.byInstance[name] == nil {
		m.byInstance[name] = &readings{bySecond: map[int64]machine.Reading{}}
	}
	return m.byInstance[name]
}

func (r *readings) record(name string, lateThreshold time.Duration) *machine.Record {
	w := machine.NewRemote(name, lateThreshold)
	for _, at := range slices.Sorted(maps.Keys(r.bySecond)) {
		w.Add(time.Unix(at, 0), r.bySecond[at])
	}
	for _, n := range r.notices {
		w.AddNotice(n)
	}
	out := w.Record()
	out.Boot, out.Node, out.BootedUnix, out.Cores = r.boot, r.node, r.bootUnix, r.cores
	return out
}

func (m *machines) collect(ctx context.Context) error {
	for _, c := range machine.Counters {
		if c.Metric == "" {
			continue
		}
		if err := m.series(ctx, c.Name, c.Metric); err != nil {
			return err
		}
		if c.Limit != "" {
			if err := m.series(ctx, c.Limit, c.LimitOf); err != nil {
				return err
			}
		}
	}
	for query, put := range map[string]func(*readings, *model.Sample){
		selector(hostInfo):                              func(r *readings, s *model.Sample) { r.boot = string(s.Metric["boot_id"]) },
		selector("node_uname_info"):                     func(r *readings, s *model.Sample) { r.node = string(s.Metric["nodename"]) },
		selector("node_boot_time_seconds"):              func(r *readings, s *model.Sample) { r.bootUnix = int64(s.Value) },
		selector(`node_cpu_seconds_total{mode="idle"}`): func(r *readings, _ *model.Sample) { r.cores++ },
		selector(hostNotice): func(r *readings, s *model.Sample) {
			r.notices = append(r.notices, machine.Notice{Name: string(s.Metric["what"]), AtUS: int64(s.Value) * 1e6})
		},
	} {
		answer, _, err := m.client.Query(ctx, fmt.Sprintf("last_over_time(%s[%ds])", query, int(m.to.Sub(m.from).Seconds())+1), m.to)
		if err != nil {
			return err
		}
		all, _ := answer.(model.Vector)
		for _, s := range all {
			put(m.readingsOf(s.Metric), s)
		}
	}
	return nil
}

// series queries the sum of a metric for each machine, and stores the values in the readings under name.
func (m *machines) series(ctx context.Context, name, metric string) error {
	all, err := queryRange(ctx, m.client, fmt.Sprintf("sum by (instance) (%s)", selector(metric)), m.from, m.to)
	if err != nil {
		return err
	}
	for _, series := range all {
		r := m.readingsOf(series.Metric)
		for _, v := range series.Values {
			at := v.Timestamp.Unix()
			if r.bySecond[at] == nil {
				r.bySecond[at] = machine.Reading{}
			}
			r.bySecond[at][name] = float64(v.Value)
		}
	}
	return nil
}

// selector returns the query for a metric of node_exporter. metric may contain a label selector.
func selector(metric string) string {
	if bare, ok := strings.CutSuffix(metric, "}"); ok {
		return bare + "," + nodes + "}"
	}
	return metric + "{" + nodes + "}"
}
