package report

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// messageHead names the columns of connections.csv on the messages of a client and on other events.
var messageHead = []any{"topic", "first", "last", "heartbeats", "foreign", "repeated", "announced_gaps", "uncounted", "max_silence_s", "strayed"}

// messageCells returns the values of these columns. The numbers of the first and the last message are empty if none arrived.
func messageCells(m *shard.Merged, c *shard.Connection) []any {
	topic, _, _ := m.Topic(c)
	return []any{
		cell(topic), number(c.First), number(c.Last), c.Heartbeats, c.Foreign, c.Repeated, c.Gaps, c.Uncounted, silence(c), c.Strayed,
	}
}

// silence returns the longest silence of a client in seconds; "" if it was not measured.
func silence(c *shard.Connection) any {
	if c.MaxSilence == 0 {
		return ""
	}
	return decimals(c.MaxSilence, time.Second)
}

func number(n uint64) any {
	if n == 0 {
		return ""
	}
	return n
}

// publishedIn is how many messages were sent in a bucket of the series, and of how many of these the service confirmed.
type publishedIn struct{ sent, confirmed int }

// publishedByBucket returns what was published, by the start of a bucket; nil if nothing was.
func publishedByBucket(m *shard.Merged) map[int64]publishedIn {
	all := m.Publishers()
	if len(all) == 0 {
		return nil
	}
	const width = int64(shard.BucketWidth / time.Second)
	out := map[int64]publishedIn{}
	for _, p := range all {
		for k := range p.Topics {
			for _, message := range p.Topic(k) {
				at := message.SentUS / 1e6 / width * width
				sum := out[at]
				sum.sent++
				if message.State == shard.Confirmed {
					sum.confirmed++
				}
				out[at] = sum
			}
		}
	}
	return out
}
