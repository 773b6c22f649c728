package machine

import (
	"errors"
	"net"
	"strings"

	"github.com/safchain/ethtool"
)

// driver is AWS's, for its network cards (Elastic Network Adapter).
const driver = "ena"

// devices looks at the network cards of this namespace: whether there are any, and what AWS's driver counted, added up
// over the cards that it drives. What the kernel made (veth, bridges) is on no bus, and no card.
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
		now, err := tool.Stats(card.Name)
		errs = append(errs, err)
		for name, n := range now {
			counts[name] += n
		}
	}
	return counts, cards, errors.Join(errs...)
}
