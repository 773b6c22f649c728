package results

import (
	"errors"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// maxInPage is the size in bytes of the largest file that a page embeds. Browsers open a page with a table of 100,000
// connections slowly. Larger files are only in the folder.
const maxInPage = 8 << 20

// page collects the content of report.html. verdict.json and the tables must exist.
func (d Dir) page(v *verdict.Verdict, m *shard.Merged, samples []resources.Sample, baseline Dir) (*report.Run, error) {
	first := 0
	if len(m.Runners) > 0 {
		first = m.Runners[0].Index
	}
	// An unreadable run.json is already a problem of the verdict.
	out := &report.Run{Verdict: v, Merged: m, Samples: samples, Circumstances: d.Run(first).Circumstances}
	names := []string{VerdictFile, "series.csv"}
	if hasConnections(v) {
		names = append(names, ConnectionsFile)
	}
	for i := range v.Tables {
		names = append(names, report.TableFile(&v.Tables[i]))
	}
	if len(v.Cuts) > 0 {
		names = append(names, CutsFile)
	}
	for _, name := range names {
		content, err := safefile.Read(d.Path(name), maxInPage)
		if errors.Is(err, safefile.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("put %s into the page: %w", name, err)
		}
		out.Files = append(out.Files, report.File{Name: name, Content: content})
	}
	var err error
	out.Comparison, err = d.comparison(v, baseline)
	return out, err
}
