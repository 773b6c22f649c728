//go:build !linux

package process

import "os/exec"

// Allowed is not known here, and no process is kept to cores.
func Allowed() Cores { return nil }

func startOn(cmd *exec.Cmd, _ Cores) error { return cmd.Start() }
