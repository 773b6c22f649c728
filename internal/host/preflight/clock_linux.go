package preflight

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// clock asks the kernel whether somebody keeps its clock (adjtimex(2)). Runs on several machines compare times; a run on one
// does not.
func clock() Finding {
	f := Finding{About: "clock", Name: "clock", State: OK}
	var t unix.Timex
	switch _, err := unix.Adjtimex(&t); {
	case err != nil:
		f.State, f.Found = Absent, fmt.Sprintf("the kernel does not say whether its clock is kept: %v", err)
	case t.Status&unix.STA_UNSYNC != 0:
		f.State, f.Found = Warning, "the clock of this machine is not synchronised: runs on several machines compare times"
		f.Remedy = "timedatectl set-ntp true, or apt-get install chrony"
	default:
		f.Found = fmt.Sprintf("kept, off by at most %s", (time.Duration(t.Maxerror) * time.Microsecond).Round(time.Microsecond))
	}
	return f
}
