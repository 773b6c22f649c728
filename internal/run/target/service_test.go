package target

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

// The caller tells a stopped run from a target that does not start.
func TestStoppedStartIsCanceled(t *testing.T) {
	t.Parallel()
	s := newService("the backend", func(bool) (*process.Process, error) {
		return process.Start(process.Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", "exec sleep 60"}, Log: filepath.Join(t.TempDir(), "log"), Orphan: syscall.SIGKILL})
	})
	require.NoError(t, s.start(false))
	defer s.stop(context.Background(), time.Second)
	ctx, stop := context.WithCancel(t.Context())
	service := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		stop()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	require.ErrorIs(t, new(Local).await(ctx, s, http.DefaultClient, service.URL), context.Canceled)
}

func TestCrashNamesTheOutcomeOfTheRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  int // crashes before the one of the test
		restart error
		want    string
	}{
		{name: "restarted", want: " and was restarted"},
		{name: "failed", restart: errors.New("no such file"), want: " and could not be restarted: no such file"},
		{name: "too many crashes", before: maxCrashes, want: " and was not restarted after 11 crashes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			s := newService("the backend", func(restart bool) (*process.Process, error) {
				script := "exit 3"
				if restart {
					if script = "exec sleep 60"; c.restart != nil {
						return nil, c.restart
					}
				}
				return process.Start(process.Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Log: log, Orphan: syscall.SIGKILL})
			})
			s.crashes = make([]Crash, c.before)
			require.NoError(t, s.start(false))
			crash := func() string {
				if all := s.crashList(); len(all) > c.before {
					return all[c.before].Text
				}
				return ""
			}
			const died = " (exit status 3)"
			require.Eventually(t, func() bool { return strings.HasSuffix(crash(), died+c.want) }, time.Minute, time.Millisecond)
			s.stop(context.Background(), time.Second)
			require.Len(t, s.crashList(), c.before+1)
		})
	}
}
