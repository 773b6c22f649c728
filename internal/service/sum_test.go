package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const summedDescription = `{"name":"x","connect":{"url":"{base}/{topic}"},
  "message":{"seq":"json:$.seq","run":"json:$.run","sentAt":"json:$.t","sum":"json:$.sum"},
  "publish":{"url":"{base}/{topic}","body":"{\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt},\"sum\":\"{sum}\"}"}}`

func summedService(t testing.TB) *Service {
	t.Helper()
	s := mustParse(t, summedDescription)
	require.True(t, s.Message.Summed)
	return s
}

func publishedBody(s *Service, run string, seq, sentAt int64) []byte {
	return s.Publish.Body.Append(nil, &Values{Run: run, Seq: seq, SentAt: sentAt})
}

// A message with one changed byte is never foreign, and is never counted with another number.
func TestChangedMessageIsCorrupted(t *testing.T) {
	s := summedService(t)
	const run, seq, at = "20260722-0615-ab12cd", 108, 1732250000123456
	reader := s.Reader(run)
	original := publishedBody(s, run, seq, at)
	good := Reading{Kind: Delivery, Seq: seq, HasSeq: true, SentAt: at, HasSentAt: true}
	require.Equal(t, good, reader.Read(newBlock("", "", string(original))))
	counts := map[error]int{}
	for i := range original {
		for c := range 256 {
			changed := bytes.Clone(original)
			changed[i] = byte(c)
			got := reader.Read(&Block{Data: changed, HasData: true})
			require.Equal(t, Delivery, got.Kind, "%q", changed)
			if counts[got.Err]++; got.Err == nil {
				require.Equal(t, good, got, "%q", changed)
			}
		}
	}
	require.Greater(t, counts[ErrMarker], 4000)
	require.Greater(t, counts[ErrSum], 3000)
	require.Greater(t, counts[ErrJSON], 1000)
	require.Less(t, counts[nil], 2*len(original))
}

func TestChecksumDecidesTheKind(t *testing.T) {
	s := summedService(t)
	good := Reading{Kind: Delivery, Seq: 17, HasSeq: true, SentAt: 1732250000000000, HasSentAt: true}
	bad := good
	bad.Err = ErrSum
	marker := good
	marker.Err = ErrMarker
	message := func(run, seq, at, sum string) string {
		return fmt.Sprintf(`{"run":%q,"seq":%s,"t":%s,"sum":%q}`, run, seq, at, sum)
	}
	const seq, at = "17", "1732250000000000"
	none := strings.Replace(message("r1", seq, at, ""), `,"sum":""`, "", 1)
	unnumbered := bad
	unnumbered.Seq, unnumbered.HasSeq = 0, false
	for _, c := range []struct {
		name, data string
		want       Reading
	}{
		{"unchanged", message("r1", seq, at, checksum("r1")), good},
		{"numbers in exponential notation", message("r1", "1.7e1", "1.73225e+15", checksum("r1")), good},
		{"numbers as texts", message("r1", `"17"`, `"1732250000000000.0"`, checksum("r1")), good},
		{"with a date", message("r1", seq, `"2024-11-22T04:33:20.000000Z"`, checksum("r1")), good},
		{"checksum of another run", message("r1", seq, at, checksum("r2")), bad},
		{"no checksum", none, bad},
		{"checksum that is a list", strings.Replace(message("r1", seq, at, "x"), `"x"`, "[]", 1), bad},
		{"checksum in capitals", message("r1", seq, at, strings.ToUpper(checksum("r1"))), bad},
		{"checksum of nine digits", message("r1", seq, at, "0"+checksum("r1")), bad},
		{"no number", strings.Replace(message("r1", seq, at, checksum("r1")), "seq", "number", 1), unnumbered},
		{"no marker", strings.Replace(message("r1", seq, at, checksum("r1")), "run", "marker", 1), marker},
		{"message of another run", message("r2", seq, at, checksum("r2")), Reading{Kind: Foreign}},
		{"message of another run, escaped", strings.Replace(message("r2", seq, at, checksum("r2")), "r2", `r\u0032`, 1), Reading{Kind: Foreign}},
		{"message of another run without a checksum", strings.Replace(none, "r1", "r2", 1), Reading{Kind: Foreign}},
		{"changed marker", message("r2", seq, at, checksum("r1")), marker},
		{"a message without a marker", `{"seq":17,"t":1732250000000000,"sum":"00000000"}`, Reading{}},
	} {
		require.Equal(t, c.want, s.Reader("r1").Read(newBlock("", "", c.data)), c.name)
	}
	// A reader without a marker verifies the checksum with the marker of the message.
	require.Equal(t, good, s.Reader("").Read(newBlock("", "", message("r2", seq, at, checksum("r2")))))
	require.Equal(t, bad, s.Reader("").Read(newBlock("", "", message("r2", seq, at, checksum("r1")))))
}

// A message with half of its marker and broken JSON is still a message of this run.
func TestHalfAMarkerInBrokenJSON(t *testing.T) {
	reader := summedService(t).Reader("run-1234567890")
	for data, want := range map[string]Kind{
		`{"run":"run-123"567890"}`: Delivery, `{"run":"ru"-1234567890"}`: Delivery, `{"run":"ru"-12345"7890"}`: Other, `{"run":"somebody`: Other,
	} {
		require.Equal(t, want, reader.Read(newBlock("", "", data)).Kind, data)
	}
}

// FuzzSum checks that a published message is read with its values, even if a service encodes it again. It also checks
// that a changed message is not read with other values.
func FuzzSum(f *testing.F) {
	f.Add("run-1", int64(17), int64(1732250000000000), uint16(20), byte('x'), uint16(3), byte(0))
	f.Add("r\"\n😀", int64(1)<<62, int64(1e14), uint16(0), byte(1), uint16(0), byte(1))
	f.Fuzz(func(t *testing.T, run string, seq, sentAt int64, at uint16, change byte, at2 uint16, change2 byte) {
		if run == "" || !utf8.ValidString(run) || seq < 0 || sentAt < 1e14 || sentAt >= 1e17 {
			return
		}
		s := summedService(t)
		reader := s.Reader(run)
		original := publishedBody(s, run, seq, sentAt)
		good := Reading{Kind: Delivery, Seq: seq, HasSeq: true, SentAt: sentAt, HasSentAt: true}
		require.Equal(t, good, reader.Read(&Block{Data: original, HasData: true}))
		require.Equal(t, Foreign, s.Reader(run+"x").Read(&Block{Data: original, HasData: true}).Kind)

		var decoded map[string]any
		require.NoError(t, json.Unmarshal(original, &decoded))
		encoded, err := json.Marshal(decoded) // the numbers are float64, as in PocketBase
		require.NoError(t, err)
		if seq < 1<<53 && sentAt < 1<<53 {
			require.Equal(t, good, reader.Read(&Block{Data: encoded, HasData: true}), "%s", encoded)
		}

		original[int(at)%len(original)] ^= change
		original[int(at2)%len(original)] ^= change2
		if got := reader.Read(&Block{Data: original, HasData: true}); got.Kind == Delivery && got.Err == nil {
			require.Equal(t, good, got, "%q", original)
		}
	})
}

// If a stream subscribes to one topic, a message of the run to another topic is OtherTopic, not Foreign.
func TestMessageOfAnotherTopicIsMisrouted(t *testing.T) {
	const message = `"message":{"seq":"json:$.seq","run":"json:$.run"}`
	for _, c := range []struct {
		name, description string
		want              Kind
	}{
		{"subscription to a topic", `{"name":"x","connect":{"url":"{base}/{topic}"},` + message + `,"publish":{"url":"{base}/{topic}","body":"{\"seq\":{seq},\"run\":\"{run}\"}"}}`, OtherTopic},
		{"subscription to all topics", `{"name":"x","connect":{"url":"{base}"},` + message + `,"publish":{"url":"{base}","body":"{\"seq\":{seq},\"run\":\"{run}\"}"}}`, Foreign},
		{"URL from a function", `{"name":"x","url":true,"connect":{},` + message + `,"publish":{"url":"{base}/{topic}","body":"{\"seq\":{seq},\"run\":\"{run}\"}"}}`, Foreign},
		{"no publish", `{"name":"x","connect":{"url":"{base}/{topic}"},` + message + `}`, Foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustParse(t, c.description)
			r := s.Reader("r1.0").WithFamily("r1.")
			for run, want := range map[string]Kind{"r1.0": Delivery, "r1.1": c.want, "r1.10": c.want, "r2.0": Foreign, "r1": Foreign, "r1.2.0": Foreign, "r1.x": c.want} {
				require.Equal(t, want, r.Read(&Block{Data: []byte(`{"seq":1,"run":"` + run + `"}`), HasData: true}).Kind, run)
			}
		})
	}
}
