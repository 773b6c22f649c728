//go:build !unix

package run

// canReadKeys returns false, because soak reads no keys on this system.
func canReadKeys() bool { return false }

// onEnter does nothing, because canReadKeys returns false.
func onEnter(func()) {}
