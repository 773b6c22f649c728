//go:build !linux

package process

import "os/exec"

// Allowed is not known here, and no process is kept to cores.
func Allowed() Cores { return nil }

// CoreOf is not known here.
func CoreOf(int) string { return "" }

func startOn(cmd *exec.Cmd, _ Cores) error { return cmd.Start() }
