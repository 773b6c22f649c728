package run

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

type livePage struct {
	view   *live.View
	server *live.Server
}

// pageInterval is the time between two updates of a live page.
const pageInterval = time.Second

func (s *session) serveLivePage() error {
	if s.Live == "" {
		return nil
	}
	p := s.localPlan()
	view := &live.View{Watch: s.watch, Header: live.Header{
		Plan: p, Title: s.Suite.Name + " " + p.TestID, Service: s.service, Declared: s.Suite.Declares(),
		Total: s.duration(), Machine: s.record.Machine, Prometheus: os.Getenv("PROMETHEUS_URL"), WritesMetrics: runners.HasRemoteWrite(),
	}}
	server, err := live.Listen(s.Live, view, pageInterval)
	if err != nil {
		return UsageError{err}
	}
	s.page = &livePage{view, server}
	offerLive(s.Stdout, server.URL(), s.OpenURL)
	return nil
}

func offerLive(stdout io.Writer, url string, open func(string) error) {
	interactive := open != nil && canReadKeys()
	hint := ""
	if interactive {
		hint = "  (press Enter to open it)"
	}
	fmt.Fprintf(stdout, "live   %s%s\n", url, hint)
	if interactive {
		go onEnter(func() { // ends with the program, because a read of the terminal cannot be interrupted
			if err := open(url); err != nil {
				printMessage(fmt.Sprintf("no browser could be started (%v); open %s", err, url))
			}
		})
	}
}

func (s *session) stage(word, sentence string) {
	if s.page != nil {
		s.page.view.Stage(word, sentence)
	}
}

// closeLivePage closes the live page. If the run has a report, it first gives the viewers a short time to load the
// report (live.Server.Finish). Ctrl-C ends that time.
func (s *session) closeLivePage(graceful, force context.Context) {
	if s.page == nil {
		return
	}
	report, err := safefile.Read(s.dir.Path(results.PageFile), safefile.Document)
	if err != nil || s.runnerNumber > 0 { // a part has no verdict; only an earlier merge can have left a report in its folder
		s.page.server.Close()
		return
	}
	if graceful.Err() != nil {
		graceful = force
	}
	s.page.server.Finish(graceful, report)
}

// checkListen returns an error if the address of a flag cannot be an address to listen on. "" is valid.
func checkListen(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if address != "" && err != nil {
		return fmt.Errorf("%s must be HOST:PORT or :PORT, got %q", flag, address)
	}
	return nil
}

// liveAddress returns the listen address for a value of --live, or "" for no page. The default is reachable only from
// this machine.
func liveAddress(text string) string {
	switch text {
	case "", "0", "false":
		return ""
	case "1", "true": // --live without a value
		return plan.LiveAddress
	}
	return text
}
