package sseclient

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A poller reads the connections of streams in one goroutine, with epoll. In each round it gives a turn to every
// connection with an event or a nudge, which is a request for a turn. The goroutine exists only while the poller has
// connections. A goroutine per stream would use a stack of 4 KB (8 KB with TLS), a read buffer, and state in Go's
// network poller. It would also read twice per event; the second read returns no bytes.
type poller struct {
	mu        sync.Mutex
	epoll     int           // valid while isRunning is set
	file      *os.File      // of epoll, registered with Go's network poller
	wake      int           // an eventfd
	conns     []*polledConn // by descriptor, nil if not polled; a map of thousands would cost three cache lines per lookup
	streams   int           // number of conns that are not nil
	nudges    []*polledConn // connections that requested a turn
	isRunning bool
}

var processPoller poller

// A polledConn is a connection that is read by the poller. After start, only the poller closes its descriptor. A
// descriptor is thus never closed during a read, nor confused with a later connection that gets the same number.
type polledConn struct {
	source    turner
	tls       *tls.Conn  // nil for a plain connection
	received  *int64     // k6's data_received
	sent      *int64     // k6's data_sent
	idle      *idleConns // receives the connection after its stream; nil: the connection is closed
	fd        int32      // -1 after the close, or if another owner has it
	budget    int32      // bytes that may still be read in this turn, if isLimited is set
	reads     int16      // number of reads in this turn
	isStarted bool       // the connection has been registered with the poller; guarded by the poller's mu
	isDrained bool       // the last read emptied the socket
	hasEnded  bool       // the peer has ended the connection, so a short read does not mean an empty socket
	isLimited bool       // the stream is slow: only budget bytes may be read
	inRound   bool       // the connection already has a turn in this round
}

const (
	eventsPerWait = 256
	pollBuffer    = 32 << 10 // shared by all streams
	// readsPerTurn limits how long a busy stream delays the others.
	readsPerTurn = 16
	// incoming is the set of events of each connection. They are edge-triggered: a turn reads everything that has
	// arrived, or requests another turn. With level-triggered events epoll would check each connection twice.
	incoming = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
)

// poll moves a connection from Go's network poller to ours. It returns nil if a goroutine must read the connection.
func poll(conn net.Conn, s turner) *polledConn {
	secure, socket := (*tls.Conn)(nil), tlsSocketOf(conn)
	if socket != nil {
		secure, conn = conn.(*tls.Conn), socket.Conn
	}
	counted, ok := conn.(*Conn)
	if !ok {
		return nil
	}
	c := pollTCP(counted, s)
	if c == nil || secure == nil {
		return c
	}
	releaseHandshake(secure)
	c.tls, socket.Conn = secure, ciphertext{conn: c}
	return c
}

// pollTCP is poll for a plain connection.
func pollTCP(counted *Conn, s turner) *polledConn {
	tcp, ok := counted.Conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	fd, err := duplicate(tcp)
	if err != nil {
		return nil // no descriptor is free, or tcp is closed and its next read returns the error
	}
	_ = tcp.Close()
	return &polledConn{source: s, fd: int32(fd), received: counted.Received, sent: counted.Sent} // #nosec G115 -- a descriptor
}

// duplicate returns a second descriptor for the connection. Go's network poller does not use this descriptor.
func duplicate(conn syscall.Conn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	controlErr := raw.Control(func(p uintptr) { fd, err = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0) })
	if controlErr != nil {
		return -1, controlErr
	}
	return fd, err
}

// start registers the connection with the poller, and requests a turn for bytes that arrived with the response header.
func (c *polledConn) start() error {
	p := &processPoller
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isRunning {
		if err := p.open(); err != nil {
			return err
		}
	}
	if err := c.control(unix.EPOLL_CTL_ADD, incoming); err != nil {
		if !p.isRunning {
			p.close()
		}
		return err
	}
	for int(c.fd) >= len(p.conns) {
		p.conns = append(p.conns, nil)
	}
	p.conns[c.fd], c.isStarted = c, true
	p.streams++
	if !p.isRunning {
		p.isRunning = true
		go p.run(p.file, p.wake)
	}
	p.nudge(c)
	return nil
}

// control calls epoll_ctl for the connection. Regardless of events, the kernel reports a reset of the connection.
func (c *polledConn) control(op int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: c.fd}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(processPoller.epoll, op, int(c.fd), &ev))
}

func (p *poller) open() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(p.epoll)
		return os.NewSyscallError("eventfd", err)
	}
	_ = unix.SetNonblock(p.epoll, true) // Go's network poller accepts only nonblocking files
	p.file = os.NewFile(uintptr(p.epoll), "epoll")
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.wake)} // #nosec G115 -- a descriptor
	if err = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, p.wake, &ev); err != nil {
		p.close()
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

func (p *poller) close() { _, _ = p.file.Close(), unix.Close(p.wake) }

type scratch struct {
	buf   [pollBuffer]byte
	block eventstream.Block
}

// run waits in Go's network poller. A goroutine that blocks in epoll_wait would keep its core (P) for up to 10 ms.
// Meanwhile Go's monitor thread would wake up repeatedly to look for other goroutines that need the core.
func (p *poller) run(file *os.File, wake int) {
	epoll, _ := file.SyscallConn() // an error only if file is nil
	events := make([]unix.EpollEvent, eventsPerWait)
	var ready []*polledConn
	var shared scratch
	// If rounds returns false, the goroutine waits. The network poller records events from the end of one wait to the
	// next, so rounds need not look for events before the wait. But rounds looks again if the list of events was full,
	// because the rest causes no new event. It also looks again after a turn with several reads, because a wait lasts
	// for tens of milliseconds if all cores are busy. Meanwhile, the buffer of a fast stream would fill up.
	rounds := func(fd uintptr) (stopped bool) {
		for {
			n := eventsNow(fd, events)
			ready = p.gather(ready[:0], events[:n], wake)
			isBusy := n == len(events)
			for i, c := range ready {
				ready[i] = nil
				c.turn(&shared)
				isBusy = isBusy || c.reads > 1
			}
			if !isBusy {
				return p.stopIfUnused()
			}
		}
	}
	if err := epoll.Read(rounds); err != nil {
		panic(err) // Go's network poller does not support the file
	}
	_, _ = file.Close(), unix.Close(wake)
}

// gather returns the connections with events or nudges, each once per round. A stream whose socket is always full would
// otherwise have two turns per round: one for its event, and one for its previous nudge.
func (p *poller) gather(ready []*polledConn, events []unix.EpollEvent, wake int) []*polledConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	add := func(c *polledConn) {
		if !c.inRound {
			c.inRound = true
			ready = append(ready, c)
		}
	}
	for _, ev := range events {
		if int(ev.Fd) == wake {
			var count [8]byte
			_, _ = unix.Read(wake, count[:])
			for _, c := range p.nudges {
				add(c)
			}
			clear(p.nudges)
			p.nudges = p.nudges[:0]
			continue
		}
		if int(ev.Fd) >= len(p.conns) {
			continue
		}
		if c := p.conns[ev.Fd]; c != nil {
			c.hasEnded = c.hasEnded || ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
			add(c)
		}
	}
	return ready
}

// stopIfUnused stops the poller if it has no connection. A later start opens another epoll descriptor.
func (p *poller) stopIfUnused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams == 0 {
		p.conns, p.nudges, p.isRunning = nil, nil, false
	}
	return !p.isRunning
}

// nudge gives a connection a turn in the next round. The caller holds mu.
func (p *poller) nudge(c *polledConn) {
	p.nudges = append(p.nudges, c)
	if len(p.nudges) == 1 {
		_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// forget removes a connection. The caller holds mu.
func (p *poller) forget(c *polledConn) {
	if int(c.fd) < len(p.conns) && p.conns[c.fd] == c {
		p.conns[c.fd] = nil
		p.streams--
	}
}

// turn gives the stream a turn. It does nothing on a closed connection, which may still have a pending nudge.
func (c *polledConn) turn(shared *scratch) {
	if c.inRound = false; c.fd < 0 {
		return
	}
	c.isDrained, c.reads = false, 0
	c.source.turn(shared.buf[:], &shared.block)
	if c.hasUnread() {
		_ = c.Close() // requests another turn, in the next round
	}
}

// Read reads the bytes that have arrived, decrypted if the stream uses TLS. Before it returns errNotReady, it has
// returned the bytes of all complete TLS records that it has read from the socket.
func (c *polledConn) Read(p []byte) (int, error) {
	if c.tls == nil {
		return c.readSocket(p)
	}
	return c.tls.Read(p) // not wrapped, because callers compare errNotReady and io.EOF
}

// readSocket reads from the socket. A short read has emptied the socket, so readSocket does not read again in this
// turn. It also returns errNotReady after readsPerTurn reads, and when the budget of a slow stream is used up.
func (c *polledConn) readSocket(p []byte) (int, error) {
	if c.isDrained || c.reads == readsPerTurn {
		return 0, errNotReady
	}
	if c.isLimited {
		if p = p[:min(len(p), int(c.budget))]; len(p) == 0 {
			return 0, errNotReady
		}
	}
	c.reads++
	for {
		n, err := readNow(c.fd, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			c.isDrained = true
			return 0, errNotReady
		case err != 0:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			c.isDrained = n < len(p) && !c.hasEnded
			c.budget -= int32(n) // #nosec G115 -- at most one read
			atomic.AddInt64(c.received, int64(n))
			return n, nil
		}
	}
}

// eventsNow stores the pending events of an epoll descriptor, and returns their number. Like readNow, it does not
// notify Go's scheduler. A notification would wake up Go's monitor thread, which then runs for at least a millisecond.
func eventsNow(epoll uintptr, events []unix.EpollEvent) int {
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0) // #nosec G103 G115 -- the same call as in package unix
	if err != 0 {
		panic(os.NewSyscallError("epoll_pwait", err)) // only invalid arguments cause this error
	}
	return int(n)
}

// readNow reads from a nonblocking descriptor. It does not notify Go's scheduler, which would cost as much CPU time as
// the read.
func readNow(fd int32, p []byte) (int, unix.Errno) {
	n, _, err := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) // #nosec G103 G115 -- the same call as in package unix
	return int(n), err
}

// hasUnread reports whether the limit of reads ended the turn, so that the socket may have unread bytes. The stream
// then needs another turn.
func (c *polledConn) hasUnread() bool { return c.reads == readsPerTurn && !c.isDrained }

func (c *polledConn) interrupt() { _ = c.Close() }

// resume does nothing, because an interruption of a polled connection sets no deadline.
func (c *polledConn) resume(time.Time) {}

// Close requests a turn, in which the stream notices that it was stopped or that its server is silent. Only the
// poller closes the descriptor. Any goroutine may call Close.
func (c *polledConn) Close() error {
	p := &processPoller
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.isStarted && p.isRunning {
		p.nudge(c)
	}
	return nil
}

func (c *polledConn) hangUp() {
	if c.fd < 0 {
		return
	}
	p := &processPoller
	p.mu.Lock()
	p.forget(c) // before another connection can get the same descriptor
	p.mu.Unlock()
	_ = unix.Close(int(c.fd))
	c.fd = -1
}
