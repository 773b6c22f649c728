package main

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A row is what is known of one service.
type row struct {
	Service  string          `json:"service"`
	Version  string          `json:"version,omitempty"`
	Settings string          `json:"settings,omitempty"`
	Traits   traits          `json:"traits"`
	Began    string          `json:"began"`
	Verdict  string          `json:"verdict"`            // pass, fail, invalid; "" without a run
	Findings []string        `json:"findings,omitempty"` // in sentences: why it did not pass, or could not be measured
	Opened   int             `json:"streams_opened"`
	Tables   []verdict.Table `json:"tables,omitempty"` // what the suite found

	Received  uint64  `json:"received"`
	Expected  uint64  `json:"expected"`
	Lost      uint64  `json:"lost"`
	Repeated  uint64  `json:"repeated"`
	Reordered uint64  `json:"reordered"`
	Corrupted uint64  `json:"corrupted"`
	Late      uint64  `json:"late"` // over a second
	Planned   uint64  `json:"published_planned,omitempty"`
	Confirmed uint64  `json:"published_confirmed,omitempty"`
	BehindMS  float64 `json:"published_behind_max_ms,omitempty"` // the schedule

	LatencyMS *verdict.Quantiles `json:"latency_ms,omitempty"`         // publish to receive
	LastMS    *verdict.Quantiles `json:"last_subscriber_ms,omitempty"` // publish to the last subscriber
	AnswerMS  *verdict.Quantiles `json:"publish_answer_ms,omitempty"`
	ConnectMS *verdict.Quantiles `json:"connect_ms,omitempty"`

	Cost             Cost    `json:"cost"`
	KBPerStream      float64 `json:"kb_per_stream"`
	CorePercent      float64 `json:"core_percent"`
	MicrosPerMessage float64 `json:"us_per_message"`
	PerStreamHour    float64 `json:"cpu_seconds_per_stream_hour"`
	GeneratorPercent float64 `json:"generator_core_percent"`
	GeneratorStallMS float64 `json:"generator_stall_max_ms"`
	Saturated        bool    `json:"generator_starved"`

	verdict *verdict.Verdict // nil: the run left none
}

// broke makes the row one of a service that could not be measured.
func (r row) broke(err error) row {
	r.Findings = append(r.Findings, err.Error())
	return r
}

// outcomeOf reads what a run left. Where it left no verdict, what soak said last is the finding.
func (r *row) outcomeOf(run string, said []byte, ended error) {
	v, err := readVerdict(run)
	if err != nil {
		r.Findings = append(r.Findings, fmt.Sprintf("the soak ended without a verdict (%v): %s", ended, lastLine(said)))
		return
	}
	r.verdict, r.Verdict, r.Opened, r.Tables = v, string(v.Verdict), v.Connections.Opened, v.Tables
	r.Findings = append(r.Findings, unmet(v)...)
	m := v.Messages
	r.Received, r.Expected, r.Lost, r.Repeated = m.Received, m.Expected, m.Missed, m.Duplicated+m.Repeated
	r.Reordered, r.Corrupted, r.Late = m.Reordered, m.Corrupted, m.Late
	r.LastMS = m.LastSubscriberMS
	if l := v.LatencyMS; l != nil {
		r.LatencyMS = &l.Quantiles
	}
	if v.ConnectMS != (verdict.Quantiles{}) {
		r.ConnectMS = &v.ConnectMS
	}
	if p := m.Published; p != nil {
		r.Planned, r.Confirmed, r.BehindMS, r.AnswerMS = p.Planned, p.Confirmed, p.MaxLagMS, &p.AnswerMS
	}
	r.GeneratorStallMS, r.Saturated = v.Generator.StallMaxMS, v.Generator.Saturated
	r.GeneratorPercent = 100 * v.Generator.CPUSeconds / (v.EndedUnix - v.StartedUnix)
}

// charge divides what the service took among its streams and messages.
func (r *row) charge(c Cost) {
	r.Cost = c
	if r.Opened > 0 {
		streams := float64(r.Opened)
		r.KBPerStream = (float64(c.HeldBytes) - float64(c.IdleBytes)) / streams / 1024
		r.PerStreamHour = c.CPUSeconds / c.WindowS / streams * 3600
	}
	r.CorePercent = 100 * c.CPUSeconds / c.WindowS
	if r.verdict == nil {
		return
	}
	if rate := perSecond(r.verdict); rate > 0 {
		r.MicrosPerMessage = 1e6 * c.CPUSeconds / c.WindowS / rate
	}
}

// outcome is a row in one line.
func (r *row) outcome() string {
	if len(r.Findings) == 0 {
		return fmt.Sprintf("%s, %d of %d messages", r.Verdict, r.Received, r.Expected)
	}
	return strings.TrimSpace(r.Verdict + " " + r.Findings[0])
}
