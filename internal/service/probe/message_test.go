package probe

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

func TestEventWithSeveralPublishedMessages(t *testing.T) {
	t.Parallel()
	var first string
	h := &fakeservice.Hub{
		Lose: func(_, payload string) bool {
			if first == "" {
				first = payload // the next message gets it, too
				return true
			}
			return false
		},
		Wrap: func(payload string) string {
			batch := "[" + first + "," + payload + "]"
			first = ""
			return batch
		},
	}
	d := probe(t, h, Config{Publish: publishRequest})
	require.Contains(t, d.notes, "message.seq: an event had several published messages, but a run reads one message per event: data: [{")
	require.Contains(t, d.json, `"message":"unchecked"`)
}

func TestQuotedMessageIsNotABatch(t *testing.T) {
	t.Parallel()
	for _, quote := range []string{"quoted", "before"} { // places are tried in alphabetical order
		previous := "null"
		h := &fakeservice.Hub{Wrap: func(payload string) string {
			text := `{"message":` + payload + `,"` + quote + `":` + previous + "}"
			previous = payload
			return text
		}}
		d := probe(t, h, Config{Publish: publishRequest}, requireTrial)
		require.Contains(t, d.json, `"message":{"seq":"json:$.message.seq","run":"json:$.message.run","sentAt":"json:$.message.t","sum":"json:$.message.sum"}`)
	}
}

func TestChecksumOfAServiceWithoutTopics(t *testing.T) {
	t.Parallel()
	d := probe(t, new(fakeservice.Hub), Config{URL: base + "/sub/news", Publish: Request{URL: "{base}/pub/news", Body: publishRequest.Body}}, requireTrial)
	require.Contains(t, d.json, `"sum":"json:$.sum"`)
	require.NotNil(t, d.Publish)
}

func TestMessageInEventsOfSeveralNames(t *testing.T) {
	t.Parallel()
	for preview, want := range map[string]string{
		"event: room\ndata: {\"last\":%s}\n\n":            `"message":{"event":"post","seq":"json:$.seq","run":"json:$.run","sentAt":"json:$.t","sum":"json:$.sum"}`,
		"event: room\ndata: {\"last\":[%[1]s,%[2]s]}\n\n": `"message":{"event":"post","seq":"json:$.seq"`,
		"event: post\ndata: %s\n\n":                       `"message":{"seq":"json:$.seq"`,
		"event: reload\ndata: room\n\n%.0s":               `"message":{"seq":"json:$.seq"`,
	} {
		hub, previous := &fakeservice.Hub{Event: "post"}, "{}"
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				hub.ServeHTTP(w, r)
				return
			}
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			hub.Publish("room-1", string(body))
			if strings.Contains(preview, "%[2]s") {
				hub.Send("room-1", fmt.Sprintf(preview, body, previous))
			} else {
				hub.Send("room-1", fmt.Sprintf(preview, body))
			}
			previous = string(body)
		})
		d := probe(t, h, Config{Publish: publishRequest})
		require.Contains(t, d.json, want, preview)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	f := newFindings()
	f.session.requests.publish = object{{name: "body", value: "{sentAt}"}}
	opened := f.add(plain, 0)
	for name, c := range map[string]struct {
		publishedAfter time.Duration
		streams        [][]string
		isBatch        bool
	}{
		"history":                              {time.Millisecond, [][]string{{"[17,18]"}}, false},
		"batch":                                {2 * time.Second, [][]string{{"[17,18]"}}, true},
		"quote":                                {2 * time.Second, [][]string{{"17", "18 after 17"}}, false},
		"quote of a message of another stream": {2 * time.Second, [][]string{{"18 after 17"}, {"17", "18 after 17"}}, false},
	} {
		at := started.Add(c.publishedAfter)
		f.session.published = []publication{{seq: 1, sentAt: 17, at: at}, {seq: 2, sentAt: 18, at: at}}
		var all []series
		for _, events := range c.streams {
			messages := series{track: opened}
			for _, data := range events {
				messages.units = append(messages.units, block(3*time.Second, "", data))
			}
			all = append(all, messages)
		}
		require.Equal(t, c.isBatch, f.findBatch(all) != nil, name)
	}
}

func TestEventsWithoutTheCheckedNameAreReported(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{GenerateInterval: 100 * time.Millisecond, Generate: func(_, n int) string {
		return fmt.Sprintf("event: %s\ndata: {\"rev\":%d}\n\n", []string{"cart", "order"}[n%2], n/2)
	}}
	d := probe(t, h, Config{})
	require.Contains(t, d.json, `"message":{"event":"order","seq":"json:$.rev"`)
	require.Contains(t, d.notes, "message.event: a run checks only events with the name 'order', because no sequence of numbers includes 'cart'.")
}
