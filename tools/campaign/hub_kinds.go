package main

import (
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// publishedGroup is the group of the faults of services that are published to.
const publishedGroup = "published"

// cleanPublished are runs of hubs in which nothing is wrong: what a hub is and does was drawn.
var cleanPublished = []kind{
	{"clean", "clean", asDrawn}, {"clean", "clean", asDrawn}, {"clean", "clean", asDrawn}, {"clean", "clean", asDrawn}, {"clean", "clean", asDrawn},
	{"clean", "clean", byAnotherClock},
	{"clean", "clean", func(r *rand.Rand, sc *scenario) { comesBackToHub(r, sc); strikeHub(r, sc, fakeservice.ActClose) }},
}

// publishedKinds are the faults of hubs.
var publishedKinds = []kind{
	{publishedGroup, "message lost", hubbed(fakeservice.ActLose)},
	{publishedGroup, "messages lost", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.Count = 2 + r.IntN(2)
	}},
	{publishedGroup, "first message lost", func(r *rand.Rand, sc *scenario) {
		sc.Hub.Start, sc.Hub.End, sc.Plan.Reconnect = 0, "client", false
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.From = 1
	}},
	{publishedGroup, "last message lost", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.From = sc.Plan.published(sc.Hub, 0)
	}},
	{publishedGroup, "message lost on all", func(r *rand.Rand, sc *scenario) { strikeHub(r, sc, fakeservice.ActLose); sc.HubFault.Devices = nil }},
	{publishedGroup, "all messages of a stream lost", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.From, sc.HubFault.Count = 1, 0
	}},
	{publishedGroup, "message lost, by another clock", func(r *rand.Rand, sc *scenario) {
		strikeHub(r, sc, fakeservice.ActLose)
		byAnotherClock(r, sc)
	}},
	{publishedGroup, "message lost, of those in any order", func(r *rand.Rand, sc *scenario) {
		sc.Hub.Delivery = oneOf(r, "at-least-once", "")
		sc.Hub.anyOrder()
		sc.Hub.Delay = 200 * time.Millisecond
		strikeHub(r, sc, fakeservice.ActLose)
	}},
	{publishedGroup, "message repeated", exact(fakeservice.ActRepeat)},
	{publishedGroup, "message repeated later", exact(hubAgain)},
	{publishedGroup, "messages swapped", exact(fakeservice.ActHold)},
	{publishedGroup, "message delayed", func(r *rand.Rand, sc *scenario) {
		sc.Hub.Timed, sc.Hub.Delay, sc.Hub.Slow, sc.Plan.LateMS, sc.Plan.MaxLate = true, 0, 0, 800, 0
		exact(fakeservice.ActDelay)(r, sc)
		sc.HubFault.From, sc.HubFault.Wait = 2, 1500*time.Millisecond
	}},
	{publishedGroup, "number corrupted", exact(harmNumber)},
	{publishedGroup, "marker corrupted", exact(harmMarker)},
	{publishedGroup, "time corrupted", summed(harmClock)},
	{publishedGroup, "checksum corrupted", summed(harmSum)},
	{publishedGroup, "data cut", func(r *rand.Rand, sc *scenario) {
		if sc.Hub.Form == formWords {
			sc.Hub.Form, sc.Hub.IDs = formFlat, hubUUID
		}
		exact(harmCut)(r, sc)
	}},
	{publishedGroup, "number changed", func(r *rand.Rand, sc *scenario) {
		exact(harmShift)(r, sc)
		sc.HubFault.By = oneOf(r, 1, -1, 1000)
		sc.HubFault.From = max(sc.HubFault.From, 2)
	}},
	{publishedGroup, "message on another topic", strayed(hubOther)},
	{publishedGroup, "message on another topic, too", strayed(hubLeak)},
	{publishedGroup, "stream falls silent", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds = lead + 9
		if sc.Hub.Every > 1 {
			sc.Hub.Every = 1
		}
		steady(sc)
		strikeHub(r, sc, hubMute)
		sc.HubFault.From, sc.HubFault.Count = 2, 0
	}},
	{publishedGroup, "stream ends early", ends(fakeservice.ActClose)},
	{publishedGroup, "stream reset", ends(fakeservice.ActReset)},
	{publishedGroup, "stream ends in a message", ends(fakeservice.ActTruncate)},
	{publishedGroup, "resumed too far back", func(r *rand.Rand, sc *scenario) {
		comesBackToHub(r, sc)
		sc.Hub.IDs, sc.Hub.Resume = hubUUID, oneOf(r, "header", "query")
		if sc.Hub.Form == formID {
			sc.Hub.IDs = hubNumber
		}
		if sc.Hub.Heartbeat == "after a line" { // it has an id
			sc.Hub.Heartbeat = "event"
		}
		exact(fakeservice.ActClose)(r, sc)
		sc.HubFault.From, sc.HubFault.Overlap = max(sc.HubFault.From, 3), 1+r.IntN(2)
	}},
	{publishedGroup, "gap announced", func(r *rand.Rand, sc *scenario) {
		sc.Hub.Gap = "event"
		if sc.Hub.Resume == "none" {
			sc.Hub.Resume = "header"
		}
		if sc.Hub.Form != formID && (sc.Hub.IDs == hubConstant || sc.Hub.IDs == hubNone) {
			sc.Hub.IDs = hubUUID
		}
		if sc.Hub.Heartbeat == "after a line" { // it resets the id
			sc.Hub.Heartbeat = "event"
		}
		exact(hubGap)(r, sc)
	}},

	{publishedGroup, "message refused", taken(takeRefuse)},
	{publishedGroup, "message refused, and delivered", taken(takeAnyway)},
	{publishedGroup, "message not answered", taken(takeHangUp)},
	{publishedGroup, "message not answered, and delivered", taken(takeSilently)},
	{publishedGroup, "message never answered", taken(takeForever)},
	{publishedGroup, "message swallowed", taken(takeSwallow)},
	{publishedGroup, "message kept from one", taken(takeLosesOne)},
	{publishedGroup, "nothing delivered from then on", func(r *rand.Rand, sc *scenario) {
		taken(takeStop)(r, sc)
		sc.HubFault.Count, sc.HubFault.Topics = 0, nil
	}},
	{publishedGroup, "stream refused", func(r *rand.Rand, sc *scenario) {
		steady(sc)
		forSome(hubFault{Answer: oneOf(r, 503, 500, 404, 401, 204, 200)})(r, sc)
	}},
	{publishedGroup, "second request refused", func(r *rand.Rand, sc *scenario) {
		steady(sc)
		sc.Hub.Then = true
		forSome(hubFault{Join: oneOf(r, 403, 500, 400)})(r, sc)
	}},
	{publishedGroup, "no heartbeats", func(_ *rand.Rand, sc *scenario) {
		sc.Hub.Topics, sc.Hub.Rate, sc.Plan.Interval, sc.Hub.Strangers = 1, .3, 1/.3, nil
		sc.Plan.Seconds = lead + 9
		sc.Hub.Heartbeat, sc.Hub.Beat, sc.Hub.Every = "comment", 500*time.Millisecond, 1
		steady(sc)
		sc.HubFault, sc.Fails, sc.Broken = hubFault{Beats: true}, true, []verdict.CheckID{verdict.CheckSilence}
	}},
	{publishedGroup, "stream ends before its lifetime", func(r *rand.Rand, sc *scenario) {
		sc.Hub.End, sc.Hub.Lifetime, sc.Hub.Retry, sc.Plan.Reconnect = "server", 3, 50, true
		then(forSome(hubFault{Early: true}), failing(verdict.CheckLifetime))(r, sc)
	}},
	{publishedGroup, "heartbeats reset the id", then(rotated(""), resetsIDs)},
	{publishedGroup, "no ids to resume from", then(rotated(""), sendsNoIDs)},
	{publishedGroup, "streams too short", shortLived(hubFault{})},
	{publishedGroup, "streams too short, and messages lost", shortLived(hubFault{Fault: fakeservice.Fault{Action: fakeservice.ActLose, From: 1}, Every: 4})},
	{publishedGroup, "stream never ends", func(r *rand.Rand, sc *scenario) {
		sc.Hub.End, sc.Plan.Reconnect = "request", false
		forSome(hubFault{Fault: fakeservice.Fault{Never: true}})(r, sc)
	}},
	{publishedGroup, "publisher killed", func(r *rand.Rand, sc *scenario) {
		publisherFault(syscall.SIGKILL)(r, sc)
		sc.want = invalid(verdict.CheckComplete)
	}},
	{publishedGroup, "publisher stopped for a while", func(r *rand.Rand, sc *scenario) {
		publisherFault(syscall.SIGSTOP)(r, sc)
		sc.want = invalid(verdict.CheckOnTime)
	}},
}

// resetsIDs makes heartbeats reset the ids of clients.
func resetsIDs(_ *rand.Rand, sc *scenario) {
	h := sc.Hub
	if h.Resume == "data" {
		h.Resume = "query"
	}
	h.Heartbeat, h.Beat = "after a line", 100*time.Millisecond
}

// sendsNoIDs makes a service send no ids, although its description has `resume`.
func sendsNoIDs(_ *rand.Rand, sc *scenario) {
	h := sc.Hub
	if h.Form == formID {
		h.Form = formFlat
	}
	if h.Resume == "data" {
		h.Resume = "query"
	}
	h.IDs = hubNone
}

// shortLived makes streams so short that most messages are published while a stream starts or ends.
func shortLived(f hubFault) prepare {
	return func(r *rand.Rand, sc *scenario) {
		h, f := sc.Hub, f
		h.Rate, sc.Plan.Interval = float64(h.Topics)/.8, .8
		h.End, h.Lifetime, h.Retry, h.Resume, h.Gap = "server", 1.2+.4*r.Float64(), 50, "none", ""
		sc.Plan.Reconnect, sc.HubFault, sc.Broken = true, f, []verdict.CheckID{verdict.CheckCoverage}
	}
}

// byAnotherClock has the service write its own time into messages, by a clock that is wrong.
func byAnotherClock(r *rand.Rand, sc *scenario) {
	sc.Hub.Timed, sc.Hub.Summed = true, false
	sc.Hub.Skew = time.Duration(oneOf(r, -1, 1.) * oneOf(r, .4, 1.5, 3, 20, 4000) * float64(time.Second))
}

// strikeHub is a fault that hits messages in the middle of some streams.
func strikeHub(r *rand.Rand, sc *scenario, act string) {
	last := sc.Plan.published(sc.Hub, sc.Hub.Topics-1)
	sc.HubFault = hubFault{Fault: fakeservice.Fault{Action: act, Devices: sc.Plan.some(r), From: 2 + r.IntN(max(last-3, 1)), Count: 1}}
}

func hubbed(act string) prepare {
	return func(r *rand.Rand, sc *scenario) { strikeHub(r, sc, act) }
}

// exact is such a fault of a service whose description promises order and that nothing comes twice.
func exact(act string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		sc.Hub.Order, sc.Hub.Delivery = "", ""
		strikeHub(r, sc, act)
		switch act {
		case harmMarker:
			if !sc.Hub.Marked {
				sc.HubFault.Action = harmNumber
			}
			fallthrough
		case harmNumber, harmShift, harmClock, harmSum, harmCut: // a client that resumes behind it would get it again
			steady(sc)
		}
	}
}

// summed is such a fault of one with a checksum.
func summed(act string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		sc.Hub.Marked, sc.Hub.Timed, sc.Hub.Summed = true, true, true
		if sc.Hub.Time == "millis" {
			sc.Hub.Time = "whole"
		}
		exact(act)(r, sc)
	}
}

// steady makes streams stay until their client ends them.
func steady(sc *scenario) { sc.Hub.End, sc.Hub.Retry, sc.Plan.Reconnect = "client", 0, false }

// ends is a fault that ends some streams without a reconnect.
func ends(act string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		steady(sc)
		strikeHub(r, sc, act)
	}
}

// comesBackToHub lets clients reconnect.
func comesBackToHub(r *rand.Rand, sc *scenario) {
	sc.Hub.End, sc.Hub.Retry, sc.Plan.Reconnect = "client", oneOf(r, 50, 300), true
}

// strayed is a message on the streams of another topic.
func strayed(act string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		h := sc.Hub
		if h.Topics == 1 {
			h.Topics, h.Rate = 2, 2*h.Rate
			sc.Plan.Connections = max(sc.Plan.Connections, 2)
		}
		exact(act)(r, sc)
		sc.HubFault.Devices, sc.HubFault.Topics = nil, []int{r.IntN(h.Topics)}
	}
}

// taken is a fault of what is published.
func taken(take string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		last := sc.Plan.published(sc.Hub, sc.Hub.Topics-1)
		sc.HubFault = hubFault{
			Take: take, Topics: []int{r.IntN(sc.Hub.Topics)}, Fault: fakeservice.Fault{From: 1 + r.IntN(max(last-1, 1)), Count: 1},
			Status: oneOf(r, http.StatusServiceUnavailable, 500, 429, 401, 413, 302),
		}
		if take == takeRefuse {
			sc.HubFault.Count = 1 + r.IntN(3)
		}
	}
}

// publisherFault sends a signal to the runner that publishes, once messages are under way.
func publisherFault(signal syscall.Signal) prepare {
	return func(_ *rand.Rand, sc *scenario) {
		steady(sc)
		sc.Plan.Seconds, sc.Plan.Runners = lead+9, 1
		sc.Strike.Wait = 2200 * time.Millisecond
		sc.disturb = publisherDisturbed(signal)
	}
}
