package sse

import (
	"fmt"
	"time"

	"github.com/grafana/sobek"
)

// SetTimeout runs fn once after ms milliseconds, between events: the event loop, and
// with it the global setTimeout, stands still during open.
func (c *Client) SetTimeout(fn sobek.Callable, ms float64) error {
	d, err := timerDelay("setTimeout", fn, ms)
	if err == nil {
		time.AfterFunc(d, func() { c.schedule(fn) })
	}
	return err
}

// SetInterval runs fn every ms milliseconds until open returns.
func (c *Client) SetInterval(fn sobek.Callable, ms float64) error {
	d, err := timerDelay("setInterval", fn, ms)
	if err != nil {
		return err
	}
	go func() {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.schedule(fn)
			case <-c.done:
				return
			}
		}
	}()
	return nil
}

func timerDelay(name string, fn sobek.Callable, ms float64) (time.Duration, error) {
	if fn == nil {
		return 0, fmt.Errorf("%s requires a function", name)
	}
	if !(ms > 0) {
		return 0, fmt.Errorf("%s requires a delay above 0 ms, received %v", name, ms)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func (c *Client) schedule(fn sobek.Callable) {
	select {
	case c.scheduled <- fn:
	case <-c.done:
	}
}
