package shard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
)

func newSmallShard() *Shard {
	parts, _ := randomRun(rand.New(rand.NewPCG(3, 4)), planFor(1, 2))
	parts[0].Latency = &Latency{MinUS: 7, Histogram: NewHistogram()}
	parts[0].Latency.Histogram.Record(time.Millisecond)
	return parts[0]
}

func pack(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func encode(t testing.TB, s *Shard) []byte {
	t.Helper()
	b, err := new(Encoder).Encode(s)
	require.NoError(t, err)
	return b
}

// reread returns the shard that the file of s contains, or the error of its reader.
func reread(t testing.TB, s *Shard) (*Shard, error) {
	t.Helper()
	return Read(bytes.NewReader(encode(t, s)))
}

func jsonOf(t testing.TB, s *Shard) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, writeJSON(&b, s))
	return b.String()
}

// An encoder keeps its compressor, but not its last output, which grows with the run.
func TestEncoderDoesNotKeepItsOutput(t *testing.T) {
	t.Parallel()
	var e Encoder
	for range 2 {
		b, err := e.Encode(newSmallShard())
		require.NoError(t, err)
		file := weak.Make(&b[0])
		runtime.GC()
		require.Nil(t, file.Value())
	}
	runtime.KeepAlive(&e)
}

func TestLedgersAreWrittenAsRecords(t *testing.T) {
	t.Parallel()
	withLedgers := newShardWithStreams(3)
	s := *withLedgers
	s.Ledgers = nil
	for _, l := range withLedgers.Ledgers {
		s.Connections = append(s.Connections, l.Record())
	}
	require.Equal(t, encode(t, &s), encode(t, withLedgers))
}

// If a description names ids that are not a sequence, such as times, the gaps between them count as lost messages.
func TestClientWithHugeGapsCanBeRead(t *testing.T) {
	t.Parallel()
	l := ledger.New("d-0", &ledger.Config{Counting: ledger.Numbered, ClientEnds: true, LatenessLimit: time.Second})
	l.Connecting(1)
	l.Opened(2)
	for n := range uint64(100) {
		l.Delivered(&ledger.Delivery{At: ledger.Instant(3 + n), Number: 7e15 + n<<31})
	}
	s := newEmptyShard(planFor(1, 1), 1)
	s.Service.CountBasis, s.Ledgers = CountByNumber, []*ledger.Ledger{l}
	_, err := reread(t, s)
	require.NoError(t, err)
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), FileName(Runner{Index: 1}))
	require.Equal(t, "runner-1.json.gz", filepath.Base(path))
	s := newSmallShard()
	from, to := s.Runner.StartedUS, s.Runner.EndedUS
	s.Runner.ReplacedStartUS = from - 3600e6
	s.Control, s.Codings, s.HTTP2 = &Control{URL: "http://a", Streams: 20, LateMS: 1000}, []Coding{{"gzip", 3, 40, 2, 10}}, &HTTP2{Streams: 300, Connections: 3}
	s.Machine = &machine.Record{Boot: "b", FromUS: from, ToUS: to, Counters: []machine.Series{{Name: "steal", Increase: 1.5, Stretches: []machine.Stretch{{FromUS: from, ToUS: to, Increase: 1.5}}}}}
	require.NoError(t, Write(path, s))
	s.Runner.Checkpoints++
	require.NoError(t, Write(path, s), "a second write must replace the file")
	got, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, encode(t, s), encode(t, got))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "another user must be able to read the file")
}

func TestWriteErrorNamesThePath(t *testing.T) {
	t.Parallel()
	occupied, readOnly := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(occupied, FileName(Runner{Index: 1}), "full"), 0o755))
	require.NoError(t, os.Chmod(readOnly, 0o555))
	if os.Geteuid() == 0 {
		readOnly = "/proc/self" // where root may not write either
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), occupied, readOnly} {
		path := filepath.Join(dir, FileName(Runner{Index: 1}))
		require.ErrorContains(t, Write(path, newSmallShard()), path)
	}
	path, bad := filepath.Join(t.TempDir(), FileName(Runner{Index: 1})), newSmallShard()
	bad.Runner.CPUSeconds = math.NaN() // JSON has no NaN
	require.ErrorContains(t, Write(path, bad), "write "+path)
	require.NoFileExists(t, path)
	entries, err := os.ReadDir(occupied)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file must remain")
}

func TestReadRejectsATruncatedFile(t *testing.T) {
	t.Parallel()
	b := encode(t, newSmallShard())
	for n := range len(b) {
		_, err := Read(bytes.NewReader(b[:n]))
		require.Error(t, err, "Read must reject the first %d of %d bytes", n, len(b))
	}
	_, err := Read(bytes.NewReader(b))
	require.NoError(t, err)
}

func TestReadRejectsAFlippedBit(t *testing.T) {
	t.Parallel()
	b := encode(t, newSmallShard())
	want := bytes.Clone(b)
	for n := 10; n < len(b); n++ { // after gzip's header, whose time and system have no effect
		b[n] ^= 16
		if got, err := Read(bytes.NewReader(b)); err == nil { // a bit without meaning
			require.Equal(t, want, encode(t, got), "an accepted change of byte %d of %d must have no effect", n, len(b))
		}
		b[n] ^= 16
	}
}

func TestReadRejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(newSmallShard())
	require.NoError(t, err)
	edit := func(old, new string) []byte {
		require.Contains(t, string(text), old)
		return pack(t, []byte(strings.Replace(string(text), old, new, 1)))
	}
	valid := pack(t, text)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":                     {nil, "not a complete gzip file"},
		"not gzip":                    {text, "not a complete gzip file"},
		"not JSON":                    {pack(t, []byte("hello")), "not a complete shard"},
		"null":                        {pack(t, []byte("null")), "schema must be 3, got 0"},
		"a list":                      {pack(t, []byte("[]")), "not a complete shard"},
		"a different schema":          {edit(`"schema":3`, `"schema":4,"plan":7`), "schema must be 3, got 4; merge the shard with the version of soak that wrote it"},
		"trailing byte":               {append(bytes.Clone(valid), "x"...), "not a complete shard"},
		"a second shard":              {append(bytes.Clone(valid), valid...), "trailing data"},
		"no histogram":                {edit(`"connect":{`, `"connect_":{`), "connect, first_noop or lateness is missing"},
		"no lateness":                 {edit(`"lateness":{`, `"lateness_":{`), "connect, first_noop or lateness is missing"},
		"no histogram in the latency": {edit(`"min_us":7,"histogram":{`, `"min_us":7,"histogram_":{`), "latency.histogram is missing"},
		"a bad bucket":                {edit(`"counts":"`, `"counts":"AAAA`), "unreadable buckets"},
		"a negative count":            {edit(`"received":0`, `"received":-1`), "not a complete shard"},
		"half of a message":           {edit(`"series":`, `"reach":{"most":1,"topics":["AQ=="]},"series":`), "the reach of topic 0 ends in the middle of a message"},
		"an impossible latency":       {edit(`"series":`, `"reach":{"most":1,"topics":["//8="]},"series":`), "the reach of topic 0 has the impossible code 65535"},
		"17 MiB without a list":       {edit(`"series":`, strings.Repeat(`"x":"`+strings.Repeat("x", 1<<20)+`",`, 17)+`"series":`), "fields other than lists must have at most 16 MiB"},
		"runner 0":                    {edit(`"index":1`, `"index":0`), "index of the runner must be at least 1, got 0"},
		"a client without id":         {edit(`"id":"d-1"`, `"id":""`), "a client has no id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(bytes.NewReader(c.file))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A shard that can be read can be merged and written again.
func FuzzRead(f *testing.F) {
	text, err := json.Marshal(newSmallShard())
	require.NoError(f, err)
	f.Add(string(text))
	f.Add(`{"schema":3,"runner":{"index":1,"execution_segment":"0:1"},"connect":{"max_us":0,"counts":""}}`)
	f.Add(strings.Replace(string(text), `"counts":"`, `"counts":"AQEB`, 1))
	f.Add(strings.Replace(string(text), `"execution_segment":"0:1"`, `"execution_segment":"1e999999999:1"`, 1))
	published := newSmallShard()
	published.Published, published.Reach = publishedSample(f), NewReach(2, 3)
	published.Reach.Record(0, 2, time.Second)
	f.Add(jsonOf(f, published))
	for _, c := range hostileShards(f) {
		if len(c.text) < 4<<10 {
			f.Add(c.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if raw, err := Read(strings.NewReader(text)); err == nil { // the text itself, which is rarely a gzip file
			encode(t, raw)
		}
		s, err := Read(bytes.NewReader(pack(t, []byte(text))))
		if err != nil {
			return
		}
		second, err := reread(t, s)
		require.NoError(t, err)
		require.Equal(t, encode(t, s), encode(t, second))
		p := planFor(1, 2)
		m := Merge(p, []*Shard{s})
		require.Equal(t, len(slices.Collect(s.Records())), m.Connections.Len())
		require.GreaterOrEqual(t, m.Lateness.Count(), int64(0))
		m.Lateness.Quantile(.99)
		for _, b := range m.Series { // a distant time would stretch the time axis of the report
			require.WithinDuration(t, s.Runner.Started(), time.Unix(b.Unix, 0), maxLength+time.Minute)
		}
		if s.Plan.Check() == nil {
			var g Merger
			g.Add(s)
			require.LessOrEqual(t, len(g.MergeWithoutPlan().Problems), 2*maxMissing)
		}
	})
}

func TestCheckpointIntervalGrowsWithTheRun(t *testing.T) {
	t.Parallel()
	const bytesPerHour = 6.7e6 / 72 // growth of a shard
	for _, c := range []struct{ age, want time.Duration }{
		{0, 30 * time.Second},
		{8 * time.Hour, 30 * time.Second},
		{10 * time.Hour, 36 * time.Second},
		{72 * time.Hour, 259200 * time.Millisecond},
	} {
		interval := CheckpointInterval(c.age)
		require.Equal(t, c.want, interval, "after %s", c.age)
		require.LessOrEqual(t, bytesPerHour*c.age.Hours()*float64(time.Hour/interval), 94e6, "too many bytes would be written in the next hour")
	}
}
