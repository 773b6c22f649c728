package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// A pair has two values that Grafana must display differently.
type pair [2]float64

// Pairs of counts and rates that readers must be able to distinguish, and pairs of measurements that differ by 1 %.
var (
	countPairs = []pair{{0, 1}, {1195, 1204}, {1199, 1200}, {287_999, 288_000}, {1_234_566, 1_234_567}}
	ratePairs  = []pair{{0, 1. / 60}, {79.9, 80}, {1195, 1204}, {23_900, 24_080}}
	timePairs  = hundredths(.0123, .5, 1, 9.95, 59.9, 120, 1195, 99_500, 1.2e9)
)

// hundredths pairs each value with a value that is 1 % higher, and the first value with zero.
func hundredths(values ...float64) (out []pair) {
	for _, v := range values {
		out = append(out, pair{v, v * 1.01})
	}
	return append(out, pair{0, values[0]})
}

// pairsOfUnit has pairs for each unit that the dashboards use. Grafana shows an unknown unit as a suffix, without a
// warning.
var pairsOfUnit = map[string][]pair{
	count:           countPairs,
	countsPerSecond: ratePairs, messagesPerSecond: ratePairs, requestsPerSecond: ratePairs, packetsPerSecond: ratePairs,
	units.PercentUnit: hundredths(.0123, .5, .99), units.Seconds: timePairs,
	units.BytesIEC: timePairs[2:], units.BytesSI: timePairs[2:], units.BytesPerSecondSI: timePairs[2:],
}

func TestUnitsAreKnown(t *testing.T) {
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		for _, p := range panels(d) {
			require.NotNil(t, p.FieldConfig.Defaults.Unit, *p.Title)
			assert.Contains(t, pairsOfUnit, *p.FieldConfig.Defaults.Unit, *p.Title)
		}
	})
}

func TestDifferentValuesLookDifferent(t *testing.T) {
	var samples []sample
	for _, b := range Boards() {
		for _, p := range panels(readDashboard(t, b.Name)) {
			samples = append(samples, sampleOf(b.Name+"/"+*p.Title, p.FieldConfig.Defaults))
		}
	}
	for _, problem := range indistinguishable(t, samples) {
		t.Error(problem)
	}
}

// Grafana's own units for counts display different values with the same text. Panels must display exact counts, because
// checks compare them.
func TestGrafanaCountUnitsAreInexact(t *testing.T) {
	config := func(unit string) dashboard.FieldConfig { return dashboard.FieldConfig{Unit: &unit} }
	require.Equal(t, []string{
		`short: 1195 and 1204 both read "1.20 K"`,
		`eps: 1195 and 1204 both read "1.20K evt/s"`,
		`share: 1 and 0.99999 both read "100.0%" or "100%"`,
	}, indistinguishable(t, []sample{
		{"short", config(units.Short), []pair{{0, 1}, {1195, 1204}}},
		{"eps", config(units.EventsPerSecond), []pair{{1195, 1204}}},
		{"share", config(units.PercentUnit), []pair{{1, .99999}}},
	}))
}

// A sample is a panel, and values that it may show.
type sample struct {
	name   string
	config dashboard.FieldConfig
	pairs  []pair
}

// sampleOf returns the pairs of the unit of a panel, and pairs for the values at which the panel changes its color.
func sampleOf(name string, config dashboard.FieldConfig) sample {
	pairs := pairsOfUnit[*config.Unit]
	if config.Thresholds == nil { // a heat map
		return sample{name, config, pairs}
	}
	for _, step := range config.Thresholds.Steps {
		switch {
		case step.Value == nil || *step.Value == 0:
		case *config.Unit == count:
			pairs = append(pairs[:len(pairs):len(pairs)], pair{*step.Value, *step.Value - 1})
		case *config.Unit == units.PercentUnit && *step.Value == 1: // all streams of the plan, and one less
			pairs = append(pairs[:len(pairs):len(pairs)], pair{1, 1199. / 1200}, pair{1, .99999})
		default:
			pairs = append(pairs[:len(pairs):len(pairs)], pair{*step.Value, *step.Value * .99})
		}
	}
	if *config.Unit == count && config.Decimals == nil { // load averages have fractions
		pairs = append(pairs[:len(pairs):len(pairs)], pair{.5, .55})
	}
	return sample{name, config, pairs}
}

// indistinguishable lists the values of panels that a reader cannot distinguish.
func indistinguishable(t *testing.T, samples []sample) (problems []string) {
	t.Helper()
	texts := formatWithGrafana(t, samples)
	for i, s := range samples {
		for j, p := range s.pairs {
			a, b := texts[i][2*j], texts[i][2*j+1]
			switch {
			case a == b:
				problems = append(problems, fmt.Sprintf("%s: %v and %v both read %q", s.name, p[0], p[1], a))
			case trimZeros(a) == trimZeros(b):
				problems = append(problems, fmt.Sprintf("%s: %v and %v both read %q or %q", s.name, p[0], p[1], b, a))
			}
		}
	}
	return problems
}

var zeros = regexp.MustCompile(`(\.\d*?)0+(\D|$)`)

// trimZeros returns a number without trailing zeros after the decimal point, because 100.0% equals 100%.
func trimZeros(text string) string {
	return regexp.MustCompile(`\.(\D|$)`).ReplaceAllString(zeros.ReplaceAllString(text, "$1$2"), "$1")
}

// formatWithGrafana returns the values of each sample as texts of Grafana's formatters. It bundles the formatters,
// because their package is for browsers.
func formatWithGrafana(t *testing.T, samples []sample) (texts [][]string) {
	t.Helper()
	const esbuild = "../../node_modules/.bin/esbuild"
	if _, err := os.Stat("../../node_modules/@grafana/data"); err != nil {
		untested.SkipMissing(t, "node_modules lacks @grafana/data; run `make node_modules`")
	}
	script, err := exec.Command(esbuild, "reading/format.js", "--bundle", "--platform=node", "--log-level=warning",
		"--banner:js=globalThis.navigator ??= { languages: ['en-US'] }; console.info = () => {};").Output()
	require.NoError(t, err)
	file := t.TempDir() + "/format.cjs"
	require.NoError(t, os.WriteFile(file, script, 0o600))

	type request struct {
		Config dashboard.FieldConfig `json:"config"`
		Values []float64             `json:"values"`
	}
	var requests []request
	for _, s := range samples {
		r := request{Config: s.config}
		for _, p := range s.pairs {
			r.Values = append(r.Values, p[:]...)
		}
		requests = append(requests, r)
	}
	in, err := json.Marshal(requests)
	require.NoError(t, err)
	node := exec.Command("node", file)
	node.Stdin = bytes.NewReader(in)
	node.Stderr = os.Stderr
	out, err := node.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &texts))
	require.Len(t, texts, len(samples))
	return texts
}
