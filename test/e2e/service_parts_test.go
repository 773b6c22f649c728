//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// lossOptions returns options of a proxy that loses one message of a topic.
func lossOptions(topic string, number int64) faulty.Options {
	return faulty.Options{Faults: []faulty.Fault{{Kind: faulty.Lose, Topic: topic, Number: number}}}
}

// Runner 1 publishes for the streams of both runners, which are on two machines.
func TestRunnersShareAPublisher(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	shared := t.TempDir()
	start := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
	proxy := startProxy(t, r.URL, lossOptions("parts-topic-10", 4))
	var parts []*serviceSoak
	for _, runner := range []string{"1/2", "2/2"} {
		parts = append(parts, soakThrough(t, r, proxy, "parts-", "--runner", runner, "--shards", shared, "--start-at", start))
	}
	for _, p := range parts {
		require.Equal(t, 0, p.end(), p.out.String())
	}
	dir := results.Dir(filepath.Join(shared, "t"))
	v, text := mergeFolder(t, string(dir))
	require.Equal(t, verdict.Fail, v.Verdict, text)
	require.EqualValues(t, 1, v.Messages.Missed, text)
	require.EqualValues(t, serviceStreams*perTopic-1, v.Messages.Received)
	require.EqualValues(t, publishedTotal, v.Messages.Published.Confirmed)
	require.Equal(t, serviceStreams, v.Connections.Completed)
	require.Len(t, v.Runners, 2)
	require.Zero(t, v.Evidence.Undetectable)
	require.Len(t, findings(v, ledger.KindLost), 1)
	require.Regexp(t, "^parts-10 missed message 4 of topic parts-topic-10, published at ", findings(v, ledger.KindLost)[0])

	publisherShards, err := filepath.Glob(dir.Path("runner-1-*.json.gz"))
	require.NoError(t, err)
	require.Len(t, publisherShards, 1)
	require.NoError(t, os.Remove(publisherShards[0]))
	v, text = mergeFolder(t, string(dir))
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), "runner 1 of 2 left no shard")
}

// k6 without soak also publishes, and its shards can be merged into a verdict.
func TestPlainK6SoaksAService(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	shards := t.TempDir()
	proxy := startProxy(t, r.URL, lossOptions("loss-topic-10", 4))
	laptops := map[string]*exec.Cmd{}
	for _, prefix := range []string{"clean-", "loss-"} {
		laptops[prefix] = startLaptop(t, proxy.URL, prefix, serviceStreams, shards, "SERVICE=nchan", "SECONDS=14",
			"TOPICS="+fmt.Sprint(serviceTopics), "PUBLISH_RATE="+fmt.Sprint(serviceTopics))
	}
	for prefix, exit := range map[string]int{"clean-": 0, "loss-": 99} { // 99: a check failed
		_ = laptops[prefix].Wait()
		require.Equal(t, exit, laptops[prefix].ProcessState.ExitCode(), fmt.Sprint(laptops[prefix].Stdout))
	}
	v, text := mergeFolder(t, shards)
	require.Equal(t, verdict.Fail, v.Verdict, text)
	require.EqualValues(t, 1, v.Messages.Missed, text)
	require.EqualValues(t, 2*serviceStreams*perTopic-1, v.Messages.Received)
	require.EqualValues(t, 2*publishedTotal, v.Messages.Published.Confirmed)
	require.Zero(t, v.Evidence.Undetectable)
	require.Contains(t, reasons(v), "loss-10 missed message 4 of topic loss-topic-10, published at ")
}

// An exception in token() aborts k6. Otherwise k6 would only log the exception, and pass without any check.
func TestUnavailableTokenFailsK6(t *testing.T) {
	t.Parallel()
	for token, message := range map[string]string{
		"() => { throw new Error('no login') }": "token() of the service mine: Error: no login",
		"async () => 'x'":                       "token() of the service mine: the function must return a string, got a promise; async functions are not supported",
	} {
		file := filepath.Join(t.TempDir(), "mine.js")
		require.NoError(t, os.WriteFile(file, []byte("export default { name: 'mine', token: "+token+", connect: { url: '{base}?t={token}' }, message: 'unchecked' };"), 0o600))
		cmd := exec.Command(filepath.Join(root, "bin", "k6"), "run", filepath.Join(root, "load-tests", "sse", "connectionTest.js"),
			"--env", "SERVICE="+file, "--env", "CONNECTIONS=2", "--env", "SECONDS=40", "--env", "BACKEND_URL=http://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		require.Error(t, err, string(out))
		require.Equal(t, 108, cmd.ProcessState.ExitCode(), string(out))
		require.Contains(t, string(out), "test aborted: "+message)
	}
}
