//go:build !linux

package process

import "os/exec"

// Allowed returns nil, because cores are unknown on this system.
func Allowed() Cores { return nil }

// CoreOf returns "", because cores are unknown on this system.
func CoreOf(int) string { return "" }

// startOn starts a command on any core, because this system cannot restrict a process to cores.
func startOn(cmd *exec.Cmd, _ Cores) error { return cmd.Start() }
