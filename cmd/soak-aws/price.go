package main

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/sizing"
)

// affordable returns the estimated price of the deployment. It fails if the price is over --max-usd or unknown.
func (d *deployment) affordable(s settings) finding {
	const what = "price"
	life := time.Duration(s.TTLMinutes) * time.Minute
	table, err := sizing.ReadPrices(d.prices)
	if err != nil {
		return fail(what, "%v", err)
	}
	rate, err := table.Rate(sizing.Machines{Region: s.Region, Hosts: s.hosts(), DiskGiB: s.StackDisk + s.RunnerNodes*s.RunnerDisk})
	switch {
	case err != nil && d.maxUSD != 0:
		return fail(what, "--max-usd is %s, and %v", sizing.USD(d.maxUSD), err)
	case err != nil:
		return note(what, "%v", err)
	}
	if err := sizing.Within(rate.For(life), d.maxUSD, fmt.Sprintf("all of it until the hosts end themselves after %v", life)); err != nil {
		return fail(what, "%v; fewer or smaller hosts, or a shorter ttl_minutes, cost less", err)
	}
	return ok(what, "about %s an hour for %d hosts with addresses and disks in %s, by prices of %s; %s until the hosts terminate themselves after %v",
		sizing.USD(rate.PerHour), 1+s.RunnerNodes, rate.Region, rate.AsOf, sizing.USD(rate.For(life)), life)
}
