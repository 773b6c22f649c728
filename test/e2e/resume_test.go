//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/services"
)

// In these runs each stream receives a message every 0.5 s, and cuts occur from 3.5 s to 6 s.
const (
	resumeStreams = 24
	resumeCuts    = 10
)

// cutStreams starts `soak run resume`.
func cutStreams(t *testing.T, env []string, args ...string) *soakRun {
	t.Helper()
	out := t.TempDir()
	r := prepare(t, out, nil, env, append([]string{
		"--prefix", "cut-", "--connections", fmt.Sprint(resumeStreams), "--seconds", "17", "--runners", "2",
		"--cuts-per-second", "4", "--pause", "0.5", "--seed", "7",
	}, args...)...)
	r.cmd.Args = append([]string{r.cmd.Args[0], "run", "resume"}, r.cmd.Args[2:]...)
	r.start()
	return r
}

// publishFlags returns the flags of a run that publishes.
func publishFlags(service, url string) []string {
	return []string{"--service", service, "--backend-url", url, "--topics", "8", "--publish-rate", "16"}
}

// describeHub writes the description of a fakeservice.Hub with extra fields, and returns its path.
func describeHub(t *testing.T, extra string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default {
		name: 'mine',
		connect: { url: '{base}/sub/{topic}' },
		message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
		publish: { url: '{base}/pub/{topic}', body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}' },
		`+extra+`
	};`), 0o600))
	return path
}

// cutsByKind returns the cuts of a verdict by kind.
func cutsByKind(t *testing.T, v *verdict.Verdict) map[string]verdict.Cuts {
	t.Helper()
	all := map[string]verdict.Cuts{}
	for _, c := range v.Cuts {
		all[c.Kind] = c
	}
	require.Len(t, all, len(plan.CutKinds()))
	return all
}

// sum adds up the cuts of all kinds.
func sum(v *verdict.Verdict) (all verdict.Cuts) {
	for _, c := range v.Cuts {
		all.Count, all.Ended, all.Resumed, all.WithoutLoss = all.Count+c.Count, all.Ended+c.Ended, all.Resumed+c.Resumed, all.WithoutLoss+c.WithoutLoss
		all.Lost, all.Duplicated, all.Announced = all.Lost+c.Lost, all.Duplicated+c.Duplicated, all.Announced+c.Announced
	}
	return all
}

func TestResumePasses(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{ID: fakeservice.DecimalID, History: true, HeartbeatInterval: time.Second, Heartbeat: ":\n\n"}
	server := h.Start(t)
	r := cutStreams(t, nil, publishFlags(describeHub(t, ""), server.URL)...)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	all := sum(v)
	require.Equal(t, resumeCuts, all.Count)
	require.Equal(t, resumeCuts, all.WithoutLoss)
	require.Equal(t, all.Ended, all.Resumed)
	for kind, c := range cutsByKind(t, v) {
		require.Equal(t, c.Planned, c.Count, kind)
		require.Positive(t, c.Count, kind)
		if kind == plan.CutPause { // the stream continues after the pause
			require.Zero(t, c.Ended)
			require.GreaterOrEqual(t, c.OutageMS.P50, 500.)
		} else {
			require.Equal(t, c.Count, c.Ended, kind)
		}
	}
	require.Equal(t, all.Ended, v.Connections.Reconnected)
	opened, _ := h.StreamCounts()
	require.Equal(t, resumeStreams+all.Ended, opened-1, "there must be one stream per client, one per reconnect, and one for the trial")
	require.Zero(t, v.Messages.NotExpected)
	require.Zero(t, v.Evidence.Undetectable)
	require.NotEmpty(t, section(v, "Resumes by kind of disconnect").Rows, r.out.String())
	cuts, err := os.ReadFile(r.dir.Path(results.CutsFile))
	require.NoError(t, err)
	rows := strings.Split(strings.TrimSpace(string(cuts)), "\n")
	require.Len(t, rows, 1+resumeCuts)
	require.Regexp(t, `^cut-[0-9]+,[12],(fin|rst|half|pause),[0-9.]+,[0-9]+,(true|false),[0-9.]+,(true|false),[0-9.]+,[0-9]+,[0-9.]+,0,0,0,0$`, rows[1])
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Resumes by kind of disconnect")
}

// Each fault of a resume is detected by the numbers of messages, and attributed to its cut.
func TestWrongResumeIsDetected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub    *fakeservice.Hub
		extra  string
		flags  []string
		want   verdict.Outcome
		reason string
		check  func(t *testing.T, all verdict.Cuts)
	}{
		"no history": {
			hub: &fakeservice.Hub{}, want: verdict.Fail, reason: "lost, 0 received twice",
			check: func(t *testing.T, all verdict.Cuts) { require.Positive(t, all.Lost); require.Zero(t, all.Announced) },
		},
		"no history, announced by an event, and allowed": {
			hub: &fakeservice.Hub{GapEvent: "event: reset\ndata: x\n\n"}, extra: `resume: { by: 'header', gap: { event: 'reset' } },`,
			flags: []string{"--allow-announced-gaps"},
			want:  verdict.Pass, reason: "messages are missing in announced gaps, which ALLOW_ANNOUNCED_GAPS=1 allows",
			check: func(t *testing.T, all verdict.Cuts) {
				require.EqualValues(t, all.Ended, all.Announced)
				require.Positive(t, all.Lost)
			},
		},
		"the last message is repeated": {
			hub:  &fakeservice.Hub{History: true, Replay: func(_ *http.Request, all []string, from int) []string { return all[from-1:] }},
			want: verdict.Fail, reason: "0 messages were lost, 1 received twice, and the stream continued with ",
			check: func(t *testing.T, all verdict.Cuts) { require.EqualValues(t, all.Ended, all.Duplicated) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.ID = fakeservice.DecimalID
			server := c.hub.Start(t)
			r := cutStreams(t, nil, append(publishFlags(describeHub(t, c.extra), server.URL), c.flags...)...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
			all := sum(v)
			require.Equal(t, resumeCuts, all.Count, "each planned cut must be made")
			c.check(t, all)
			require.Equal(t, all.Ended, v.Connections.Reconnected)
		})
	}
}

// The backend generates the noops of the outage again, even behind nginx.
func TestNoopsResume(t *testing.T) {
	t.Parallel()
	r := cutStreams(t, nil, "--noop-interval", "0.5")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	all := sum(v)
	require.Equal(t, []int{resumeCuts, resumeCuts}, []int{all.Count, all.WithoutLoss})
	require.Equal(t, all.Ended, all.Resumed)
	require.Positive(t, all.Ended)
	require.True(t, v.Server.Agrees)
}

// A service that does not resume passes. Without a buffer, nchan loses messages. A Mercure hub without a history also
// loses messages, and announces the gap.
func TestResumeOfThirdPartyServices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options services.Options
		want    verdict.Outcome
		reason  string
	}{
		{"sse-starlette", services.Options{}, verdict.Pass, "the service does not resume"},
		{"nchan", services.Options{History: -1}, verdict.Fail, "lost, 0 received twice"},
		{"mercure", services.Options{History: -1}, verdict.Fail, "and the service announced a gap by the header Last-Event-ID with an id other than the requested one"},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.want), func(t *testing.T) {
			t.Parallel()
			s := startService(t, c.name, c.options)
			r := cutStreams(t, s.Env, publishFlags(s.Service, s.URL)...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
			all := sum(v)
			require.Equal(t, resumeCuts, all.Count)
			require.Equal(t, all.Ended, all.Resumed)
			if c.name == "mercure" {
				require.EqualValues(t, all.Ended, all.Announced)
			} else {
				require.Zero(t, all.Announced)
			}
		})
	}
}
