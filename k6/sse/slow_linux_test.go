package sse

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// filler is an event of 64 KB.
var filler = "data: " + strings.Repeat("x", 64<<10) + "\n\n"

// fill writes until nothing goes any more for some time, or for as long as the test has patience. It returns how many bytes went.
func (p *peer) fill() (n int) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		_ = p.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		m, err := io.WriteString(p.Conn, filler[n%len(filler):])
		n += m
		if err != nil {
			break
		}
	}
	_ = p.SetWriteDeadline(time.Time{})
	return n
}

// The server's buffer fills up while a client does not read. Once it reads on, it gets all of it.
func TestAStreamThatIsNotRead(t *testing.T) {
	t.Parallel()
	v, full := newVU(t), make(chan int, 1)
	v.set("url", serve(t, func(p *peer) {
		p.say(streamHead + "data: go\n\n")
		n := p.fill()
		full <- n
		p.say(filler[n%len(filler):] + "data: last\n\n")
		p.hold()
	}))
	v.set("wait", func() int { return <-full })
	require.Equal(t, "false true true true", v.log(`
		const s = new EventSource(url, { reconnect: false, idleTimeout: 100 });
		log.push(s.slow(0));
		let bytes = 0, wanted = 0;
		s.onmessage = (e) => {
			bytes += e.data.length + 8;
			if (e.data === 'go') {
				bytes = 0;
				log.push(s.slow(0));
				setTimeout(() => { wanted = wait(); s.idleTimeout = 5000; log.push(s.slow(Infinity)); }, 500);
			} else if (e.data === 'last') {
				log.push(bytes > wanted && wanted > 100000);
				s.close();
			}
		};
		s.onerror = (e) => log.push(e.reason);
	`))
}

// A thin line brings what fits through it, and no more.
func TestAStreamThatIsReadSlowly(t *testing.T) {
	t.Parallel()
	v, slow := newVU(t), make(chan struct{})
	v.set("url", serve(t, func(p *peer) {
		p.say(streamHead)
		<-slow
		p.say(strings.Repeat("data: 0123456789\n\n", 2000)) // 18 bytes each
		p.hold()
	}))
	v.set("isSlow", func() { close(slow) })
	v.set("now", func() float64 { return float64(time.Now().UnixMicro()) / 1e6 })
	require.Equal(t, "true true true", v.log(`
		const s = new EventSource(url, { reconnect: false });
		let got = 0, began;
		s.onopen = () => { log.push(s.slow(1800)); began = now(); isSlow(); };
		s.onmessage = () => {
			if (++got === 150) {
				const seconds = now() - began;
				log.push(got <= 100 * (seconds + 0.5), s.slow(Infinity)); // a tick is a quarter of a second
			}
			if (got === 2000) s.close();
		};
		s.onerror = (e) => log.push(e.reason);
	`))
}

// A client that does not read notices all the same that it was cut off.
func TestAStreamThatIsNotReadIsCut(t *testing.T) {
	t.Parallel()
	for how, cut := range map[string]func(p *peer){"reset": (*peer).reset, "server": func(p *peer) { _ = p.Close() }} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			slow := make(chan struct{})
			v.set("url", serve(t, func(p *peer) {
				p.say(streamHead + "data: go\n\n")
				<-slow
				p.say("data: unread\n\n")
				cut(p)
			}))
			v.set("isSlow", func() { close(slow) })
			log := v.log(`
				const s = new EventSource(url, { reconnect: false });
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data === 'go') { log.push(s.slow(0), s.drop()); setTimeout(isSlow, 300); }
				};
				s.onerror = (e) => log.push(e.reason, s.slow(0));
			`)
			require.Contains(t, log, "go true false")
			require.Contains(t, log, fmt.Sprintf("%s false", how))
		})
	}
}

func TestSlowAsksForANumber(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", serveText(t, streamHead))
	require.Equal(t, "TypeError TypeError", v.log(`
		const s = new EventSource(url, { reconnect: false });
		for (const rate of [undefined, -1]) { try { s.slow(rate); } catch (e) { log.push(e.name); } }
	`))
}
