package services

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// A Usage is the CPU and memory usage of all processes of a service.
type Usage struct {
	// Memory is the proportional set size in bytes. A page that these processes share counts only once.
	Memory uint64
	// CPU is the user and system time of the running processes, in seconds.
	CPU float64
}

// Usage returns the current usage of the service, which must be running.
func (r *Instance) Usage() (Usage, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return Usage{}, fmt.Errorf("find the processes of %s: %w", r.Name, err)
	}
	var pids []int
	for _, p := range all {
		// The workers are in the process group of the service.
		if stat, err := p.Stat(); err == nil && stat.PGRP == r.process.PID() && stat.State != "Z" {
			pids = append(pids, p.PID)
		}
	}
	return UsageOf(r.Name, pids)
}

// UsageOf returns the total usage of the processes of a service. Errors contain the name of the service.
func UsageOf(name string, pids []int) (out Usage, err error) {
	if len(pids) == 0 {
		return out, fmt.Errorf("read the usage of %s: the service is not running", name)
	}
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return out, fmt.Errorf("read the usage of %s: %w", name, err)
		}
		memory, err := p.ProcSMapsRollup()
		if err != nil {
			return out, fmt.Errorf("read the memory of %s: %w", name, err)
		}
		stat, err := p.Stat()
		if err != nil {
			return out, fmt.Errorf("read the CPU time of %s: %w", name, err)
		}
		out.Memory += memory.Pss
		out.CPU += stat.CPUTime()
	}
	return out, nil
}
