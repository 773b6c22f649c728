package resources

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Room has the limits of a machine other than its cores.
type Room struct {
	Memory       uint64 `json:"host_memory_bytes,omitempty"`
	LinkRate     uint64 `json:"host_link_bytes_per_second,omitempty"` // per direction, of network cards that report it
	LinkSent     uint64 `json:"host_link_sent_bytes,omitempty"`       // by these cards
	LinkReceived uint64 `json:"host_link_received_bytes,omitempty"`
	OfTarget     bool   `json:"host_of_target,omitempty"` // the machine of the target, which Prometheus watches
}

// readLinks adds the network cards that report their speed. It skips interfaces without a device, such as a bridge, because a card
// carries the same bytes.
func (r *Room) readLinks() {
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
			r.LinkRate += uint64(megabits) * 1e6 / 8
			r.LinkSent += line.TxBytes
			r.LinkReceived += line.RxBytes
		}
	}
}
