package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func TestLostFirstChunkIsNamed(t *testing.T) {
	r := NewResponses()
	for _, first := range []uint64{0, 1, 0} {
		var response ledger.Response
		for n := first; n < 3; n++ {
			response.Block(&ledger.Chunk{Content: true, Seq: n, HasSeq: true})
		}
		response.Block(&ledger.Chunk{Done: true})
		response.Close(0, ledger.ClosedInOrder)
		r.Add(&response, "id", "", time.Unix(1, 0), ResponseLimits{})
	}
	require.EqualValues(t, 2, r.FromZero)
	require.EqualValues(t, 1, r.FromOne)
	require.Len(t, r.Findings, 1)
	require.EqualValues(t, 0, *r.Findings[0].FirstMissing)
	require.EqualValues(t, 1, r.Findings[0].Counts.Missed)

	s := newEmptyShard(planFor(1, 2), 1)
	s.Responses = r
	responses := Merge(planFor(1, 2), []*Shard{s}).Runners[0].Responses
	require.Equal(t, r.Chunks, responses.Chunks)
	require.EqualValues(t, 1, responses.FromOne)
}

// In a run of a day, each of the 17,280 buckets has two histograms.
func TestResponsesOfADayCanBeRead(t *testing.T) {
	t.Parallel()
	s := newEmptyShard(planFor(1, 2), 1)
	s.Responses = NewResponses()
	h := NewHistogram()
	for d := time.Millisecond; d < time.Minute; d += d / 20 {
		h.Record(d)
	}
	packed := h.PackCoarse()
	for i := range int64(17_280) {
		s.Responses.Series = append(s.Responses.Series, ResponseBucket{Unix: s.Runner.Started().Unix() + 5*i, First: packed, Gap: packed})
	}
	s.Runner.EndedUS = s.Runner.StartedUS + (24 * time.Hour).Microseconds()
	read, err := reread(t, s)
	require.NoError(t, err)
	require.Equal(t, s.Responses.Series, read.Responses.Series)
}

func TestResponsesOutsideOfTheRunAreRejected(t *testing.T) {
	t.Parallel()
	inRun := newEmptyShard(planFor(1, 2), 1).Runner.Started().Add(30 * time.Second)
	for name, change := range map[string]func(r *Responses){
		"":                            func(*Responses) {},
		"a bucket in 1970":            func(r *Responses) { r.Series[0].Unix = 5 },
		"a bucket in the far future":  func(r *Responses) { r.Series[0].Unix = math.MaxInt64 },
		"a bucket twice":              func(r *Responses) { r.Series = append(r.Series, r.Series[0]) },
		"buckets in descending order": func(r *Responses) { r.Series = append(r.Series, ResponseBucket{Unix: r.Series[0].Unix - 5}) },
		"a finding in 1970":           func(r *Responses) { r.Findings[0].AtUS = 5 },
		"a finding in the far future": func(r *Responses) { r.Findings[0].AtUS = math.MaxInt64 },
		"an abandoned response":       func(r *Responses) { r.Abandoned[0].AtUS = 5 },
		"a log of another run": func(r *Responses) {
			r.Logs[0] = ResponseLog{}
			r.Logs[0].add(ledger.ResponseTruncated, inRun.Add(time.Hour), time.Second)
		},
	} {
		s := newEmptyShard(planFor(1, 2), 1)
		s.Responses = NewResponses()
		for _, state := range []ledger.ResponseState{ledger.ResponseTruncated, ledger.ResponseAbandoned} {
			s.Responses.Add(&ledger.Response{State: state}, "id", "", inRun, ResponseLimits{})
		}
		s.Responses.Series = []ResponseBucket{{Unix: inRun.Unix()}}
		change(s.Responses)
		switch _, err := reread(t, s); name {
		case "":
			require.NoError(t, err)
		case "a bucket twice", "buckets in descending order":
			require.ErrorContains(t, err, "buckets of responses must be in ascending order", name)
		default:
			require.ErrorContains(t, err, "outside of the run", name)
		}
	}
}
