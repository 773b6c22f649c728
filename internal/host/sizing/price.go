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

const schema = 1

// maxUSD is above all real prices. A price of maxUSD or more is an error.
const maxUSD = 1e6

// hoursPerMonth is the length of a month in AWS's prices.
const hoursPerMonth = 730

//go:embed prices.json
var builtIn []byte

// Prices is a table of AWS prices as of one date.
type Prices struct {
	Schema  int               `json:"schema"`
	AsOf    string            `json:"as_of"` // such as 2026-01-31
	Source  string            `json:"source"`
	Regions map[string]Region `json:"regions"`
}

// A Region has the prices in one region, in US dollars.
type Region struct {
	InstanceHour map[string]float64 `json:"instance_hour"` // by instance type
	IPv4Hour     float64            `json:"ipv4_hour"`     // of a public address
	GP3Month     float64            `json:"gp3_gib_month"` // of 1 GiB of a gp3 disk
}

// ReadPrices reads the table of prices in a file, or the built-in table if file is "".
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
		err = errors.New("trailing data")
	}
	if err != nil {
		return t, fmt.Errorf("read the prices %s: %w; see internal/host/sizing/prices.json", file, err)
	}
	return t, t.check(file)
}

func (t Prices) check(file string) error {
	if _, err := time.Parse(time.DateOnly, t.AsOf); err != nil || t.Source == "" || t.Schema != schema {
		return fmt.Errorf("prices in %s must have schema %d, as_of (YYYY-MM-DD) and source", file, schema)
	}
	for name, r := range t.Regions {
		for _, usd := range append(slices.Collect(maps.Values(r.InstanceHour)), r.IPv4Hour, r.GP3Month) {
			if !(usd > 0 && usd < maxUSD) {
				return fmt.Errorf("prices in %s must be over 0 and under %g, got %g in %s", file, maxUSD, usd, name)
			}
		}
	}
	return nil
}

// PerHour returns the hourly cost, in US dollars, of hosts in a region, each with a public address, and of disks (gp3).
// hosts has the number of hosts by instance type; diskGiB is the total size of the disks.
func (t Prices) PerHour(region string, hosts map[string]int, diskGiB int) (usd float64, err error) {
	prices, ok := t.Regions[region]
	if !ok {
		return 0, noPriceError(region)
	}
	for _, kind := range slices.Sorted(maps.Keys(hosts)) {
		price, ok := prices.InstanceHour[kind]
		if !ok {
			return 0, noPriceError(kind + " in " + region)
		}
		usd += float64(hosts[kind]) * (price + prices.IPv4Hour)
	}
	return usd + float64(diskGiB)*prices.GP3Month/hoursPerMonth, nil
}

func noPriceError(subject string) error {
	return fmt.Errorf("no price for %s; pass --prices FILE (or PRICES), a table like internal/host/sizing/prices.json", subject)
}

// CheckBudget returns an error if usd, the cost of subject, exceeds maximum (0: no limit), or if maximum is not valid.
func CheckBudget(usd, maximum float64, subject string) error {
	switch {
	case !(maximum >= 0):
		return fmt.Errorf("--max-usd must be a positive amount, or 0 (no limit), got %g", maximum)
	case maximum > 0 && !(usd <= maximum):
		return fmt.Errorf("%s costs %s, which is over the %s of --max-usd", subject, USD(usd), USD(maximum))
	}
	return nil
}

// USD formats an amount in US dollars, with more decimal places for smaller amounts.
func USD(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("$%.0f", v)
	case v >= .01 || v == 0:
		return fmt.Sprintf("$%.2f", v)
	}
	return fmt.Sprintf("$%.4f", v)
}
