package resources

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Capacity has the memory of a machine, and the load and rate of its network cards.
type Capacity struct {
	Memory       uint64 `json:"host_memory_bytes,omitempty"`          // total
	LinkRate     uint64 `json:"host_link_bytes_per_second,omitempty"` // per direction, of network cards that report it
	LinkSent     uint64 `json:"host_link_sent_bytes,omitempty"`       // by the same cards
	LinkReceived uint64 `json:"host_link_received_bytes,omitempty"`
	OfTarget     bool   `json:"host_of_target,omitempty"` // the machine is the one of the target, which Prometheus watches
}

// readLinks adds the network cards that report their speed. It skips interfaces without a device, such as a bridge, because their
// bytes also pass a card.
func (c *Capacity) readLinks() {
	fs, err := procfs.NewFS(procfs.DefaultMountPoint)
	if err != nil {
		return
	}
	counted, err := fs.NetDev()
	if err != nil {
		return
	}
	for name, line := range counted {
		card := filepath.Join("/sys/class/net", name)
		if _, err := os.Stat(filepath.Join(card, "device")); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(card, "speed")) // #nosec G304 -- a file of /sys/class/net
		if err != nil {
			continue
		}
		if megabits, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && megabits > 0 {
			c.LinkRate += uint64(megabits) * 1e6 / 8
			c.LinkSent += line.TxBytes
			c.LinkReceived += line.RxBytes
		}
	}
}
