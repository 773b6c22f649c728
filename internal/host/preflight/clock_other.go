//go:build !linux

package preflight

// clock returns the finding that the state of the clock is unknown on this system.
func clock() Finding {
	return Finding{Group: "clock", Name: "clock", State: Absent, Result: "unknown on this system; runs on several machines compare times"}
}
