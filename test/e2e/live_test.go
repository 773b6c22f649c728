//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/promserver"
)

// A liveEvent is an event of the live page.
type liveEvent struct{ id, name, data string }

// liveEvents calls handle with the events after an id, until handle returns false or the stream ends.
func liveEvents(t *testing.T, page, id string, handle func(liveEvent) (more bool)) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"events?viewer=test", nil)
	require.NoError(t, err)
	r.Header.Set("Last-Event-ID", id)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var e eventstream.Event
	for p := eventstream.New(response.Body); p.Next(&e) == nil; {
		if !handle(liveEvent{string(e.ID), string(e.Name), string(e.Data)}) {
			return
		}
	}
}

// The live page receives the state of a run from the first second to the verdict, even after a network outage. At the
// end, the page is the report.
func TestLivePage(t *testing.T) {
	t.Parallel()
	r := prepare(t, t.TempDir(), nil, nil, "--connections", "20", "--seconds", "15", "--noop-interval", "1", "--live", "--at", "6s deploy: true")
	r.cmd.Stdout = nil
	stdout, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.start()
	progress := bufio.NewReader(stdout)
	var page string
	for page == "" {
		line, err := progress.ReadString('\n')
		require.NoError(t, err, line)
		if found := regexp.MustCompile(`^live +(http://127\.0\.0\.1:\d+/)$`).FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			page = found[1]
		}
	}

	var events []liveEvent
	read := func(id string, stop func(liveEvent) bool) {
		liveEvents(t, page, id, func(e liveEvent) bool {
			events = append(events, e)
			return !stop(e)
		})
	}
	outage := regexp.MustCompile(`>[4-7] s of 10 s`) // a busy machine may skip a second
	read("", func(e liveEvent) bool { return outage.MatchString(e.data) })
	time.Sleep(3 * time.Second) // the duration of the network outage
	read(events[len(events)-1].id, func(e liveEvent) bool { return e.name == "report" })

	require.Equal(t, "parts", events[0].name)
	require.Regexp(t, "STARTING|RUNNING", events[0].data)
	last := events[len(events)-1]
	require.Equal(t, "report", last.name)
	var previous int
	for _, e := range events[:len(events)-1] {
		var epoch string
		var number int
		_, err := fmt.Sscanf(strings.Replace(e.id, "-", " ", 1), "%s %d", &epoch, &number)
		require.NoError(t, err)
		require.Greater(t, number, previous, "the numbers of events must increase, even after the outage")
		previous = number
	}
	all := fmt.Sprint(events)
	clocks := map[string]bool{} // two ticks may have the same second
	for _, clock := range regexp.MustCompile(`>\d+ s of 10 s`).FindAllString(all, -1) {
		clocks[clock] = true
	}
	require.Greater(t, len(clocks), 5, clocks) // of the states during the outage, only the latest one of each section is sent
	for _, text := range []string{"nothing lost yet", "action deploy starts", `"id":"connections"`, `"id":"lateness"`, `"id":"target-memory"`} {
		require.True(t, strings.Contains(all, text), "the page must receive %s", text)
	}

	response, err := http.Get(page)
	require.NoError(t, err)
	defer response.Body.Close()
	pageText, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	output, err := io.ReadAll(progress)
	require.NoError(t, err)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, string(output))
	report, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Equal(t, string(report), string(pageText))
}

func TestResourcesFromPrometheus(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1")
	address := promserver.Start(t, strings.TrimPrefix(url, "http://"))
	r := begin(t, []string{"PROMETHEUS_URL=http://me:secret@" + address}, "--backend-url", url, "--connections", "20", "--seconds", "10", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.NotZero(t, v.Resources.BackendRSSMax)
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Prometheus at http://me:xxxxx@"+address+" (it has no metrics of the host, so soak sampled the host)")
	require.NotContains(t, string(page), "secret")
}

func TestUnreachablePrometheusWarns(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"PROMETHEUS_URL=http://127.0.0.1:1", "K6_PROMETHEUS_RW_SERVER_URL=http://127.0.0.1:1/api/v1/write"}, "--connections", "20", "--seconds", "10", "--noop-interval", "1", "--runners", "2")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	warnings := strings.Join(v.Warnings, "\n")
	require.Contains(t, warnings, "soak's own samples are used")
	require.Regexp(t, `\d+ remote writes of 2 runners to Prometheus failed \(the last: .*connection refused`, warnings)
	require.NotZero(t, v.Resources.BackendRSSMax)
}
