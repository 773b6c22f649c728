package main

import (
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

const publishedGroup = "published"

var cleanPublished = clean(
	noChange, noChange, noChange, noChange, noChange,
	useOtherClock,
	func(r *rand.Rand, sc *scenario) {
		reconnectToHub(r, sc)
		if sc.Hub.Resume == "none" { // in a shorter run, most messages would be near the start or end of a stream
			sc.Plan.Seconds = 20
		}
		strikeHub(r, sc, fakeservice.ActClose)
	},
)

// publishedKinds are faults of hubs. break_kinds.go defines others.
var publishedKinds = []kind{
	{publishedGroup, "message lost", func(r *rand.Rand, sc *scenario) { strikeHub(r, sc, fakeservice.ActLose) }},
	{publishedGroup, "messages lost", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.Count = 2 + r.IntN(2)
	}},
	{publishedGroup, "first message lost", func(r *rand.Rand, sc *scenario) {
		sc.Hub.HeaderDelay, sc.Hub.End, sc.Plan.Reconnect = 0, "client", false
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.From = 1
	}},
	{publishedGroup, "last message lost", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.From = sc.Plan.messagesPerTopic(sc.Hub, 0)
	}},
	{publishedGroup, "message lost on all streams", func(r *rand.Rand, sc *scenario) { strikeHub(r, sc, fakeservice.ActLose); sc.HubFault.Clients = nil }},
	{publishedGroup, "all messages of a stream lost", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.From, sc.HubFault.Count = 1, 0
	}},
	{publishedGroup, "message lost, by another clock", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		useOtherClock(r, sc)
	}},
	{publishedGroup, "message lost, any order", func(r *rand.Rand, sc *scenario) {
		sc.Hub.Delivery = oneOf(r, "at-least-once", "")
		sc.Hub.allowAnyOrder()
		sc.Hub.Delay = 200 * time.Millisecond
		strikeHub(r, sc, fakeservice.ActLose)
	}},
	{publishedGroup, "message repeated", orderedKind(fakeservice.ActRepeat)},
	{publishedGroup, "message repeated later", orderedKind(fakeservice.ActRepeatLater)},
	{publishedGroup, "messages swapped", orderedKind(fakeservice.ActSwap)},
	{publishedGroup, "message delayed", func(r *rand.Rand, sc *scenario) {
		sc.Hub.HasTime, sc.Hub.Delay, sc.Hub.ResponseDelay, sc.Plan.LateMS, sc.Plan.MaxLate = true, 0, 0, 800, 0
		orderedKind(fakeservice.ActDelay)(r, sc)
		sc.HubFault.From, sc.HubFault.Wait = 2, 1500*time.Millisecond
	}},
	{publishedGroup, "number corrupted", orderedKind(corruptNumber)},
	{publishedGroup, "marker corrupted", orderedKind(corruptMarker)},
	{publishedGroup, "time corrupted", withChecksum(corruptTime)},
	{publishedGroup, "checksum corrupted", withChecksum(corruptSum)},
	{publishedGroup, "data cut", func(r *rand.Rand, sc *scenario) {
		if sc.Hub.Form == formWords {
			sc.Hub.Form, sc.Hub.IDs = formFlat, idsUUID
		}
		orderedKind(corruptTruncated)(r, sc)
	}},
	{publishedGroup, "number changed", func(r *rand.Rand, sc *scenario) {
		orderedKind(corruptShift)(r, sc)
		sc.HubFault.Offset = oneOf(r, 1, -1, 1000)
		sc.HubFault.From = max(sc.HubFault.From, 2)
	}},
	{publishedGroup, "message on another topic", misroute(hubOtherTopic)},
	{publishedGroup, "message also on another topic", misroute(hubLeaks)},
	{publishedGroup, "stream falls silent", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds = lead + 9
		if sc.Hub.StatedInterval > 1 {
			sc.Hub.StatedInterval = 1
		}
		keepStreamsOpen(sc)
		strikeHub(r, sc, hubMuted)
		sc.HubFault.From, sc.HubFault.Count = 2, 0
	}},
	{publishedGroup, "stream ends early", breakStreams(fakeservice.ActClose)},
	{publishedGroup, "stream reset", breakStreams(fakeservice.ActReset)},
	{publishedGroup, "stream ends in a message", breakStreams(fakeservice.ActTruncate)},
	{publishedGroup, "resumed too far back", func(r *rand.Rand, sc *scenario) {
		reconnectToHub(r, sc)
		sc.Hub.IDs, sc.Hub.Resume = idsUUID, oneOf(r, "header", "query")
		if sc.Hub.Form == formID {
			sc.Hub.IDs = idsNumber
		}
		if sc.Hub.Heartbeat == "after a line" { // such a heartbeat resets the id
			sc.Hub.Heartbeat = "event"
		}
		orderedKind(fakeservice.ActClose)(r, sc)
		sc.HubFault.From, sc.HubFault.Overlap = max(sc.HubFault.From, 3), 1+r.IntN(2)
	}},
	{publishedGroup, "gap announced", func(r *rand.Rand, sc *scenario) {
		sc.Hub.Gap = "event"
		if sc.Hub.Resume == "none" {
			sc.Hub.Resume = "header"
		}
		if sc.Hub.Form != formID && (sc.Hub.IDs == idsConstant || sc.Hub.IDs == idsNone) {
			sc.Hub.IDs = idsUUID
		}
		if sc.Hub.Heartbeat == "after a line" { // such a heartbeat resets the id
			sc.Hub.Heartbeat = "event"
		}
		orderedKind(hubGap)(r, sc)
	}},

	{publishedGroup, "message refused", publishKind(publishRefused)},
	{publishedGroup, "message refused, and delivered", publishKind(publishRefusedDelivered)},
	{publishedGroup, "message not answered", publishKind(publishDropped)},
	{publishedGroup, "message not answered, and delivered", publishKind(publishUnanswered)},
	{publishedGroup, "message never answered", publishKind(publishHangs)},
	{publishedGroup, "message confirmed, but not delivered", publishKind(publishUndelivered)},
	{publishedGroup, "message not delivered to one client", publishKind(publishLosesOne)},
	{publishedGroup, "nothing delivered after a message", func(r *rand.Rand, sc *scenario) {
		publishKind(publishStopsDelivery)(r, sc)
		sc.HubFault.Count, sc.HubFault.Topics = 0, nil
	}},
	{publishedGroup, "stream refused", func(r *rand.Rand, sc *scenario) {
		keepStreamsOpen(sc)
		affectSomeClients(hubFault{Answer: oneOf(r, 503, 500, 404, 401, 204, 200)})(r, sc)
	}},
	{publishedGroup, "second request refused", func(r *rand.Rand, sc *scenario) {
		keepStreamsOpen(sc)
		sc.Hub.SecondRequest = true
		affectSomeClients(hubFault{Join: oneOf(r, 403, 500, 400)})(r, sc)
	}},
	{publishedGroup, "no heartbeats", func(_ *rand.Rand, sc *scenario) {
		sc.Hub.Topics, sc.Hub.Rate, sc.Plan.Interval, sc.Hub.Foreign = 1, .3, 1/.3, nil
		sc.Plan.Seconds = lead + 9
		sc.Hub.Heartbeat, sc.Hub.HeartbeatInterval, sc.Hub.StatedInterval = "comment", 500*time.Millisecond, 1
		keepStreamsOpen(sc)
		sc.HubFault, sc.Fails, sc.Unmet = hubFault{NoHeartbeats: true}, true, []verdict.CheckID{verdict.CheckSilence}
	}},
	{publishedGroup, "stream ends before its lifetime", func(r *rand.Rand, sc *scenario) {
		sc.Hub.End, sc.Hub.Lifetime, sc.Hub.Retry, sc.Plan.Reconnect = "server", 3, 50, true
		combine(affectSomeClients(hubFault{Early: true}), expectFailure(verdict.CheckLifetime))(r, sc)
	}},
	{publishedGroup, "heartbeats reset the id", combine(rotate(""), resetIDs)},
	{publishedGroup, "no ids to resume from", combine(rotate(""), omitHubIDs)},
	{publishedGroup, "streams too short", shortStreams(hubFault{})},
	{publishedGroup, "streams too short, and messages lost", shortStreams(hubFault{Fault: fakeservice.Fault{Action: fakeservice.ActLose, From: 1}, Every: 4})},
	{publishedGroup, "stream never ends", func(r *rand.Rand, sc *scenario) {
		sc.Hub.End, sc.Plan.Reconnect = "request", false
		affectSomeClients(hubFault{Fault: fakeservice.Fault{NeverEnds: true}})(r, sc)
	}},
	{publishedGroup, "publisher killed", func(r *rand.Rand, sc *scenario) {
		publisherFault(syscall.SIGKILL)(r, sc)
		sc.want = expectInvalid(verdict.CheckComplete)
	}},
	{publishedGroup, "publisher stopped for a while", func(r *rand.Rand, sc *scenario) {
		publisherFault(syscall.SIGSTOP)(r, sc)
		sc.want = expectInvalid(verdict.CheckOnTime)
	}},
}

func resetIDs(_ *rand.Rand, sc *scenario) {
	h := sc.Hub
	if h.Resume == "data" {
		h.Resume = "query"
	}
	h.Heartbeat, h.HeartbeatInterval = "after a line", 100*time.Millisecond
}

// omitHubIDs makes a service send no ids, although its description has `resume`.
func omitHubIDs(_ *rand.Rand, sc *scenario) {
	h := sc.Hub
	if h.Form == formID {
		h.Form = formFlat
	}
	if h.Resume == "data" {
		h.Resume = "query"
	}
	h.IDs = idsNone
}

// shortStreams makes streams so short that most messages are published near the start or end of a stream.
func shortStreams(f hubFault) setup {
	return func(r *rand.Rand, sc *scenario) {
		h, f := sc.Hub, f
		h.Rate, sc.Plan.Interval = float64(h.Topics)/.8, .8
		h.End, h.Lifetime, h.Retry, h.Resume, h.Gap = "server", 1.2+.4*r.Float64(), 50, "none", ""
		sc.Plan.Reconnect, sc.HubFault, sc.Unmet = true, f, []verdict.CheckID{verdict.CheckCoverage}
	}
}

// useOtherClock makes the service write the time of a wrong clock into messages.
func useOtherClock(r *rand.Rand, sc *scenario) {
	sc.Hub.HasTime, sc.Hub.HasChecksum = true, false
	sc.Hub.Skew = time.Duration(oneOf(r, -1, 1.) * oneOf(r, .4, 1.5, 3, 20, 4000) * float64(time.Second))
}

// strikeHub sets the fault of a scenario to an effect on one message in the middle of some streams.
func strikeHub(r *rand.Rand, sc *scenario, act string) {
	last := sc.Plan.messagesPerTopic(sc.Hub, sc.Hub.Topics-1)
	sc.HubFault = hubFault{Fault: fakeservice.Fault{Action: act, Clients: sc.Plan.randomIDs(r), From: 2 + r.IntN(max(last-3, 1)), Count: 1}}
}

// orderedKind returns the setup of a fault on the messages of a service whose description promises order and no
// duplicates.
func orderedKind(act string) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.Hub.Order, sc.Hub.Delivery = "", ""
		strikeHub(r, sc, act)
		switch act {
		case corruptMarker:
			if !sc.Hub.HasMarker {
				sc.HubFault.Action = corruptNumber
			}
			fallthrough
		case corruptNumber, corruptShift, corruptTime, corruptSum, corruptTruncated:
			keepStreamsOpen(sc) // a client that reconnects may receive the message again
		}
	}
}

func withChecksum(act string) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.Hub.HasMarker, sc.Hub.HasTime, sc.Hub.HasChecksum = true, true, true
		if sc.Hub.Time == "millis" {
			sc.Hub.Time = "whole"
		}
		orderedKind(act)(r, sc)
	}
}

// keepStreamsOpen keeps each stream open until its client ends it. Clients do not reconnect.
func keepStreamsOpen(sc *scenario) { sc.Hub.End, sc.Hub.Retry, sc.Plan.Reconnect = "client", 0, false }

func breakStreams(act string) setup {
	return func(r *rand.Rand, sc *scenario) {
		keepStreamsOpen(sc)
		strikeHub(r, sc, act)
	}
}

func reconnectToHub(r *rand.Rand, sc *scenario) {
	sc.Hub.End, sc.Hub.Retry, sc.Plan.Reconnect = "client", oneOf(r, 50, 300), true
}

func misroute(act string) setup {
	return func(r *rand.Rand, sc *scenario) {
		h := sc.Hub
		if h.Topics == 1 {
			h.Topics, h.Rate = 2, 2*h.Rate
			sc.Plan.Connections = max(sc.Plan.Connections, 2)
		}
		orderedKind(act)(r, sc)
		sc.HubFault.Clients, sc.HubFault.Topics = nil, []int{r.IntN(h.Topics)}
	}
}

func publishKind(effect string) setup {
	return func(r *rand.Rand, sc *scenario) {
		last := sc.Plan.messagesPerTopic(sc.Hub, sc.Hub.Topics-1)
		sc.HubFault = hubFault{
			Publish: effect, Topics: []int{r.IntN(sc.Hub.Topics)}, Fault: fakeservice.Fault{From: 1 + r.IntN(max(last-1, 1)), Count: 1},
			Status: oneOf(r, http.StatusServiceUnavailable, 500, 429, 401, 413, 302),
		}
		if effect == publishRefused {
			sc.HubFault.Count = 1 + r.IntN(3)
		}
	}
}

// publisherFault prepares a run in which the publishing runner receives a signal after its first message.
func publisherFault(signal syscall.Signal) setup {
	return func(_ *rand.Rand, sc *scenario) {
		keepStreamsOpen(sc)
		sc.Plan.Seconds, sc.Plan.Runners = lead+9, 1
		sc.Strike.Wait = 2200 * time.Millisecond
		sc.disturb = disturbPublisher(signal)
	}
}

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
func uncheckableMessages(withMarker bool, foreign ...string) setup {
	return func(_ *rand.Rand, sc *scenario) {
		message := object{"seq": "json:$.seq", "event": "price"}
		if withMarker {
			message["run"] = "json:$.run"
		}
		omitPublisher(sc, message, foreign...)
		sc.want = expectInvalid(verdict.CheckChecked)
	}
}
