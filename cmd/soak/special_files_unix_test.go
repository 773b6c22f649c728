//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// writeJudgedRun writes the folder of a run with one client and one shard, and its verdict.
func writeJudgedRun(t *testing.T, out, testid string, startedUS int64) {
	t.Helper()
	d, err := results.Create(out, testid)
	require.NoError(t, err)
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.Seconds, p.NoopInterval, p.Runners, p.BackendURL = testid, "d-", 1, 20, 1, 1, "http://h"
	require.NoError(t, d.WriteJSON(results.PlanFile, p))
	require.NoError(t, d.WriteJSON(results.RunFile, results.RunRecord{Provenance: report.Provenance{OneClock: true}}))
	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	s := &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: h, FirstMessage: h, Lateness: h,
		Runner: shard.Runner{TestID: testid, Index: 1, Segment: "0:1", State: shard.Finished, StartedUS: startedUS, EndedUS: startedUS + 2e7},
		Connections: []ledger.Record{{
			ID: p.ClientID(0), State: ledger.Completed, Numbered: true, Streams: 1, Attempts: 1, StreamTime: 15 * time.Second, OpenTime: 15 * time.Second, Last: 15,
			Counts: ledger.Counts{Received: 15},
		}},
	}
	require.NoError(t, shard.Write(d.Path(filepath.Join(results.ShardsDir, shard.FileName(s.Runner))), s))
	_, _, err = soak(t, "merge", string(d))
	require.NoError(t, err)
	require.FileExists(t, d.Path(results.VerdictFile))
}

// A pipe in place of a file blocks a reader. The commands read with safefile, which also rejects links, folders and
// large files.
func TestPipesDoNotBlockCommands(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	for i, testid := range []string{"first", "old", "second"} {
		writeJudgedRun(t, runs, testid, int64(i+10)*1e14)
	}
	shardFile := filepath.Join(results.ShardsDir, shard.FileName(shard.Runner{Index: 1}))
	for _, c := range []struct {
		command string
		file    string // in the folder of all runs
		silent  bool   // the command does not report the file, because it does not need the file or replaces it
	}{
		{command: "report OUT/second", file: "second/" + results.PlanFile},
		{command: "report OUT/second", file: "second/" + results.RunFile},
		{command: "report OUT/second", file: "second/" + shardFile},
		{command: "report OUT/second", file: "second/" + results.LedgerFile},
		{command: "report OUT/second", file: "second/" + results.ResourcesFile, silent: true}, // only the report has a warning
		{command: "report OUT/second", file: "second/" + results.VerdictFile, silent: true},
		{command: "report OUT/second", file: "second/" + results.ManifestFile},
		{command: "report OUT/second", file: "first/" + results.VerdictFile, silent: true},
		{command: "report OUT/second", file: "first/" + results.RunFile, silent: true},
		{command: "report OUT/second --baseline OUT/first", file: "first/" + results.VerdictFile},
		{command: "merge OUT/second", file: "second/" + shardFile},
		{command: "merge OUT/second", file: "first/" + results.VerdictFile, silent: true},
		{command: "merge OUT/second", file: results.HistoryFile, silent: true},
		{command: "history --out OUT", file: "second/" + results.VerdictFile},
		{command: "history --out OUT", file: "second/" + results.RunFile, silent: true},
		{command: "history --out OUT", file: results.HistoryFile},
		{command: "history --prune --keep 1 --out OUT", file: "first/" + results.VerdictFile, silent: true},
		{command: "compare OUT/first OUT/old OUT/second", file: "first/" + results.VerdictFile},
		{command: "archive OUT/second", file: "second/" + results.VerdictFile},
	} {
		t.Run(c.command+" "+c.file, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			require.NoError(t, os.CopyFS(out, os.DirFS(runs)))
			path := filepath.Join(out, c.file)
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, syscall.Mkfifo(path, 0o600))
			output, _, err := soak(t, strings.Fields(strings.ReplaceAll(c.command, "OUT", out))...)
			output += fmt.Sprint(err)
			if text, err := safefile.Read(filepath.Join(out, "second", results.VerdictFile), safefile.Document); err == nil {
				output += string(text)
			}
			if !c.silent {
				require.Contains(t, output, safefile.ErrNotRegular.Error())
				require.Contains(t, output, filepath.Base(path))
			}
		})
	}
}
