// Package capsule archives the evidence of a run: its results, the Prometheus data of its time, dashboards, versions, image
// digests and kernel settings, each file with its checksum. The archive is a tar.gz with one folder, named after the run;
// docs/capsule.md describes it.
package capsule

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/regularfile"
)

// Schema is the version of the format. A reader refuses a later one.
const Schema = 1

// Names in an archive, in the folder of the run.
const (
	sumsFile       = "SHA256SUMS" // the first file: the checksums of all others in the format of sha256sum
	contentsFile   = "capsule.json"
	versionsFile   = "versions.json"
	kernelFile     = "kernel.json"
	ResultsDir     = "results"    // of results/TESTID
	PrometheusDir  = "prometheus" // bodies of remote write before compression, in the order to send them
	DashboardsDir  = "dashboards"
	RequestPattern = "*.pb"
)

// Contents is capsule.json: what is in the archive, and what is not.
type Contents struct {
	Schema     int       `json:"schema"`
	TestID     string    `json:"testid"`
	Verdict    string    `json:"verdict"`
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended"`
	Made       time.Time `json:"made"`
	Soak       string    `json:"soak"` // version of the soak that made it
	Prometheus Snapshot  `json:"prometheus"`
	LeftOut    []string  `json:"left_out,omitempty"` // sentences
	Redacted   []string  `json:"redacted,omitempty"` // files in which secrets were replaced
}

// A Snapshot describes the data of a Prometheus in an archive.
type Snapshot struct {
	Missing    string    `json:"missing,omitempty"` // why there is no data, as a sentence
	Address    string    `json:"address,omitempty"` // without a password
	From       time.Time `json:"from,omitzero"`     // both included
	To         time.Time `json:"to,omitzero"`
	Series     int       `json:"series"`
	Samples    int       `json:"samples"`
	Histograms int       `json:"native_histograms,omitempty"`
	Requests   int       `json:"requests"`
}

// margin is the time before and after a run whose data is read too: Prometheus looks back this far for the value of a series.
const margin = 5 * time.Minute

// ran holds the fields of verdict.json that a capsule needs.
type ran struct {
	TestID  string  `json:"testid"`
	Verdict string  `json:"verdict"`
	Started float64 `json:"started_unix_s"`
	Ended   float64 `json:"ended_unix_s"`
	Runners []struct {
		K6 string `json:"k6_version"`
	} `json:"runners"`
}

// readVerdict reads the name and the times of the run in a folder.
func readVerdict(folder string) (r ran, err error) {
	err = regularfile.JSON(filepath.Join(folder, "verdict.json"), regularfile.Verdict, &r)
	if _, gone := os.Stat(folder); errors.Is(gone, os.ErrNotExist) {
		return r, fmt.Errorf("there is no folder %s; name the run by its test id (with --out if its folder is not in results) or by its folder", folder)
	}
	if errors.Is(err, os.ErrNotExist) {
		return r, fmt.Errorf("%s has no verdict.json; run `soak merge %[1]s` to write it", folder)
	}
	if err != nil {
		return r, fmt.Errorf("read the verdict in %s: %w", folder, err)
	}
	if r.TestID == "" || !filepath.IsLocal(r.TestID) || filepath.Base(r.TestID) != r.TestID || !packable(r.TestID) {
		return r, fmt.Errorf("the verdict in %s names the run %q, which is not a valid folder name", folder, r.TestID)
	}
	return r, nil
}

func instant(unix float64) time.Time { return time.UnixMicro(int64(unix * 1e6)).UTC() }
