package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/sizing"
)

// machines returns the hosts that have a price.
func (s settings) machines() sizing.Machines {
	return sizing.Machines{Region: s.Region, Hosts: s.hosts(), DiskGiB: s.StackDisk + s.RunnerNodes*s.RunnerDisk}
}

// A quote is what a deployment costs.
type quote struct {
	sizing.Rate
	life time.Duration
}

// quote is the price of what the settings say. It is an error where the table of prices lacks it.
func (d *deployment) quote(s settings) (quote, error) {
	table, err := sizing.ReadPrices(d.prices)
	if err != nil {
		return quote{}, err
	}
	rate, err := table.Rate(s.machines())
	return quote{rate, time.Duration(s.TTLMinutes) * time.Minute}, err
}

// most is the cost until the hosts terminate themselves.
func (q quote) most() float64 { return q.For(q.life) }

func (q quote) String() string {
	var hosts []string
	for _, kind := range slices.Sorted(maps.Keys(q.Hosts)) {
		hosts = append(hosts, fmt.Sprintf("%d × %s", q.Hosts[kind], kind))
	}
	return fmt.Sprintf("%s an hour: %s with addresses and disks in %s, on demand, by prices of %s; %s until the hosts terminate themselves after %v",
		sizing.USD(q.PerHour), strings.Join(hosts, ", "), q.Region, q.AsOf, sizing.USD(q.most()), q.life)
}

// affordable returns the price of the deployment. It fails if the price is over --max-usd or unknown.
func (d *deployment) affordable(s settings) finding {
	const what = "price"
	q, err := d.quote(s)
	switch {
	case err != nil && d.maxUSD != 0:
		return fail(what, "--max-usd is %s, and %v", sizing.USD(d.maxUSD), err)
	case err != nil:
		return note(what, "%v", err)
	}
	if err := sizing.Within(q.most(), d.maxUSD, fmt.Sprintf("all of it until the hosts end themselves after %v", q.life)); err != nil {
		return fail(what, "%v; fewer or smaller hosts, or a shorter ttl_minutes, cost less", err)
	}
	return ok(what, "%v", q)
}
