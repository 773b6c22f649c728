//go:build unix

package http1

import "syscall"

// number is the number by which this system says the error.
func number(e syscall.Errno) syscall.Errno { return e }
