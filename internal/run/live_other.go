//go:build !unix

package run

func canReadKeys() bool { return false }

func onEnter(func()) {}
