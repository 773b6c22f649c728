//go:build !linux

package sseclient

// sender is nobody's where there is no poller: a connection is written to as it is.
type sender struct{}

func (*sender) Write([]byte) (int, error) { return 0, errNotReady }

func (*sender) flush() error { return nil }

func (*sender) close(hangUp func()) { hangUp() }

func (c *h2Conn) poll() bool { return false }
