package sizing

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// schema is the version of the table's format.
const schema = 1

// mostUSD is more than anything in the table costs: a price beyond it is a slip, and sums of such are infinite.
const mostUSD = 1e6

// hoursPerMonth is what AWS counts a month as.
const hoursPerMonth = 730

//go:embed prices.json
var builtIn []byte

// Prices has the prices of some date.
type Prices struct {
	Schema  int               `json:"schema"`
	AsOf    string            `json:"as_of"` // 2026-01-31
	Source  string            `json:"source"`
	Regions map[string]Region `json:"regions"`
}

// A Region has the prices of one region, in US dollars.
type Region struct {
	InstanceHour map[string]float64 `json:"instance_hour"` // by type
	IPv4Hour     float64            `json:"ipv4_hour"`     // of a public address
	GP3Month     float64            `json:"gp3_gib_month"`
}

// ReadPrices reads the table in a file, or the built-in one where file is empty.
func ReadPrices(file string) (t Prices, err error) {
	text := builtIn
	if file != "" {
		if text, err = os.ReadFile(file); err != nil { // #nosec G304 -- the user's table of prices
			return t, fmt.Errorf("read the prices: %w", err)
		}
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	err = in.Decode(&t)
	if err == nil && in.More() {
		err = errors.New("trailing data after its end")
	}
	if err != nil {
		return t, fmt.Errorf("%s is not a table of prices: %w; see internal/host/sizing/prices.json", file, err)
	}
	return t, t.check(file)
}

func (t Prices) check(file string) error {
	if _, err := time.Parse(time.DateOnly, t.AsOf); err != nil || t.Source == "" || t.Schema != schema {
		return fmt.Errorf("%s has to say schema %d, as_of (YYYY-MM-DD) and source: a price without them cannot be checked", file, schema)
	}
	for name, r := range t.Regions {
		for _, usd := range append(slices.Collect(maps.Values(r.InstanceHour)), r.IPv4Hour, r.GP3Month) {
			if !(usd > 0 && usd < mostUSD) {
				return fmt.Errorf("%s has a price of %g in %s: each has to be over 0, and under %g", file, usd, name, mostUSD)
			}
		}
	}
	return nil
}

// Machines are hosts of one region, each with a public address, and the size of all their disks (gp3).
type Machines struct {
	Region  string
	Hosts   map[string]int // by type
	DiskGiB int
}

// A Rate is what machines cost for as long as they are there.
type Rate struct {
	Region  string         `json:"region"`
	Hosts   map[string]int `json:"hosts"`
	DiskGiB int            `json:"disk_gib,omitempty"`
	PerHour float64        `json:"usd_per_hour"`
	AsOf    string         `json:"prices_as_of"`
	Source  string         `json:"prices_source"`
}

// Rate is what machines cost: hosts, a public address for each, and disks.
func (t Prices) Rate(m Machines) (Rate, error) {
	region, ok := t.Regions[m.Region]
	if !ok {
		return Rate{}, unknown(m.Region)
	}
	r := Rate{Region: m.Region, Hosts: m.Hosts, DiskGiB: m.DiskGiB, AsOf: t.AsOf, Source: t.Source}
	for _, kind := range slices.Sorted(maps.Keys(m.Hosts)) {
		usd, ok := region.InstanceHour[kind]
		if !ok {
			return Rate{}, unknown(kind + " in " + m.Region)
		}
		r.PerHour += float64(m.Hosts[kind]) * (usd + region.IPv4Hour)
	}
	r.PerHour += float64(m.DiskGiB) * region.GP3Month / hoursPerMonth
	return r, nil
}

// An unknown has no price.
type unknown string

func (u unknown) Error() string {
	return "no price known for " + string(u) + ": give --prices FILE (or PRICES), a table like internal/host/sizing/prices.json"
}

// For is what machines cost for a time.
func (r Rate) For(d time.Duration) float64 { return r.PerHour * d.Hours() }

// CheckBudget returns an error if an amount exceeds the maximum, or either is not an amount; 0: no maximum.
func CheckBudget(usd, most float64, subject string) error {
	switch {
	case !(most >= 0):
		return fmt.Errorf("--max-usd must be an amount, or 0 (no limit), got %g", most)
	case most > 0 && !(usd <= most):
		return fmt.Errorf("%s costs %s, which is over the %s of --max-usd", subject, USD(usd), USD(most))
	}
	return nil
}

// USD is an amount for people.
func USD(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("$%.0f", v)
	case v >= .01 || v == 0:
		return fmt.Sprintf("$%.2f", v)
	}
	return fmt.Sprintf("$%.4f", v)
}
