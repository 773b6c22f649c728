package machine

import (
	"errors"
	"net"
	"strings"

	"github.com/safchain/ethtool"
)

// enaDriver is the name of AWS's network card driver (Elastic Network Adapter).
const enaDriver = "ena"

// cardCounters returns the counters of AWS's driver, summed over its cards, and reports whether this network namespace
// has cards. Virtual interfaces such as veth and bridges are not cards: they have no address on a bus.
func cardCounters() (counts map[string]uint64, cards bool, err error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, false, err
	}
	defer tool.Close()
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, false, err
	}
	counts = map[string]uint64{}
	var errs []error
	for _, card := range interfaces {
		info, err := tool.DriverInfo(card.Name)
		if err != nil { // loopback has no driver
			continue
		}
		cards = cards || strings.ContainsAny(info.BusInfo, "0123456789") // a bus address has digits; "N/A" has none
		if info.Driver != enaDriver {
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
