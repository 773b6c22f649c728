package main

import (
	"math/rand/v2"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

const uncheckedGroup = "unchecked"

var cleanUnchecked = clean(
	connectionsOnly(nil),
	connectionsOnly([]string{"text", "large", "event"}),
)

// uncheckedKinds are runs that check no message and must not pass: a flag or the description requires the check, or the
// service refuses streams.
var uncheckedKinds = []kind{
	{uncheckedGroup, "messages required", func(_ *rand.Rand, sc *scenario) {
		omitPublisher(sc, "unchecked")
		sc.Args, sc.want = append(sc.Args, "--require-messages"), expectInvalid(verdict.CheckChecked)
	}},
	{uncheckedGroup, "quiet service", uncheckableMessages(false)},
	{uncheckedGroup, "named events without the marker", uncheckableMessages(true, "text", "large")},
	{uncheckedGroup, "named events without a number", uncheckableMessages(false, "text", "large")},
	{uncheckedGroup, "unchecked, and a stream refused", func(r *rand.Rand, sc *scenario) {
		omitPublisher(sc, "unchecked")
		affectSomeClients(hubFault{Answer: oneOf(r, 503, 500, 404)})(r, sc)
	}},
}

// omitPublisher turns the hub into a service to which the run does not publish. message is the message field of
// the description. foreign are kinds of foreign blocks.
func omitPublisher(sc *scenario, message any, foreign ...string) {
	h := sc.Hub
	keepStreamsOpen(sc)
	h.Topics, h.SecondRequest, h.Message, h.Foreign = 1, false, message, foreign
	h.Form, h.Events, h.HasLineBreaks, h.EscapesMarker, h.Resume, h.Gap = formFlat, []string{"price"}, false, false, "none", ""
	h.Heartbeat, h.HeartbeatInterval, h.StatedInterval = "event", 500*time.Millisecond, 1
}

func connectionsOnly(foreign []string) setup {
	return func(_ *rand.Rand, sc *scenario) {
		omitPublisher(sc, "unchecked", foreign...)
		sc.want = expectPass()
		sc.want.ConnectionsOnly = true
	}
}

// uncheckableMessages prepares an invalid run. The description states how to check messages, but the service sends none
// that can be checked.
func uncheckableMessages(marked bool, foreign ...string) setup {
	return func(_ *rand.Rand, sc *scenario) {
		message := object{"seq": "json:$.seq", "event": "price"}
		if marked {
			message["run"] = "json:$.run"
		}
		omitPublisher(sc, message, foreign...)
		sc.want = expectInvalid(verdict.CheckChecked)
	}
}
