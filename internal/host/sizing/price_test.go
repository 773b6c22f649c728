package sizing

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func builtInPrices(t *testing.T) Prices {
	t.Helper()
	table, err := ReadPrices("")
	require.NoError(t, err)
	return table
}

func TestRateOfMachines(t *testing.T) {
	t.Parallel()
	table := builtInPrices(t)
	rate, err := table.Rate(Machines{Region: "us-east-1", Hosts: map[string]int{"c5.large": 2}, DiskGiB: 50})
	require.NoError(t, err)
	require.InDelta(t, 2*(.085+.005)+50*.08/730, rate.PerHour, 1e-12)
	require.InDelta(t, 3*rate.PerHour, rate.Cost(3*time.Hour), 1e-12)
	require.Equal(t, table.AsOf, rate.AsOf)
	require.NotEmpty(t, rate.Source)
}

func TestRateRejectsUnknownPrices(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Machines{
		"no price of c9x.large in us-east-1; pass --prices FILE": {Region: "us-east-1", Hosts: map[string]int{"c5.large": 1, "c9x.large": 1}},
		"no price of eu-central-1; pass --prices FILE":           {Region: "eu-central-1", Hosts: map[string]int{"c5.large": 1}},
	} {
		_, err := builtInPrices(t).Rate(m)
		require.ErrorContains(t, err, want)
	}
}

func TestFileOverridesThePrices(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prices.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`{"schema": 1, "as_of": "2027-01-31", "source": "our contract", "regions": {"eu-central-1": {"instance_hour": {"c5.large": 0.05}, "ipv4_hour": 0.005, "gp3_gib_month": 0.1}}}`)
	table, err := ReadPrices(file)
	require.NoError(t, err)
	rate, err := table.Rate(Machines{Region: "eu-central-1", Hosts: map[string]int{"c5.large": 1}})
	require.NoError(t, err)
	require.InDelta(t, .055, rate.PerHour, 1e-12)
	require.Equal(t, "our contract", rate.Source)

	for want, text := range map[string]string{
		"must have schema 1": `{"schema": 1, "regions": {}}`,
		"must be over 0":     `{"schema": 1, "as_of": "2027-01-31", "source": "x", "regions": {"a": {"instance_hour": {"b": 0}, "ipv4_hour": 1, "gp3_gib_month": 1}}}`,
		"read the prices":    `{"c5.large": 1}`,
	} {
		write(text)
		_, err := ReadPrices(file)
		require.ErrorContains(t, err, want)
	}
	_, err = ReadPrices(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "read the prices")
}

func TestAmountOverTheLimitIsRejected(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckBudget(5, 0, "it"))
	require.NoError(t, CheckBudget(5, 5, "it"))
	require.EqualError(t, CheckBudget(5.5, 5, "it"), "it costs $5.50, which is over the $5.00 of --max-usd")
	require.Equal(t, []string{"$266", "$0.19", "$0.0012", "$0.00"}, []string{USD(266.2), USD(.1855), USD(.0012), USD(0)})
}

func TestInvalidLimitIsRejected(t *testing.T) {
	t.Parallel()
	for _, maximum := range []float64{math.NaN(), -1, math.Inf(-1)} {
		require.ErrorContains(t, CheckBudget(1, maximum, "a run"), "--max-usd must be an amount, or 0 (no limit), got ")
	}
	for _, usd := range []float64{math.NaN(), math.Inf(1)} {
		require.ErrorContains(t, CheckBudget(usd, 5, "a run"), "over the $5.00")
	}
	require.NoError(t, CheckBudget(1, 0, "a run"))
}

func TestTableWithOtherContentIsRejected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		string(builtIn) + "{}": "trailing data",
		strings.Replace(string(builtIn), `"c5.large": 0.085`, `"c5.large": 1e308`, 1): "must be over 0 and under",
	} {
		file := filepath.Join(t.TempDir(), "prices.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadPrices(file)
		require.ErrorContains(t, err, want)
	}
}

// The test is not parallel, because it changes the built-in table.
func TestErrorsNameTheBuiltInTable(t *testing.T) {
	saved := builtIn
	defer func() { builtIn = saved }()
	for text, want := range map[string]string{"{": "read the prices internal/host/sizing/prices.json: ", "{}": "prices in internal/host/sizing/prices.json must have schema"} {
		builtIn = []byte(text)
		_, err := ReadPrices("")
		require.ErrorContains(t, err, want)
	}
}
