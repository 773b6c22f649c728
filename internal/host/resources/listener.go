package resources

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// A Listener finds the processes that listen on a loopback address of this machine: the service, if BACKEND_URL has
// that address. A Listener is not safe for concurrent use.
type Listener struct {
	addresses []net.IP
	port      uint64

	pids    []int // result of the last search
	foundAt time.Time
}

// maxResultAge is the maximum age of a search result, because a service may replace its workers.
const maxResultAge = 30 * time.Second

// tcpListen is the state TCP_LISTEN in /proc/net/tcp.
const tcpListen = 0x0A

// forwarders are programs that listen on behalf of services elsewhere. The kernel truncates names to 15 characters.
var forwarders = []string{"docker-proxy", "rootlessport", "slirp4netns", "pasta", "pasta.avx2", "gvproxy", "ssh", "sshd", "kubectl", "socat"}

// ListenerOf returns the Listener for the URL of a service. It returns nil if the URL has no valid port, or if its host
// is neither localhost nor a loopback address.
func ListenerOf(service string) *Listener {
	u, err := url.Parse(service)
	if err != nil {
		return nil
	}
	l := &Listener{addresses: []net.IP{net.ParseIP(u.Hostname())}}
	if u.Hostname() == "localhost" {
		l.addresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if l.port, err = strconv.ParseUint(port, 10, 16); err != nil || !l.addresses[0].IsLoopback() {
		return nil
	}
	return l
}

// PIDs returns the ids of the listening processes and of their direct children, except soak itself. It searches again
// if a process has exited or the last search is older than maxResultAge. It returns none if a listening process belongs
// to another user or namespace, or forwards connections. l may be nil.
func (l *Listener) PIDs() []int {
	if l == nil {
		return nil
	}
	exited := slices.ContainsFunc(l.pids, func(pid int) bool {
		_, err := procfs.NewProc(pid)
		return err != nil
	})
	if exited || time.Since(l.foundAt) > maxResultAge {
		l.pids, l.foundAt = l.search(), time.Now()
	}
	return l.pids
}

func (l *Listener) search() (pids []int) {
	sockets := l.sockets()
	all, err := procfs.AllProcs()
	if err != nil || len(sockets) == 0 {
		return nil
	}
	found := map[string]bool{}
	for _, p := range all {
		targets, _ := p.FileDescriptorTargets() // an error for processes of other users
		i := slices.IndexFunc(targets, func(target string) bool { return sockets[target] })
		if i < 0 {
			continue
		}
		if name, err := p.Comm(); err != nil || slices.Contains(forwarders, name) {
			return nil
		}
		found[targets[i]] = true
		members, _ := family(p.PID)
		for _, member := range members {
			if int(member.Pid) != os.Getpid() && !slices.Contains(pids, int(member.Pid)) { // the service may have started soak
				pids = append(pids, int(member.Pid))
			}
		}
	}
	if len(found) < len(sockets) {
		return nil
	}
	return pids
}

// sockets returns the sockets that listen on the addresses and the port of l, by their names in /proc/PID/fd. Sockets
// bound to exactly these addresses take precedence over sockets bound to all addresses.
func (l *Listener) sockets() map[string]bool {
	exact, wildcard := map[string]bool{}, map[string]bool{}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	//lint:ignore SA1019 the replacement, netlink, requires a socket and returns the same lines
	v4, _ := fs.NetTCP()
	//lint:ignore SA1019 as above
	v6, _ := fs.NetTCP6() // an error on a machine without IPv6
	for _, line := range slices.Concat(v4, v6) {
		if line.St != tcpListen || line.LocalPort != l.port {
			continue
		}
		name := fmt.Sprintf("socket:[%d]", line.Inode)
		switch {
		case line.LocalAddr.IsUnspecified():
			wildcard[name] = true
		case slices.ContainsFunc(l.addresses, line.LocalAddr.Equal):
			exact[name] = true
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return wildcard
}

// FromListener adds the CPU seconds of a service's processes. It is for services that do not report their CPU seconds.
func (s *Sample) FromListener(pids []int) {
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			continue
		}
		if stat, err := p.Stat(); err == nil {
			s.BackendCPU += stat.CPUTime()
		}
	}
}
