package verdict

import "time"

// A Failure is a process of the target that crashed, or was restarted, during the run.
type Failure struct {
	Unix float64 `json:"unix_s,omitempty"` // 0: not known
	Text string  `json:"text"`
}

// FailureAt returns a Failure. A zero time means that the time is not known.
func FailureAt(at time.Time, text string) Failure {
	f := Failure{Text: text}
	if !at.IsZero() {
		f.Unix = unix(at)
	}
	return f
}

// texts returns the texts of failures.
func texts(all []Failure) (out []string) {
	for _, f := range all {
		out = append(out, f.Text)
	}
	return out
}
