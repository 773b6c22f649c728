// Package archive packs the folder of a run into one tar.gz without secrets, with the Prometheus data from the time of
// the run. It unpacks such an archive without trusting its author, and loads the data into a new Prometheus server.
// docs/report.md#archive-a-run describes the format.
package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

// Schema is the version of the format. Open rejects later versions.
const Schema = 1

// Suffix follows the test id in the default name of an archive.
const Suffix = ".tar.gz"

// Files of an archive that are not files of the run. An archive has all its files in one folder, named after the run.
const (
	sumsFile     = "SHA256SUMS" // the first file: the checksums of all other files, in the format of sha256sum
	contentsFile = "archive.json"
	ExportFile   = "prometheus.pb" // see Export
)

// Contents is the content of archive.json: the run, its Prometheus data, and the files that were omitted or redacted.
type Contents struct {
	Schema     int       `json:"schema"`
	TestID     string    `json:"testid"`
	Verdict    string    `json:"verdict"`
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended"`
	Created    time.Time `json:"made"`
	Soak       string    `json:"soak"` // version of soak
	Prometheus Export    `json:"prometheus"`
	Omitted    []string  `json:"left_out,omitempty"` // sentences
	Redacted   []string  `json:"redacted,omitempty"` // files in which secrets were redacted
}

// verdictFields are the fields of verdict.json that an archive needs.
type verdictFields struct {
	TestID  string  `json:"testid"`
	Verdict string  `json:"verdict"`
	Started float64 `json:"started_unix_s"`
	Ended   float64 `json:"ended_unix_s"`
}

func readVerdict(folder string) (v verdictFields, err error) {
	err = safefile.JSON(filepath.Join(folder, "verdict.json"), safefile.Verdict, &v)
	if _, statErr := os.Stat(folder); errors.Is(statErr, os.ErrNotExist) {
		return v, fmt.Errorf("there is no folder %s; name the run by its test id (with --out if its folder is not in results) or by its folder", folder)
	}
	if errors.Is(err, os.ErrNotExist) {
		return v, fmt.Errorf("%s has no verdict.json; run `soak merge %[1]s` to write it", folder)
	}
	if err != nil {
		return v, fmt.Errorf("read the verdict in %s: %w", folder, err)
	}
	if v.TestID == "" || !filepath.IsLocal(v.TestID) || filepath.Base(v.TestID) != v.TestID || !isPackable(v.TestID) {
		return v, fmt.Errorf("the verdict in %s names the run %q, which is not a valid folder name", folder, v.TestID)
	}
	return v, nil
}

func timeOf(unix float64) time.Time { return time.UnixMicro(int64(unix * 1e6)).UTC() }
