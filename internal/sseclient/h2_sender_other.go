//go:build !linux

package sseclient

// A sender is not used without a poller: data is written to the connection directly.
type sender struct{}

func (*sender) Write([]byte) (int, error) { return 0, errNotReady }

func (*sender) flush() error { return nil }

func (*sender) close(hangUp func()) { hangUp() }

func (c *h2Conn) poll() bool { return false }
