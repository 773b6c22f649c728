package preflight

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// clock returns a finding about the synchronization of the kernel's clock (adjtimex(2)).
func clock() Finding {
	f := Finding{Group: "clock", Name: "clock", State: OK}
	var t unix.Timex
	switch _, err := unix.Adjtimex(&t); {
	case err != nil:
		f.State, f.Result = Absent, fmt.Sprintf("unknown, so not checked (adjtimex: %v)", err)
	case t.Status&unix.STA_UNSYNC != 0:
		f.State, f.Result = Warning, "not synchronized, but runs on several machines compare times"
		f.Remedy = "timedatectl set-ntp true, or apt-get install chrony"
	default:
		f.Result = fmt.Sprintf("synchronized, error at most %s", (time.Duration(t.Maxerror) * time.Microsecond).Round(time.Microsecond))
	}
	return f
}
