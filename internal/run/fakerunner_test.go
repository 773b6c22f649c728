package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// TestMain acts as k6 if the binary is named k6. Otherwise it runs the tests with a fake Prometheus server, which
// responds to every query with one value.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "k6" {
		os.Exit(fakeRunner(os.Args))
	}
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[%s,"1"]]}]}}`, r.FormValue("start"))
	}))
	_ = os.Setenv("PROMETHEUS_URL", prometheus.URL)
	target.ReadyTimeout = 3 * time.Second
	code := m.Run()
	prometheus.Close()
	os.Exit(code)
}

// The behavior of the fake runner, by the name of a file in its folder.
const (
	holds   = "holds"   // runs until an interrupt
	crashes = "crashes" // the last runner exits without writing its last shard
	ends    = "go"      // ends at once; if the file does not exist yet, the runner waits for it (release)
)

// The results of `k6 inspect`, by the name of a file in the folder of the fake runner: the description of the service,
// and an error about the settings.
const (
	description = "description"
	refuses     = "refuses"
)

// fakeK6 returns the path of a fake k6 with the given behavior, and the folder where each runner records its start.
func fakeK6(t *testing.T, behavior ...string) (k6, folder string) {
	t.Helper()
	folder = t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(folder, "k6"))
	}
	for _, name := range behavior {
		if err == nil && name != "" {
			err = os.WriteFile(filepath.Join(folder, name), nil, 0o600)
		}
	}
	require.NoError(t, err)
	return filepath.Join(folder, "k6"), folder
}

// fakeRunner acts as `k6 inspect` or as a runner without faults. A runner writes a shard at its start and, unless it
// crashes, a shard at its end.
func fakeRunner(args []string) int {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	folder := filepath.Dir(args[0])
	if len(args) > 1 && args[1] == "inspect" {
		ext := "{}"
		if text, err := os.ReadFile(filepath.Join(folder, description)); err == nil {
			ext = `{"soak": {"service": ` + string(text) + `}}`
		}
		if text, err := os.ReadFile(filepath.Join(folder, refuses)); err == nil {
			fmt.Fprintf(os.Stderr, `{"level":"error","msg":"Error: %s\n\tat x"}`, text)
			return 107
		}
		fmt.Printf(`{"totalDuration": "20s", "maxVUs": 4, "ext": %s}`, ext)
		return 0
	}
	has := func(action string) bool { _, err := os.Stat(filepath.Join(folder, action)); return err == nil }
	index, _ := strconv.Atoi(os.Getenv("RUNNER"))
	source, err := plan.SourceOf(os.Getenv)
	if err != nil {
		return 107
	}
	p := source.Base()
	if p.Suite != "" && source.Setting("SECONDS") != "" { // the script of the suite declares its load
		p.Connections, p.Seconds, p.NoopInterval = 4, 20, 1
	}
	s := shardOf(p, index)
	if p.Suite != "" {
		s.Suite = &shard.Suite{Name: p.Suite, Profile: source.Setting("PROFILE"), Parameters: map[string]string{"SECONDS": source.Setting("SECONDS")}}
	}
	s.Runner.State = shard.Running
	if deliver(args, s) != nil {
		return 108
	}
	_ = os.WriteFile(filepath.Join(folder, "runs-"+strconv.Itoa(index)), []byte(strconv.Itoa(os.Getpid())), 0o600)
	switch {
	case has(crashes) && index == p.Runners:
		fmt.Fprintln(os.Stderr, `level=error msg="fake crash"`)
		return 3
	case has(holds):
		<-interrupted
		s.Runner.State = shard.Interrupted
	case !has(ends):
		for !has(ends) && syscall.Getppid() != 1 {
			time.Sleep(5 * time.Millisecond)
		}
		s.Runner.State = shard.Finished
	default:
		s.Runner.State = shard.Finished
	}
	if deliver(args, s) != nil {
		return 109
	}
	return map[shard.RunState]int{shard.Finished: 0, shard.Interrupted: 105}[s.Runner.State]
}

func deliver(args []string, s *shard.Shard) error {
	for _, arg := range args {
		if location, ok := strings.CutPrefix(arg, "soak="); ok {
			return put(context.Background(), location, s)
		}
	}
	return os.ErrInvalid
}

func put(ctx context.Context, location string, s *shard.Shard) error {
	data, err := new(shard.Encoder).Encode(s)
	if err != nil {
		return err
	}
	to, err := store.Create(ctx, location)
	if err != nil {
		return err
	}
	return errors.Join(to.Put(ctx, shard.FileName(s.Runner), data), to.Close())
}

// shardOf returns the shard of one runner of the plan, with two streams.
func shardOf(p plan.Plan, index int) *shard.Shard {
	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	s := &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: h, FirstMessage: h, Lateness: h,
		Runner: shard.Runner{
			TestID: p.TestID, RunID: p.RunID, Process: "p" + strconv.Itoa(index), Index: index, Segment: runners.Segment(index, p.Runners),
			Script: "connectionTest.js", StartedUS: 1e15, EndedUS: 1e15 + 2e7,
		},
		Checks: []shard.ScriptCheck{{Name: "Get status was 200", Passes: 2}},
	}
	noops := uint64(p.MinNoopsPerStream())
	for n := 2 * (index - 1); n < 2*index; n++ {
		s.Connections = append(s.Connections, ledger.Record{
			ID: p.ClientID(n), State: ledger.Completed, Reason: "server_closed", Numbered: true, Numberings: 1, Streams: 1, Attempts: 1, StreamTime: p.Hold(), OpenTime: p.Hold(), Last: noops,
			Counts: ledger.Counts{Received: noops},
		})
	}
	return s
}
