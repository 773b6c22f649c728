package machine

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// A Reading has the values of counters and limits by name. It omits counters that the machine does not report.
type Reading map[string]float64

type source struct {
	proc string // mount point of /proc
	// cardCounters returns the counters of AWS's driver, and reports whether the network namespace has network cards.
	cardCounters func() (counts map[string]uint64, cards bool, err error)
	// suspended returns how long the machine has been suspended since its start. ok is false if that is unknown.
	suspended func() (d time.Duration, ok bool)
	// clocks returns the wall clock and the monotonic clock at one instant.
	clocks func() (wall, monotonic time.Duration)
}

var localSource = source{proc: procfs.DefaultMountPoint, cardCounters: cardCounters, suspended: SuspendedFor, clocks: clocks}

// processStart is the origin of the monotonic clock.
var processStart = time.Now()

// clocks returns the wall clock as Unix time, and the time since processStart by the monotonic clock.
func clocks() (wall, monotonic time.Duration) {
	now := time.Now() // has both clocks
	return time.Duration(now.UnixNano()), now.Sub(processStart)
}

// read reads all counters except ClockStep. It omits unreadable ones.
func (s *source) read() Reading {
	r := Reading{}
	if d, ok := s.suspended(); ok {
		r[Suspension] = d.Seconds()
	}
	fs, err := procfs.NewFS(s.proc)
	if err != nil {
		return r
	}
	if stat, err := fs.Stat(); err == nil {
		r[Steal] = stat.CPUTotal.Steal
	}
	s.readOOMKills(r)
	for _, name := range []string{ConntrackEntries, "nf_conntrack_max"} {
		if v, err := fs.SysctlInts("net/netfilter/" + name); err == nil && len(v) == 1 {
			r[name] = float64(v[0])
		}
	}
	if self, err := fs.Self(); err == nil { // for the network namespace of this process
		if tcp, err := self.Snmp(); err == nil {
			r.set(OutSegs, tcp.OutSegs)
			r.set(Retrans, tcp.RetransSegs)
		}
		if ext, err := self.Netstat(); err == nil {
			r.set(Overflows, ext.ListenOverflows)
			r.set(Drops, ext.ListenDrops)
			r.set(SYNRetrans, ext.TCPSynRetrans)
		}
	}
	counts, _, err := s.cardCounters()
	if err != nil {
		return r
	}
	for _, c := range Counters {
		if v, ok := counts[c.Name]; ok && c.ByAWS() {
			r[c.Name] = float64(v)
		}
	}
	return r
}

func (r Reading) set(name string, v *float64) {
	if v != nil && *v >= 0 {
		r[name] = *v
	}
}

func (s *source) readOOMKills(r Reading) {
	text, err := os.ReadFile(filepath.Join(s.proc, "vmstat"))
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && name == OOMKills {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				r[OOMKills] = v
			}
		}
	}
}

// identify sets the fields that do not change during a run: ids, the start of the machine, cores, and network cards.
func (s *source) identify(r *Record) {
	if text, err := os.ReadFile(filepath.Join(s.proc, "sys/kernel/random/boot_id")); err == nil {
		r.Boot = strings.TrimSpace(string(text))
	}
	if namespace, err := os.Readlink(filepath.Join(s.proc, "self/ns/net")); err == nil {
		r.Namespace = namespace
	}
	if fs, err := procfs.NewFS(s.proc); err == nil {
		if stat, err := fs.Stat(); err == nil {
			r.Cores, r.BootedUnix = len(stat.CPU), clamp.Int64(stat.BootTime)
		}
	}
	_, r.Cards, _ = s.cardCounters() // false in the namespace of a container, which has only virtual interfaces
}
