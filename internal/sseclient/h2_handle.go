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

// handle processes a frame other than DATA. Its error ends the connection.
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
		return protocolError(http2.ErrCodeProtocol, "PUSH_PROMISE, which this client does not accept")
	case *http2.WindowUpdateFrame:
		return c.enlargeWindow(id, int64(f.Increment))
	case *http2.RSTStreamFrame:
		if !c.isKnown(id) {
			return protocolError(http2.ErrCodeProtocol, "RST_STREAM of stream %d, which this client has not opened", id)
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

func (c *h2Conn) headers(f *http2.MetaHeadersFrame, buf []byte, b *eventstream.Block) error {
	c.mu.Lock()
	if !c.isKnown(f.StreamID) {
		c.mu.Unlock()
		return protocolError(http2.ErrCodeProtocol, "HEADERS of stream %d, which this client has not opened", f.StreamID)
	}
	st := c.streams.get(f.StreamID)
	if st == nil { // this client has closed the stream
		c.mu.Unlock()
		return nil
	}
	if violation := st.head(f); violation != nil {
		st.refuse(violation)
	} else if f.StreamEnded() {
		st.end(io.EOF)
	}
	c.mu.Unlock()
	st.turn(buf, b)
	return nil
}

// head processes a header list, and returns an error if it violates HTTP/2. The caller holds mu.
func (st *h2Stream) head(f *http2.MetaHeadersFrame) *h2Error {
	status, err := strconv.Atoi(f.PseudoValue("status"))
	switch {
	case f.Truncated:
		return protocolError(http2.ErrCodeEnhanceYourCalm, "%w", errHeaderTooLong)
	case st.hasHead && !f.StreamEnded():
		return protocolError(http2.ErrCodeProtocol, "a second response header, which is not a trailer")
	case st.hasHead:
		return nil
	case err != nil || status < 100 || status > 999:
		return protocolError(http2.ErrCodeProtocol, "invalid status %q in a response header", f.PseudoValue("status"))
	case status < 200 && f.StreamEnded():
		return protocolError(http2.ErrCodeProtocol, "the stream ended with the interim response %d", status)
	case status < 200:
		if st.pipe.interim++; st.pipe.interim >= http1.MaxInterim {
			return protocolError(http2.ErrCodeEnhanceYourCalm, "%w", http1.ErrInterim)
		}
		return nil
	}
	header := make(http.Header, len(f.RegularFields()))
	for _, field := range f.RegularFields() {
		header.Add(field.Name, field.Value)
	}
	st.hasHead = true
	st.pipe.head = &Response{Status: status, Proto: "HTTP/2.0", Header: header, At: time.Now()}
	st.pipe.wake()
	return nil
}

// settings applies and acknowledges the settings of the server. The caller holds mu.
func (c *h2Conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return protocolError(http2.ErrCodeProtocol, "SETTINGS: invalid value %v", s)
		}
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.maxConcurrent = min(s.Val, h2Unlimited)
		case http2.SettingMaxFrameSize:
			c.maxFrame = s.Val
		case http2.SettingHeaderTableSize:
			c.encoder.SetMaxDynamicTableSize(min(s.Val, h2Table))
		case http2.SettingInitialWindowSize:
			increase := int64(s.Val) - c.initialWindow
			c.initialWindow = int64(s.Val)
			for _, st := range c.streams {
				if st.pipe == nil {
					continue
				}
				if st.pipe.window += increase; st.pipe.window > math.MaxInt32 {
					return protocolError(http2.ErrCodeFlowControl, "SETTINGS: %v exceeds the maximum window", s)
				}
				st.pipe.wake()
			}
		}
		return nil
	})
	if err != nil {
		return err // an h2Error
	}
	_ = c.framer.WriteSettingsAck()
	if !c.hasSettings {
		c.hasSettings = true
		close(c.ready)
	}
	return nil
}

// enlargeWindow enlarges the send window of a stream, or of the connection if id is 0. The caller holds mu.
func (c *h2Conn) enlargeWindow(id uint32, increase int64) error {
	if id == 0 {
		if c.window += increase; c.window > math.MaxInt32 {
			return protocolError(http2.ErrCodeFlowControl, "WINDOW_UPDATE exceeds the maximum window of the connection")
		}
		for _, st := range c.streams {
			if st.pipe != nil {
				st.pipe.wake()
			}
		}
		return nil
	}
	if !c.isKnown(id) {
		return protocolError(http2.ErrCodeProtocol, "WINDOW_UPDATE of stream %d, which this client has not opened", id)
	}
	if st := c.streams.get(id); st != nil && st.pipe != nil {
		if st.pipe.window += increase; st.pipe.window > math.MaxInt32 {
			st.refuse(protocolError(http2.ErrCodeFlowControl, "WINDOW_UPDATE exceeds the maximum window of the stream"))
			return nil
		}
		st.pipe.wake()
	}
	return nil
}

// goAway refuses new streams, and ends the streams that the server will not process. The caller holds mu.
func (c *h2Conn) goAway(f *http2.GoAwayFrame) {
	c.lastID = min(c.lastID, f.LastStreamID)
	text := fmt.Sprintf("GOAWAY %v", f.ErrCode)
	if debug := f.DebugData(); len(debug) > 0 {
		text += fmt.Sprintf(" %.100q", debug)
	}
	if f.ErrCode == http2.ErrCodeNo {
		c.goAwayErr = fmt.Errorf("%s: %w", text, errTruncatedStream)
	} else {
		c.goAwayErr = fmt.Errorf("%s: %w", text, errResetByPeer)
	}
	for _, st := range slices.Clone(c.streams) { // end removes streams from c.streams
		if st.id > c.lastID {
			st.end(fmt.Errorf("%s: %w", text, errUnprocessed))
			c.nudge(st)
		}
	}
	c.retireIfUnused()
}
