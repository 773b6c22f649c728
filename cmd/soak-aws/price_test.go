package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/sizing"
)

// defaultSettings returns the default settings of infra/terraform, with a number of runner hosts.
func defaultSettings(nodes int) settings {
	return settings{Name: "sse-soak", Region: "us-east-1", Hosts: map[string]int{"c5.large": 1 + nodes}, TTLMinutes: 180, DiskGiB: 30 + nodes*20}
}

func TestCheckPrice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		maxUSD      float64
		edit        func(s *settings)
		state, want string
	}{
		{0, func(*settings) {}, "ok", "$0.56 until the hosts terminate themselves"},
		{.6, func(*settings) {}, "ok", "$0.19 an hour"},
		{.5, func(*settings) {}, "FAIL", "the deployment, whose hosts terminate themselves after 3h0m0s, costs $0.56, which is over the $0.50 of --max-usd"},
		{.5, func(s *settings) { s.TTLMinutes = 60 }, "ok", "$0.19 until the hosts terminate themselves"},
		{0, func(s *settings) { s.Region = "eu-central-1" }, "note", "no price for eu-central-1; pass --prices FILE"},
		{9, func(s *settings) { s.Hosts["c9x.large"] = 1 }, "FAIL", "the price cannot be compared with --max-usd ($9.00): no price for c9x.large in us-east-1"},
	} {
		s := defaultSettings(1)
		c.edit(&s)
		state, sentence := check(site{deployment: &deployment{maxUSD: c.maxUSD}, settings: s}.checkPrice).result(t.Context())
		assert.Equal(t, c.state, state, c.want)
		assert.Contains(t, sentence, c.want)
	}
}

// docs/aws.md must have the prices of the table, and sums of these prices.
func TestDocumentedPrices(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/aws.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(string(text)), " ")
	table, err := sizing.ReadPrices("")
	require.NoError(t, err)
	region := table.Regions["us-east-1"]
	g := func(v float64) string { return "$" + strconv.FormatFloat(v, 'f', -1, 64) }
	assert.Contains(t, page, "us-east-1, on demand: c5.large "+g(region.InstanceHour["c5.large"])+"/h, a public IPv4 address "+g(region.IPv4Hour)+"/h, gp3 "+g(region.GP3Month)+" per GB-month")
	assert.Contains(t, page, table.AsOf)
	cell := func(row string, life time.Duration) {
		var sums []string
		for _, nodes := range []int{1, 3} {
			s := defaultSettings(nodes)
			perHour, err := table.PerHour(s.Region, s.Hosts, s.DiskGiB)
			require.NoError(t, err)
			sums = append(sums, sizing.USD(perHour*life.Hours()))
		}
		assert.Regexp(t, regexp.QuoteMeta("| "+row+" | ")+`\**`+regexp.QuoteMeta(sums[0])+`\** \| `+regexp.QuoteMeta(sums[1])+` \|`, page)
	}
	cell("an hour", time.Hour)
	cell("a soak of an hour, with setup and cleanup (1.4 h)", 84*time.Minute)
	cell("hosts not destroyed, with the TTL of 3 hours", 3*time.Hour)
	cell("hosts not destroyed for 30 days, without a TTL", 30*24*time.Hour)
}
