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

// PIDs returns the processes of the service, or none while it is down.
func (r *Instance) PIDs() ([]int, error) {
	if r.process == nil {
		return nil, nil
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("find the processes of %s: %w", r.Name, err)
	}
	var out []int
	for _, p := range all {
		// The workers are in the process group of the service.
		if stat, err := p.Stat(); err == nil && stat.PGRP == r.process.PID() && stat.State != "Z" {
			out = append(out, p.PID)
		}
	}
	return out, nil
}

// Usage returns the current usage of the service.
func (r *Instance) Usage() (Usage, error) {
	pids, err := r.PIDs()
	if err != nil {
		return Usage{}, err
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
