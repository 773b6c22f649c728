package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// AllowedCPUs returns the CPUs that this process may run on, or nil if they are unknown. A cpuset may restrict them.
func AllowedCPUs() (out CPUList) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for n, remaining := 0, set.Count(); remaining > 0; n++ {
		if set.IsSet(n) {
			out = append(out, n)
			remaining--
		}
	}
	return out
}

// CoreOf returns a name that all threads of a core share, or the number of the thread if its core is unknown.
func CoreOf(thread int) string {
	siblings, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", thread))
	if err != nil {
		return fmt.Sprint(thread)
	}
	return string(siblings)
}

// startOn starts a command on the given CPUs, or on all allowed ones if cpus is empty. A process inherits its
// allowed CPUs from the thread that starts it.
func startOn(cmd *exec.Cmd, cpus CPUList) error {
	if len(cpus) == 0 {
		return cmd.Start() //nolint:wrapcheck // the caller names the command
	}
	runtime.LockOSThread()
	var before, wanted unix.CPUSet
	for _, n := range cpus {
		wanted.Set(n)
	}
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = unix.SchedSetaffinity(0, &wanted)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("set the CPUs %s: %w", cpus, err)
	}
	err = cmd.Start()
	if unix.SchedSetaffinity(0, &before) == nil {
		runtime.UnlockOSThread() // a thread that stays locked ends with its goroutine
	}
	return err //nolint:wrapcheck // the caller names the command
}
