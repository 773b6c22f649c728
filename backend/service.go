package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/backend/services"
)

// A service is a running backend: the listeners, the HTTP servers and the scheduler.
type service struct {
	cfg       *Config
	clk       clock
	log       *slog.Logger
	hub       *hub
	plain     *services.Handler // serves plain HTTP requests
	server    *http.Server
	admin     *http.Server // nil without ADMIN_LISTEN
	addr      net.Addr
	adminAddr net.Addr
	stopping  chan struct{} // closed when the drain starts
	failed    chan error    // error of a server that stopped by itself
}

// startService starts a service and returns once it is listening. The service runs until drain or abort is called.
func startService(cfg *Config, log *slog.Logger) (*service, error) {
	tlsConfig, err := loadTLS(cfg)
	if err != nil {
		return nil, err
	}
	s := &service{
		cfg: cfg, clk: newClock(), log: log, plain: services.New(cfg.ServerName),
		stopping: make(chan struct{}), failed: make(chan error, 2),
	}
	if s.hub, err = newHub(cfg, s.clk, log, s.plain); err != nil {
		return nil, err
	}
	s.server, s.addr, err = s.serve(cfg.Listen, cfg.SocketMode, s.routes(), cfg.httpConnections, tlsConfig)
	if err == nil && cfg.AdminListen != "" {
		s.admin, s.adminAddr, err = s.serve(cfg.AdminListen, 0o600, s.adminRoutes(), adminConnections, nil)
	}
	if err != nil {
		if s.server != nil {
			_ = s.server.Close()
		}
		s.hub.stop()
		return nil, err
	}
	log.Info("listening", "addr", s.addr.String(), "noop_interval_s", cfg.NoopInterval.Seconds(),
		"noop_schedule", cfg.NoopSchedule, "max_connections", cfg.MaxConnections, "tls", tlsConfig != nil,
		"version", buildVersion(), "faults", len(cfg.Faults))
	return s, nil
}

const adminConnections = 64

// serve starts a server with a limit on connections other than streams. When the limit is reached, the server disables
// keep-alives until less than half of the limit is used. An error that ends the server is sent to s.failed.
func (s *service) serve(address string, mode os.FileMode, h http.Handler, connections int, tlsConfig *tls.Config) (*http.Server, net.Addr, error) {
	l, err := listen(address, mode)
	if err != nil {
		return nil, nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	server := s.newServer(h)
	var gated net.Listener = newGate(l, connections, func(full bool) { server.SetKeepAlivesEnabled(!full) })
	if tlsConfig != nil {
		gated = tls.NewListener(gated, tlsConfig)
	}
	go func() {
		if err := server.Serve(gated); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
	return server, l.Addr(), nil
}

func (s *service) newServer(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      h,
		Protocols:                    protocols,
		ReadHeaderTimeout:            s.cfg.HeaderTimeout,
		ReadTimeout:                  s.cfg.HeaderTimeout + 5*time.Second,
		WriteTimeout:                 0, // set per response, because slow-headers and the ledger may take a long time
		IdleTimeout:                  s.cfg.IdleTimeout,
		MaxHeaderBytes:               4 << 10, // net/http adds 4 KiB
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// loadTLS reads the certificate, the key and the CA certificates for clients. It returns nil if TLS is not configured.
func loadTLS(cfg *Config) (*tls.Config, error) {
	if cfg.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("load TLS_CERT and TLS_KEY: %w", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if cfg.TLSClientCA == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(cfg.TLSClientCA) // #nosec G703 -- the operator names the file
	if err != nil {
		return nil, fmt.Errorf("load TLS_CLIENT_CA: %w", err)
	}
	conf.ClientCAs = x509.NewCertPool()
	if !conf.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load TLS_CLIENT_CA: %s contains no PEM certificate", cfg.TLSClientCA)
	}
	conf.ClientAuth = tls.RequireAndVerifyClientCert
	return conf, nil
}

// drain stops the service: it refuses new streams, ends open ones, and serves the ledger for DRAIN_TIMEOUT. Then it
// saves the ledger if LEDGER_FILE is set, and closes the listeners. If ctx is canceled, drain does not wait, and
// returns an error.
func (s *service) drain(ctx context.Context) error {
	close(s.stopping)
	s.hub.call(s.hub.drain)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for s.hub.openStreams() > 0 && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	select {
	case <-time.After(s.cfg.DrainTimeout):
	case <-ctx.Done():
	}
	var err error
	if s.cfg.LedgerFile != "" {
		err = s.hub.saveLedger(s.cfg.LedgerFile)
	}
	grace, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, server := range []*http.Server{s.server, s.admin} {
		if server != nil && server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	}
	s.hub.stop()
	return errors.Join(err, ctx.Err())
}

// abort stops the service without waiting for streams. It still saves the ledger if LEDGER_FILE is set.
func (s *service) abort() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.drain(ctx)
}

// listen listens on HOST:PORT or unix:/path. It replaces a socket file on which no process listens.
func listen(address string, mode os.FileMode) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("%w; choose another address", err)
		}
		return l, nil
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil { // #nosec G703 -- LISTEN names the socket
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func removeStaleSocket(path string) error {
	info, err := os.Lstat(path) // #nosec G703 -- LISTEN names the socket
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is not a socket; choose another path or remove it", path)
	}
	if conn, err := net.Dial("unix", path); err == nil { // #nosec G704 -- LISTEN names the socket
		_ = conn.Close()
		return fmt.Errorf("another process is listening on %s; stop it or choose another path", path)
	}
	return os.Remove(path) // #nosec G703 -- LISTEN names the socket
}

// A gate limits the connections of net/http. Further connections wait in the accept queue of the kernel and use no
// descriptor. A connection leaves the gate when it closes or becomes a stream.
type gate struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
	isFull atomic.Bool
	// onFull is called with true when the gate is full, and with false when more than half of the slots are free again.
	onFull func(bool)
}

// newGate returns a gate for n connections of a listener.
func newGate(l net.Listener, n int, onFull func(bool)) *gate {
	return &gate{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{}), onFull: onFull}
}

// Accept waits for a slot, then for a connection.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.slots <- struct{}{}:
	default:
		if g.isFull.CompareAndSwap(false, true) {
			g.onFull(true)
		}
		select {
		case g.slots <- struct{}{}:
		case <-g.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		<-g.slots
		return nil, err
	}
	return &gatedConn{Conn: conn, gate: g}, nil
}

// Close closes the listener and ends a waiting Accept.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

func (g *gate) release() {
	<-g.slots
	connections := len(g.slots) - 1 // a waiting Accept has a slot, too
	if 2*connections < cap(g.slots) && g.isFull.CompareAndSwap(true, false) {
		g.onFull(false)
	}
}

// A gatedConn is a connection with a slot in the gate.
type gatedConn struct {
	net.Conn
	gate *gate
	once sync.Once
}

// release releases the slot; the connection stays open.
func (c *gatedConn) release() { c.once.Do(c.gate.release) }

// Close closes the connection and releases the slot.
func (c *gatedConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}

// unwrap returns the connection inside a gatedConn, or conn itself if it is of a different type.
func unwrap(conn net.Conn) net.Conn {
	if c, ok := conn.(*gatedConn); ok {
		return c.Conn
	}
	return conn
}
