//go:build !linux

package process

import "os/exec"

// AllowedCPUs returns nil, because the CPUs are unknown on this system.
func AllowedCPUs() CPUList { return nil }

// CoreOf returns "", because cores are unknown on this system.
func CoreOf(int) string { return "" }

// startOn ignores the CPUs, because soak restricts processes to CPUs only on Linux.
func startOn(cmd *exec.Cmd, _ CPUList) error { return cmd.Start() }
