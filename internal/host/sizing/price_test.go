package sizing

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRateRejectsUnknownPrices(t *testing.T) {
	t.Parallel()
	table, err := ReadPrices("")
	require.NoError(t, err)
	_, err = table.PerHour("us-east-1", map[string]int{"c5.large": 1, "c9x.large": 1}, 0)
	require.ErrorContains(t, err, "no price for c9x.large in us-east-1; pass --prices FILE")
	_, err = table.PerHour("eu-central-1", map[string]int{"c5.large": 1}, 0)
	require.ErrorContains(t, err, "no price for eu-central-1; pass --prices FILE")
}

func TestFileOverridesThePrices(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prices.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`{"schema": 1, "as_of": "2027-01-31", "source": "our contract", "regions": {"eu-central-1": {"instance_hour": {"c5.large": 0.05}, "ipv4_hour": 0.005, "gp3_gib_month": 0.1}}}`)
	table, err := ReadPrices(file)
	require.NoError(t, err)
	perHour, err := table.PerHour("eu-central-1", map[string]int{"c5.large": 2}, 73)
	require.NoError(t, err)
	require.InDelta(t, .12, perHour, 1e-12)
	require.Equal(t, []string{"our contract", "2027-01-31"}, []string{table.Source, table.AsOf})

	for want, text := range map[string]string{
		"must have schema 1": `{"schema": 1, "regions": {}}`,
		"must be over 0":     `{"schema": 1, "as_of": "2027-01-31", "source": "x", "regions": {"a": {"instance_hour": {"b": 0}, "ipv4_hour": 1, "gp3_gib_month": 1}}}`,
		"read the prices":    `{"c5.large": 1}`,
		"trailing data":      string(builtIn) + "{}",
		"and under":          strings.Replace(string(builtIn), `"c5.large": 0.085`, `"c5.large": 1e308`, 1),
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
	for _, c := range []struct {
		usd, maximum float64
		want         string
	}{
		{5.5, 5, "it costs $5.50, which is over the $5.00 of --max-usd"}, {math.NaN(), 5, "over the $5.00"}, {math.Inf(1), 5, "over the $5.00"},
		{1, math.NaN(), "--max-usd must be a positive amount, or 0 (no limit), got NaN"}, {1, -1, "or 0 (no limit), got -1"},
	} {
		require.ErrorContains(t, CheckBudget(c.usd, c.maximum, "it"), c.want)
	}
	require.Equal(t, []string{"$266", "$0.19", "$0.0012", "$0.00"}, []string{USD(266.2), USD(.1855), USD(.0012), USD(0)})
}
