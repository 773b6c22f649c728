//go:build !linux

package sseclient

// leavePages does nothing: other systems count differently.
func leavePages() {}
