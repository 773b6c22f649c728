package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/stream"
)

// A limit is what is known to cut a silent stream by default.
type limit struct {
	after       time.Duration
	who, source string
}

const (
	nginxDocs  = "https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_read_timeout"
	albDocs    = "https://docs.aws.amazon.com/elasticloadbalancing/latest/application/edit-load-balancer-attributes.html"
	cloudflare = "https://developers.cloudflare.com/fundamentals/reference/connection-limits/"
	azureDocs  = "https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-reset"
	natDocs    = "https://aws.amazon.com/blogs/networking-and-content-delivery/implementing-long-running-tcp-connections-within-vpc-networking/"
	nlbDocs    = "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/update-idle-timeout.html"
	nitroDocs  = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ConnectionTrackingSpecificationRequest.html"
)

var knownLimits = []limit{
	{time.Minute, "nginx's proxy_read_timeout, by default", nginxDocs},
	{time.Minute, "an Application Load Balancer of AWS, by default", albDocs},
	{2 * time.Minute, "Cloudflare's proxy read timeout", cloudflare},
	{4 * time.Minute, "a Load Balancer of Azure, by default", azureDocs},
	{350 * time.Second, "a NAT gateway of AWS", natDocs},
	{350 * time.Second, "a Network Load Balancer of AWS, by default", nlbDocs},
	{350 * time.Second, "a security group of AWS, on instances of Nitro v6", nitroDocs},
}

// report is what was found, for a person.
func (i *idler) report() string {
	var b strings.Builder
	v := i.values(0)
	fmt.Fprintf(&b, "%s: %s held silent for up to %s, without TCP keep-alive", stream.Fill(&i.service.Connect, &v), count(len(i.held), "stream"), inSeconds(i.Length))
	if i.asks {
		b.WriteString("; each is asked once, by a message, whether it is alive.\n\n")
	} else {
		b.WriteString(".\nOnly cuts that the client is told of are seen: with --publish-url, and {topic} in both URLs, a message asks each stream whether it is alive.\n\n")
	}
	if lived := i.of(alive); len(lived) > 0 {
		fmt.Fprintf(&b, "alive after   %s\n", silences(lived))
	}
	cuts, gone := i.of(cut), i.of(vanished)
	for _, how := range reasons(cuts) {
		some := slices.DeleteFunc(slices.Clone(cuts), func(h *held) bool { return h.how() != how })
		fmt.Fprintf(&b, "cut after     %s, %d of %d: %s\n", span(some), len(some), len(i.held), how)
	}
	if len(gone) > 0 {
		fmt.Fprintf(&b, "gone after    %s, %d of %d: the message did not come, and nobody had closed the stream\n", silences(gone), len(gone), len(i.held))
	}
	if n := len(i.held) - len(i.of(alive)) - len(cuts) - len(gone); n > 0 && i.asks && len(cuts)+len(gone) > 0 {
		fmt.Fprintf(&b, "not asked     %d of %d: it was known by then\n", n, len(i.held))
	}
	b.WriteString("\n" + i.conclusion(cuts, gone))
	for _, note := range i.notes {
		b.WriteString(note + "\n")
	}
	return b.String()
}

// conclusion says what follows.
func (i *idler) conclusion(cuts, gone []*held) string {
	longest := time.Duration(0)
	for _, h := range i.held {
		longest = max(longest, h.most)
	}
	most := inSeconds(longest)
	from, to, found := i.between(cuts, gone)
	switch {
	case i.contradicted(cuts, gone):
		return "One stream ended, and another was alive after a longer silence: no limit of silence did that. Look for its reason in the service, or probe again.\n"
	case found:
		var b strings.Builder
		known := slices.DeleteFunc(slices.Clone(knownLimits), func(l limit) bool { return l.after < from-slack(from) || l.after > to+slack(to) })
		for _, l := range known {
			fmt.Fprintf(&b, "Known to cut after %s: %s (%s).\n", inSeconds(l.after), l.who, l.source)
		}
		if len(known) == 0 {
			b.WriteString("Nothing is known that cuts then by default: look for a timeout of that length on the way, or in the service.\n")
		}
		if slices.Contains(reasons(cuts), inOrder) {
			b.WriteString("Where the answer was ended in order, it may be the service itself that ends its streams after that time (end.lifetime of its description).\n")
		}
		if from == 0 {
			fmt.Fprintf(&b, "So a silence of less than %s is too long, and nobody asked by how much", inSeconds(to))
			if to > Shortest {
				fmt.Fprintf(&b, ": probe again with --seconds %.0f", Shortest.Seconds())
			}
			b.WriteString(".\n")
			return b.String()
		}
		fmt.Fprintf(&b, "So have the service send something on each stream, such as a comment line, at least every %s, or raise that limit.\n", inSeconds(from/2))
		return b.String()
	case i.spoke():
		return fmt.Sprintf("Something came on each stream by itself: none was silent for longer than %s. What cuts after a longer silence does not concern this service, and was not looked for.\n", most)
	case !i.asks:
		return fmt.Sprintf("Nobody closed a stream that was silent for %s.\n", most)
	}
	return fmt.Sprintf("Nothing cut a stream that was silent for %s.\n", most)
}

// contradicted says that one stream ended, and one that was silent for longer did not.
func (i *idler) contradicted(cuts, gone []*held) bool {
	ended := slices.Concat(cuts, gone)
	return len(ended) > 0 && len(ended) < enough && slices.ContainsFunc(i.of(alive), func(h *held) bool { return h.after > ended[0].after+slack(ended[0].after) })
}

// between are the silences between which streams are cut; found is false where none was.
func (i *idler) between(cuts, gone []*held) (from, to time.Duration, found bool) {
	if len(cuts)+len(gone) == 0 {
		return 0, 0, false
	}
	if len(cuts) > 0 { // to the millisecond
		return slices.MinFunc(cuts, byAfter).after, slices.MaxFunc(cuts, byAfter).after, true
	}
	to = slices.MinFunc(gone, byAfter).after
	for _, h := range i.of(alive) {
		if h.after < to {
			from = max(from, h.after)
		}
	}
	return from, to, true
}

// slack is by how much a silence may be off: a timer of the way starts at another moment than the client's.
func slack(d time.Duration) time.Duration { return max(d/50, 2*time.Second) }

// spoke says that the service went on sending something on each stream, and none was cut.
func (i *idler) spoke() bool {
	return !slices.ContainsFunc(i.held, func(h *held) bool {
		return h.fate != silent || h.heard().Sub(h.head) < i.Length/2
	})
}

// of are the streams with a fate.
func (i *idler) of(f fate) (out []*held) {
	for _, h := range i.held {
		if h.fate == f {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, byAfter)
	return out
}

func byAfter(a, b *held) int { return int(a.after - b.after) }

func reasons(all []*held) (out []string) {
	for _, h := range all {
		if how := h.how(); !slices.Contains(out, how) {
			out = append(out, how)
		}
	}
	return out
}

// silences lists how long streams were silent.
func silences(all []*held) string {
	var out []string
	for _, h := range all {
		out = append(out, inSeconds(h.after))
	}
	return strings.Join(slices.Compact(out), ", ")
}

// span is the range of silences.
func span(all []*held) string {
	first, last := fmt.Sprintf("%.1f", all[0].after.Seconds()), fmt.Sprintf("%.1f s", all[len(all)-1].after.Seconds())
	if first+" s" == last {
		return last
	}
	return first + " to " + last
}
