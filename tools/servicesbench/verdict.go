package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A verdict is what is read of a run's verdict.json.
type verdict struct {
	Verdict  string   `json:"verdict"`
	Reasons  []string `json:"reasons"`
	Criteria []struct {
		Name      string `json:"name"`
		Limit     string `json:"limit"`
		Actual    string `json:"actual"`
		Pass      bool   `json:"pass"`
		NotJudged bool   `json:"not_judged"`
	} `json:"criteria"`
	Tables      []table    `json:"tables"`
	Started     float64    `json:"started_unix_s"`
	Ended       float64    `json:"ended_unix_s"`
	LatencyMS   *quantiles `json:"latency_ms"`
	ConnectMS   *quantiles `json:"connect_ms"`
	Connections struct {
		Opened      int `json:"opened"`
		Completed   int `json:"completed"`
		Refused     int `json:"refused"`
		Dropped     int `json:"dropped"`
		Reconnected int `json:"reconnected"`
	} `json:"connections"`
	Messages struct {
		Received   uint64     `json:"received"`
		Expected   uint64     `json:"expected"`
		Missed     uint64     `json:"missed"`
		Duplicated uint64     `json:"duplicated"`
		Repeated   uint64     `json:"repeated"` // where the description allows it
		Reordered  uint64     `json:"reordered"`
		Corrupted  uint64     `json:"corrupted"`
		Late       uint64     `json:"late"`
		Last       *quantiles `json:"last_subscriber_ms"`
		Published  *struct {
			Rate      float64   `json:"rate"`
			Planned   uint64    `json:"planned"`
			Confirmed uint64    `json:"confirmed"`
			Late      uint64    `json:"late"`
			MaxLagMS  float64   `json:"max_lag_ms"`
			AnswerMS  quantiles `json:"answer_ms"`
		} `json:"published"`
	} `json:"messages"`
	Generator struct {
		CPUSeconds float64 `json:"cpu_seconds"`
		StallMaxMS float64 `json:"stall_max_ms"`
		Saturated  bool    `json:"starved"`
	} `json:"generator"`
}

// A table is one that a suite adds to its verdict.
type table struct {
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// quantiles are in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func readVerdict(run string) (v verdict, err error) {
	text, err := os.ReadFile(filepath.Join(run, "verdict.json"))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return v, fmt.Errorf("read the verdict of the run: %w", err)
	}
	return v, nil
}

// findings are the criteria that were not met, after the first of the reasons: there may be thousands of those that
// say the same of other streams.
func (v *verdict) findings() (out []string) {
	if v.Verdict == "pass" {
		return nil
	}
	if len(v.Reasons) > 0 {
		out = append(out, v.Reasons[0])
	}
	for _, c := range v.Criteria {
		if !c.Pass && !c.NotJudged {
			out = append(out, fmt.Sprintf("%s: %s (limit: %s)", c.Name, c.Actual, c.Limit))
		}
	}
	return out
}

// window is the time in which all streams were open and brought messages: connecting takes a service seconds and costs
// more than holding, and nothing is published in the last two seconds.
func (v *verdict) window() (from, to time.Time) {
	begin, end := at(v.Started), at(v.Ended)
	return begin.Add(min(30*time.Second, end.Sub(begin)/4)), end.Add(-3 * time.Second)
}

// perSecond is how many messages the streams received while there were any.
func (v *verdict) perSecond() float64 {
	span := v.Ended - v.Started
	if p := v.Messages.Published; p != nil && p.Rate > 0 {
		span = float64(p.Planned) / p.Rate
	}
	if span <= 0 {
		return 0
	}
	return float64(v.Messages.Received) / span
}

func at(unix float64) time.Time { return time.UnixMicro(int64(unix * 1e6)) }
