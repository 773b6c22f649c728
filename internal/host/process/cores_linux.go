package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed are the cores that this process may run on: those of its cpuset, not all that the machine has.
func Allowed() (out Cores) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for n, left := 0, set.Count(); left > 0; n++ {
		if set.IsSet(n) {
			out = append(out, n)
			left--
		}
	}
	return out
}

// CoreOf names the core that a thread of this machine is of, alike for all of its threads.
func CoreOf(thread int) string {
	siblings, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", thread))
	if err != nil {
		return fmt.Sprint(thread)
	}
	return string(siblings)
}

// startOn starts a command on those cores: a process inherits them from the thread that makes it.
func startOn(cmd *exec.Cmd, cores Cores) error {
	if len(cores) == 0 {
		return cmd.Start() //nolint:wrapcheck // the caller says of what
	}
	runtime.LockOSThread()
	var before, wanted unix.CPUSet
	for _, n := range cores {
		wanted.Set(n)
	}
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = unix.SchedSetaffinity(0, &wanted)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("keep it on the cores %s: %w", cores, err)
	}
	err = cmd.Start()
	if unix.SchedSetaffinity(0, &before) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine, and nothing else runs on it
	}
	return err //nolint:wrapcheck // the caller says of what
}
