package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An ActionResult is the result of an action (--at), as `soak run` recorded it in run.json.
type ActionResult struct {
	plan.Action
	StartedUnix float64 `json:"started_unix_s,omitempty"` // 0: the command was not started
	EndedUnix   float64 `json:"ended_unix_s,omitempty"`
	ExitCode    int     `json:"exit_code"`         // -1: a signal ended the command, or it was not started
	Problem     string  `json:"problem,omitempty"` // why the command did not run to its end; "" if it did
	Output      string  `json:"output,omitempty"`  // the end of the output; the log of the action has the whole output
}

// Started reports whether the command was started.
func (a *ActionResult) Started() bool { return a.StartedUnix > 0 }

// Succeeded reports whether the command ran to its end and exited with code 0.
func (a *ActionResult) Succeeded() bool { return a.Started() && a.Problem == "" && a.ExitCode == 0 }

// Ending describes how the action ended.
func (a *ActionResult) Ending() string {
	switch {
	case a.Problem != "":
		return a.Problem
	case a.ExitCode < 0:
		return "terminated by a signal"
	}
	return fmt.Sprintf("exit code %d", a.ExitCode)
}

// Duration returns how long the command ran.
func (a *ActionResult) Duration() time.Duration { return secondsBetween(a.StartedUnix, a.EndedUnix) }

func secondsBetween(from, to float64) time.Duration {
	return time.Duration((to - from) * float64(time.Second)).Round(time.Millisecond)
}

func (a *ActionResult) sentence() string {
	text := fmt.Sprintf("the action %s (%s, at %s) failed: %s", a.Name, a.Command, format.Duration(a.At), a.Ending())
	if lines := strings.Split(strings.TrimSpace(a.Output), "\n"); lines[len(lines)-1] != "" {
		text += "; last line of its output: " + lines[len(lines)-1]
	}
	return text
}

// An Action is an action of a run, with its effect on the streams or responses.
type Action struct {
	ActionResult
	Effect    *Effect         `json:"effect,omitempty"`    // nil: the action was not started, or the run had no event streams
	Responses *ResponseEffect `json:"responses,omitempty"` // nil: the action was not started, or the run had no responses
}

// actionCheck returns the check that all actions succeeded. A run whose deploy failed did not test a deploy.
func (e *Evidence) actionCheck() Check {
	var failed []string
	for i := range e.Actions {
		if !e.Actions[i].Succeeded() {
			failed = append(failed, e.Actions[i].sentence())
		}
	}
	return Check{
		ID: CheckActions, Name: "actions succeeded", Limit: "exit code 0 each", Actual: firstText(failed, fmt.Sprintf("%d of %[1]d", len(e.Actions))), Pass: len(failed) == 0,
		Why: "the run did not test the action", Reasons: failed,
	}.AsDoubt()
}

func (e *Evidence) actions(s *Streams, r *shard.Responses) []Action {
	out := make([]Action, len(e.Actions))
	for i, a := range e.Actions {
		out[i].ActionResult = a
	}
	if s != nil {
		s.effects(out)
	}
	if r != nil {
		responseEffects(out, r)
	}
	return out
}
