package machine

import (
	"errors"
	"net"
	"strings"

	"github.com/safchain/ethtool"
)

// driver is the name of AWS's driver of network cards (Elastic Network Adapter).
const driver = "ena"

// devices reports whether this namespace has network cards, and returns the counters of AWS's driver, summed over its cards.
// Interfaces of the kernel, such as veth and bridges, have no bus and are not cards.
func devices() (counts map[string]uint64, cards bool, err error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, false, err
	}
	defer tool.Close()
	all, err := net.Interfaces()
	if err != nil {
		return nil, false, err
	}
	counts = map[string]uint64{}
	var errs []error
	for _, card := range all {
		info, err := tool.DriverInfo(card.Name)
		if err != nil { // loopback has no driver
			continue
		}
		cards = cards || strings.ContainsAny(info.BusInfo, "0123456789")
		if info.Driver != driver {
			continue
		}
		stats, err := tool.Stats(card.Name)
		errs = append(errs, err)
		for name, n := range stats {
			counts[name] += n
		}
	}
	return counts, cards, errors.Join(errs...)
}
