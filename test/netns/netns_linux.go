// Package netns creates network namespaces for tests.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/test/untested"
)

var count atomic.Int32

// New creates a namespace with a loopback interface for the duration of the test. Without root, or if namespaces
// cannot be created, it skips the test.
func New(t testing.TB) (name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		untested.Skip(t, "network namespaces need root")
	}
	name = fmt.Sprintf("soak-%d-%d", os.Getpid(), count.Add(1))
	if text, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		untested.Skip(t, "network namespaces cannot be created: "+string(text))
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() }) // also removes its links
	if text, err := exec.Command("ip", "-n", name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("start the loopback interface of %s: %s", name, text)
	}
	return name
}

// Do calls f in a namespace. Sockets that f opens belong to the namespace.
func Do(name string, f func() error) error {
	done := make(chan error)
	go func() {
		// The thread stays in the namespace, so no other goroutine may run on it. The thread must not end either,
		// because the kernel would kill the child processes that it has started (Pdeathsig).
		runtime.LockOSThread()
		done <- enter(name, f)
		select {}
	}()
	return <-done
}

func enter(name string, do func() error) error {
	ns, err := os.Open("/run/netns/" + name)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	return do()
}
