package verdict

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// criteria writes the list that report and exit code read.
func (j *judge) criteria() {
	j.completeCriterion()
	j.addAll(j.streamCriteria())
	j.heldCriteria()
	j.generatorCriterion()
	j.addAll(j.countCriteria())
	if len(j.facts.Failures) > 0 {
		j.add(Criterion{
			Name: "the target stayed up", Limit: "no restart", Actual: j.facts.Failures[0], Pass: j.m.Plan.Reconnect,
			Why: "a restart cuts every client off",
		}, j.facts.Failures...)
	}
	j.hiddenCriterion()
}

// streamCriteria are the criteria for streams and their noops.
func (j *judge) streamCriteria() (out []Judged) {
	v, p := j.v, j.m.Plan
	add := func(c Criterion, reasons ...string) { out = append(out, Judged{c, reasons}) }
	add(Criterion{
		Name: "connections opened", Limit: fmt.Sprint(v.Connections.Planned), Actual: fmt.Sprint(v.Connections.Opened),
		Pass: v.Connections.Opened == v.Connections.Planned,
		Why:  "every client gets in",
	}, j.sentences("refused")...)
	add(Criterion{
		Name: "connections held to the end", Limit: fmt.Sprint(v.Connections.Planned), Actual: fmt.Sprint(v.Connections.Completed),
		Pass: v.Connections.Completed == v.Connections.Planned,
		Why:  "no client is cut off, and each stream ends when asked to", weight: restsOn(j.proofs.unheld),
	}, j.unheld()...)
	for _, n := range []struct {
		name, why string
		count     uint64
		proof     bool
		kinds     []string
	}{
		{"noops missed", "a message that never came", v.Noops.Missed, j.proofs.missed, []string{"lost", "unsent", "tail", "restarted"}},
		{"noops duplicated", "a message that came twice", v.Noops.Duplicated, j.proofs.duplicated, []string{"duplicated"}},
		{"noops reordered", "a message that was overtaken", v.Noops.Reordered, j.proofs.reordered, []string{"reordered"}},
		{"noops corrupted", "a message whose content was changed", v.Noops.Corrupted, true, []string{"corrupted"}},
	} {
		add(Criterion{Name: n.name, Limit: "0", Actual: fmt.Sprint(n.count), Pass: n.count == 0, Why: n.why, weight: restsOn(n.proof)}, j.sentences(n.kinds...)...)
	}
	add(Criterion{
		Name: "count against floor(held / interval)", Limit: "no connection below", Actual: first(j.short, "none below"),
		Pass: len(j.short) == 0, Why: "a second opinion that needs no numbers", weight: byClock,
	}, j.short...)
	out = append(out, j.intervalCriterion())
	late := "any"
	if p.MaxLate >= 0 {
		late = fmt.Sprint(p.MaxLate)
	}
	add(Criterion{
		Name: fmt.Sprintf("noops over %d ms late", p.LateMS), Limit: late, Actual: fmt.Sprint(v.Noops.Late),
		Pass: p.MaxLate < 0 || v.Noops.Late <= uint64(p.MaxLate), Invalid: j.stoodStill(),
		Why: "a message that came, but not in time", weight: doubtful(j.stoodStill(), byClock),
	}, j.sentences("late")...)
	return out
}

// countCriteria compares our counts with two others: the server's ledger, and the script's own checks.
func (j *judge) countCriteria() (out []Judged) {
	if j.server != nil {
		limit, actual := "agrees", first(j.unexplained, "agrees")
		if j.v.Server.Confirms {
			limit = "agrees, but for faults found"
			actual = "differs on " + counted(len(j.disagree), "stream", "streams") + ", where faults were found"
		}
		out = append(out, Judged{Criterion{
			Name: "the server's own count", Limit: limit, Actual: actual,
			Pass: len(j.unexplained) == 0,
			Why:  "what it says it sent is what arrived",
		}, j.unexplained})
	}
	var failed []string
	var total int64
	for _, c := range j.m.Checks {
		total += c.Passes + c.Fails
		if c.Fails > 0 {
			failed = append(failed, fmt.Sprintf("the check %q failed %d of %d times", c.Name, c.Fails, c.Passes+c.Fails))
		}
	}
	complete := missingChecks(j.m)
	failed = append(failed, complete...)
	return append(out, Judged{Criterion{
		Name: "checks of the script", Limit: "all pass", Actual: first(failed, fmt.Sprintf("%d of %d", total, total)),
		Pass: len(failed) == 0, Why: "status of connect and disconnect, and the script's own count", weight: byClock,
	}, failed})
}

// missingChecks finds checks that were not made for every connection: a check that was never made
// cannot fail.
func missingChecks(m *shard.Merged) (out []string) {
	for _, c := range m.Checks {
		if made := c.Passes + c.Fails; made != int64(m.Plan.Connections) {
			out = append(out, fmt.Sprintf("the check %q was made %s for %s", c.Name,
				counted(int(made), "time", "times"), counted(m.Plan.Connections, "connection", "connections")))
		}
	}
	if len(m.Checks) == 0 {
		out = append(out, "the script made no check at all")
	}
	return out
}

func (j *judge) addAll(list []Judged) {
	for _, c := range list {
		j.add(c.Criterion, c.Reasons...)
	}
}

func (j *judge) add(c Criterion, reasons ...string) {
	if len(reasons) == 0 {
		reasons = []string{fmt.Sprintf("%s: %s, the limit is %s", c.Name, c.Actual, c.Limit)}
	}
	const most = 10
	if len(reasons) > most {
		reasons = append(reasons[:most:most], fmt.Sprintf("… and %d more of this kind (%s: %s)", len(reasons)-most, c.Name, c.Actual))
	}
	j.v.Criteria, j.sentencesOf = append(j.v.Criteria, c), append(j.sentencesOf, reasons)
}

// sentences are the findings of some kinds.
func (j *judge) sentences(kinds ...string) (out []string) {
	for _, f := range j.v.Findings {
		for _, k := range kinds {
			if f.Kind == k {
				out = append(out, f.Text)
			}
		}
	}
	return out
}

func (j *judge) unheld() []string {
	out := j.sentences("dropped")
	out = append(out, j.unfinished()...)
	c := j.v.Connections
	if len(out) == 0 && c.Refused > 0 {
		out = append(out, fmt.Sprintf("%s refused, so %s not held",
			counted(c.Refused, "connection was", "connections were"), either(c.Refused, "it was", "they were")))
	}
	return out
}

// conclude chooses the outcome of a soak, and says what a pass rests on.
func (j *judge) conclude() {
	j.outcome()
	j.untested()
	if len(j.v.Reasons) == 0 {
		j.v.Reasons = []string{fmt.Sprintf("%s held to the end, %s%d of %d noops received",
			counted(j.v.Connections.Completed, "connection", "connections"), j.interruptions(), j.v.Noops.Received, j.v.Noops.Expected)}
		if n := j.v.Evidence.CouldHide; n > 0 {
			j.v.Reasons = append([]string{fmt.Sprintf("no noop is known to be missing; up to %d of %d could have gone missing unnoticed", n, j.v.Noops.Expected)}, j.v.Reasons...)
		}
	}
}

// untested turns a pass without a single noop into invalid.
func (j *judge) untested() {
	if j.v.Verdict == Pass && j.v.Noops.Received == 0 {
		j.v.Verdict = Invalid
		j.v.Reasons = append(j.v.Reasons, "not one noop was received, so nothing was tested")
	}
}

func first(list []string, otherwise string) string {
	switch len(list) {
	case 0:
		return otherwise
	case 1:
		return list[0]
	}
	return fmt.Sprintf("%s (and %d more)", strings.TrimSuffix(list[0], "."), len(list)-1)
}
