package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func actions(v *verdict.Verdict) Section {
	out := Section{ID: "actions", Title: "Actions during the run", Short: "Actions"}
	for i := range v.Actions {
		out.Tables = append(out.Tables, actionTable(&v.Actions[i]))
	}
	switch {
	case len(out.Tables) > 0 && v.Responses != nil:
		out.Notes = []string{"Times are relative to the start of the action. A response is attributed to the latest action that started before the response ended. The attribution ends when the next action starts, when the run ends, or when the command has ended and no response was faulty for a minute. A complete response is late if it takes more than twice as long as the longest complete response of the minute before the action."}
	case len(out.Tables) > 0:
		out.Notes = []string{"Times are relative to the start of the action. A lost stream is attributed to the latest action. The attribution ends when the next action starts, when the run ends, or when the command has ended, all streams have reconnected and none was lost for a minute. Resumed messages were sent while the client was disconnected and arrived afterwards."}
	}
	return out
}

func actionTable(a *verdict.Action) Table {
	out := facts{Caption: "Action " + a.Name}
	out.add("command", "%s", a.Command)
	if !a.Started() {
		out.add("planned", "%s after the start of the run; %s", format.Duration(a.At), a.Ending())
		return Table(out)
	}
	out.add("started", "%s, %s after the start of the run", format.UnixTime(a.StartedUnix), format.Duration(a.At))
	out.add("ended", "after %s: %s", format.Milliseconds(1000*(a.EndedUnix-a.StartedUnix)), a.Ending())
	if lines := strings.Split(a.Output, "\n"); a.Output != "" {
		const maxLines = 3
		out.add("output", "%s", strings.Join(lines[max(len(lines)-maxLines, 0):], " / "))
	}
	if a.Effect != nil {
		out.effect(a.Effect)
	}
	if a.Responses != nil {
		out.responses(a.Responses)
	}
	return Table(out)
}

func (f *facts) effect(e *verdict.Effect) {
	if e.Lost == 0 {
		f.add("lost", "no stream")
	} else {
		outages := ""
		if e.Losses > e.Lost {
			outages = fmt.Sprintf(", %s in all", format.Count(e.Losses, "outage"))
		}
		f.add("lost", "%s%s, the first %s after the action started", format.Count(e.Lost, "stream"), outages, format.Milliseconds(1000**e.FirstLost))
		f.add("reconnected", "50 %% %s, 99 %% %s, 100 %% %s", waitPhrase(e.Reconnected50), waitPhrase(e.Reconnected99), waitPhrase(e.Reconnected100))
		if e.NotReconnected > 0 {
			f.add("", "%s never reconnected", format.Count(e.NotReconnected, "stream"))
		}
		f.add("connects", "at most %s in one second", format.Thousands(e.Peak))
		f.add("refused", "%s", cmp.Or(refusals(e.Refused), "no attempt"))
		f.add("longest outage", "%s, disconnected for %s from %s", e.Slowest.ID, format.Milliseconds(1000*e.Slowest.Seconds), format.UnixTime(e.Slowest.Unix))
	}
	resumed := ""
	switch {
	case e.Lost == 0:
	case e.Resumed == nil:
		resumed = " an unknown number resumed,"
	default:
		resumed = " " + format.Thousands(*e.Resumed) + " resumed,"
	}
	f.add("messages", "%s missed,%s %s duplicated", format.Thousands(e.Missed), resumed, format.Thousands(e.Duplicated))
	if e.NotResumed > 0 {
		f.add("", "%s published around an outage did not arrive, because the client could not resume", format.Count(e.NotResumed, "more message"))
	}
	f.add("attribution", "until %s", format.UnixTime(e.Until))
	for _, note := range e.Notes {
		f.add("", "%s", note)
	}
}

func (f *facts) responses(e *verdict.ResponseEffect) {
	f.add("in flight", "%s when the action started", format.Count(e.InFlight, "response"))
	if e.Drained != nil {
		f.add("drained", "%s", waitPhrase(e.Drained))
	}
	var faulty []string
	for _, state := range ledger.ResponseStates {
		if n := e.Faulty[state]; n > 0 {
			faulty = append(faulty, fmt.Sprintf("%s %s", format.Thousands(n), verdict.ResponseStates[state]))
		}
	}
	f.add("responses", "%s complete, %s", format.Thousands(e.Complete), cmp.Or(strings.Join(faulty, ", "), "none faulty"))
	if e.Late != nil {
		f.add("late", "%s took over %s", format.Count(*e.Late, "response"), format.Milliseconds(1000*e.LateLimit))
	}
	if e.Slowest != nil {
		f.add("longest", "%s", format.Milliseconds(1000**e.Slowest))
	}
	f.add("attribution", "until %s", format.UnixTime(e.Until))
	for _, note := range e.Notes {
		f.add("", "%s", note)
	}
}

func waitPhrase(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return "after " + format.Milliseconds(1000**seconds)
}
