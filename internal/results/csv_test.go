package results

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Each table of a suite is a file for a spreadsheet. connections.csv is written only if there were connections,
// because a header without rows would suggest that streams were lost.
func TestSuiteFiles(t *testing.T) {
	t.Parallel()
	for _, kind := range append(suite.All(), suite.Default()) {
		for _, hasStreams := range []bool{false, true} {
			if hasStreams && !kind.Target.Streams {
				continue
			}
			p := plan.Default()
			p.Suite, p.TestID, p.Connections, p.Runners, p.BackendURL = kind.InPlan(), "t", 1, 1, "http://h"
			m := &shard.Merged{
				Plan: p, Connect: shard.NewHistogram(), FirstNoop: shard.NewHistogram(), Lateness: shard.NewHistogram(),
				Suite:   &shard.Suite{Name: kind.Name, Profile: "full", Stages: []shard.Stage{{Name: "a", Title: "a", Kind: "load", Seconds: 10, Rate: 10, Requests: 100}}},
				Runners: []shard.Runner{{Index: 1, Segment: "0:1", State: shard.Finished, EndedUS: time.Hour.Microseconds()}},
			}
			for _, endpoint := range []string{"one", "two"} {
				trend := shard.NewHistogram()
				trend.Record(time.Millisecond)
				m.Metrics = append(m.Metrics, shard.Metric{
					Name: shard.RequestDuration, Type: "trend", Trend: trend, Count: 1, Sum: 1, Min: 1, Max: 1, LastUS: time.Second.Microseconds(),
					Tags: map[string]string{shard.TagStage: "a", shard.TagCode: shard.CodeOK, shard.TagEndpoint: endpoint},
				})
			}
			if hasStreams {
				m.Connections.Add(&shard.Connection{Record: ledger.Record{ID: "soak-0", State: ledger.Completed, Streams: 1, Attempts: 1}})
			}
			v, err := suite.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}})
			require.NoError(t, err, kind.Name)
			d := Dir(filepath.Join(t.TempDir(), kind.Name))
			require.NoError(t, os.MkdirAll(d.Path(ShardsDir), 0o755))
			require.NoError(t, d.WriteJSON(PlanFile, p))
			require.NoError(t, d.Report(v, m, ""), kind.Name)
			requireSchema(t, d.Path(VerdictFile))

			records := 0
			for range v.Records() {
				records++
			}
			actsOnAll := kind.Name == "slow" || kind.Name == "vanish" // without EVERY these suites act on all of their streams
			require.Equal(t, hasStreams && !actsOnAll, records > 0, kind.Name)
			if records > 0 {
				require.Len(t, rows(t, d.Path(ConnectionsFile)), 1+records, kind.Name)
			} else {
				require.NoFileExists(t, d.Path(ConnectionsFile), kind.Name)
			}
			for i := range v.Tables {
				require.Len(t, rows(t, d.Path(report.TableFile(&v.Tables[i]))), 1+len(v.Tables[i].Rows), "%s of %s", v.Tables[i].Title, kind.Name)
			}
		}
	}
}

// rows returns the rows of a CSV file, including its header.
func rows(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return records
}
