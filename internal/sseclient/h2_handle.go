package sseclient

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/http2"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// handle does what a frame asks for that is no DATA. Its error ends the connection.
func (c *h2Conn) handle(f http2.Frame, buf []byte, b *eventstream.Block) error {
	if headers, ok := f.(*http2.MetaHeadersFrame); ok {
		return c.headers(headers, buf, b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = c.framer.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		c.goAway(f)
	case *http2.PushPromiseFrame:
		return broke(http2.ErrCodeProtocol, "PUSH_PROMISE, which this client does not take")
	case *http2.WindowUpdateFrame:
		return c.widen(id, int64(f.Increment))
	case *http2.RSTStreamFrame:
		if !c.isKnown(id) {
			return broke(http2.ErrCodeProtocol, "RST_STREAM of stream %d, which this client has not begun", id)
		}
		if st := c.streams.get(id); st != nil {
			err := fmt.Errorf("RST_STREAM %v: %w", f.ErrCode, errResetByPeer)
			if f.ErrCode == http2.ErrCodeRefusedStream {
				err = fmt.Errorf("RST_STREAM %v: %w", f.ErrCode, errUnprocessed)
			}
			st.end(err)
			c.nudge(st)
		}
	}
	return nil // PRIORITY and unknown frames have no effect
}

// headers takes the head of a response, or its trailer.
func (c *h2Conn) headers(f *http2.MetaHeadersFrame, buf []byte, b *eventstream.Block) error {
	c.mu.Lock()
	if !c.isKnown(f.StreamID) {
		c.mu.Unlock()
		return broke(http2.ErrCodeProtocol, "HEADERS of stream %d, which this client has not begun", f.StreamID)
	}
	st := c.streams.get(f.StreamID)
	if st == nil { // it was closed here
		c.mu.Unlock()
		return nil
	}
	if wrong := st.head(f); wrong != nil {
		st.refuse(wrong)
	} else if f.StreamEnded() {
		st.end(io.EOF)
	}
	c.mu.Unlock()
	st.turn(buf, b)
	return nil
}

// head takes a header list. The caller holds mu.
func (st *h2Stream) head(f *http2.MetaHeadersFrame) *h2Error {
	status, err := strconv.Atoi(f.PseudoValue("status"))
	switch {
	case f.Truncated:
		return broke(http2.ErrCodeEnhanceYourCalm, "%w", errHeaderTooLong)
	case st.answered && !f.StreamEnded():
		return broke(http2.ErrCodeProtocol, "a second response header, which is no trailer")
	case st.answered:
		return nil
	case err != nil || status < 100 || status > 999:
		return broke(http2.ErrCodeProtocol, "a response header with the status %q", f.PseudoValue("status"))
	case status < 200 && f.StreamEnded():
		return broke(http2.ErrCodeProtocol, "the stream ended with the interim response %d", status)
	case status < 200:
		if st.pipe.interim++; st.pipe.interim >= http1.MaxInterim {
			return broke(http2.ErrCodeEnhanceYourCalm, "%w", http1.ErrInterim)
		}
		return nil
	}
	header := make(http.Header, len(f.RegularFields()))
	for _, field := range f.RegularFields() {
		header.Add(field.Name, field.Value)
	}
	st.answered = true
	st.pipe.head = &h2Head{status: status, header: header, at: time.Now()}
	st.pipe.wake()
	return nil
}

// settings takes the server's settings, and says so. The caller holds mu.
func (c *h2Conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return broke(http2.ErrCodeProtocol, "SETTINGS: %v", s)
		}
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.most = min(s.Val, h2Unlimited)
		case http2.SettingMaxFrameSize:
			c.frame = s.Val
		case http2.SettingHeaderTableSize:
			c.fields.SetMaxDynamicTableSize(min(s.Val, h2Table))
		case http2.SettingInitialWindowSize:
			by := int64(s.Val) - c.initial
			c.initial = int64(s.Val)
			for _, st := range c.streams {
				if st.pipe == nil {
					continue
				}
				if st.pipe.window += by; st.pipe.window > math.MaxInt32 {
					return broke(http2.ErrCodeFlowControl, "SETTINGS: %v makes a window larger than there may be", s)
				}
				st.pipe.wake()
			}
		}
		return nil
	})
	if err != nil {
		return err //nolint:wrapcheck // it is one of ours
	}
	_ = c.framer.WriteSettingsAck()
	if !c.hasSettings {
		c.hasSettings = true
		close(c.ready)
	}
	return nil
}

// widen lets more be sent on a stream, or for 0 on the connection. The caller holds mu.
func (c *h2Conn) widen(id uint32, by int64) error {
	if id == 0 {
		if c.window += by; c.window > math.MaxInt32 {
			return broke(http2.ErrCodeFlowControl, "WINDOW_UPDATE makes the connection's window larger than there may be")
		}
		for _, st := range c.streams {
			if st.pipe != nil {
				st.pipe.wake()
			}
		}
		return nil
	}
	if !c.isKnown(id) {
		return broke(http2.ErrCodeProtocol, "WINDOW_UPDATE of stream %d, which this client has not begun", id)
	}
	if st := c.streams.get(id); st != nil && st.pipe != nil {
		if st.pipe.window += by; st.pipe.window > math.MaxInt32 {
			st.refuse(broke(http2.ErrCodeFlowControl, "WINDOW_UPDATE makes the stream's window larger than there may be"))
			return nil
		}
		st.pipe.wake()
	}
	return nil
}

// goAway notes that the server takes no new streams, and ends those that it never looked at. The caller holds mu.
func (c *h2Conn) goAway(f *http2.GoAwayFrame) {
	c.last = min(c.last, f.LastStreamID)
	text := fmt.Sprintf("GOAWAY %v", f.ErrCode)
	if debug := f.DebugData(); len(debug) > 0 {
		text += fmt.Sprintf(" %.100q", debug)
	}
	if f.ErrCode == http2.ErrCodeNo {
		c.goAwayErr = fmt.Errorf("%s: %w", text, errHalfStream)
	} else {
		c.goAwayErr = fmt.Errorf("%s: %w", text, errResetByPeer)
	}
	for _, st := range slices.Clone(c.streams) { // some leave
		if st.id > c.last {
			st.end(fmt.Errorf("%s: %w", text, errUnprocessed))
			c.nudge(st)
		}
	}
	c.left()
}
