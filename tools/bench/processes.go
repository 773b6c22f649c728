package main

import (
	"os"

	"github.com/prometheus/procfs"
)

// What /proc says of a process: bytes, and seconds of user and system time.
func rssOf(p procfs.Proc) (float64, error) {
	s, err := p.NewStatus()
	return float64(s.VmRSS), err
}

// peakOf is the largest RSS that the process ever had.
func peakOf(p procfs.Proc) (float64, error) {
	s, err := p.NewStatus()
	return float64(s.VmHWM), err
}

// pssOf is the RSS with each shared page divided among those who share it.
func pssOf(p procfs.Proc) (float64, error) {
	s, err := p.ProcSMapsRollup()
	return float64(s.Pss), err
}

func cpuOf(p procfs.Proc) (float64, error) {
	s, err := p.Stat()
	return s.CPUTime(), err
}

// sum adds up a value over processes.
func sum(pids []int, value func(procfs.Proc) (float64, error)) (all float64) {
	for _, pid := range pids {
		all += must(value(must(procfs.NewProc(pid))))
	}
	return all
}

// children are the processes that a process started; with a name those that run a program of it.
func children(pid int, name string) (out []int) {
	for _, p := range must(procfs.AllProcs()) {
		if s, err := p.Stat(); err == nil && s.PPID == pid && (name == "" || s.Comm == name) { // others end meanwhile
			out = append(out, p.PID)
		}
	}
	return out
}

// ours are our own children that run a program of this name.
func ours(name string) []int { return children(os.Getpid(), name) }
