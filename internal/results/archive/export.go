package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	prompb "buf.build/gen/go/prometheus/prometheus/protocolbuffers/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

// An Export describes prometheus.pb, the data of a Prometheus server. The file contains remote-write 1.0 requests in
// chronological order, each preceded by its length as a varint. A Prometheus server accepts them in this order.
type Export struct {
	Missing    string    `json:"missing,omitempty"` // why there is no data, as a sentence
	Address    string    `json:"address,omitempty"` // without secrets
	From       time.Time `json:"from,omitzero"`     // From and To are inclusive
	To         time.Time `json:"to,omitzero"`
	Series     int       `json:"series"`
	Samples    int       `json:"samples"`
	Histograms int       `json:"native_histograms,omitempty"`
}

const (
	// margin extends the exported time range before and after the run: Prometheus looks back this far for the value of
	// a series.
	margin = 5 * time.Minute

	samplesPerRequest = 20_000   // samples after which a remote-write request ends: a few hundred KB
	maxRequest        = 64 << 20 // maximum bytes of one request that Load accepts
)

// addExport stores the Prometheus data from the time of the run, or the reason for missing data.
func (m *maker) addExport(address, skipReason string) error {
	export := &m.contents.Prometheus
	if skipReason != "" {
		export.Missing = m.secrets.String(skipReason)
		return nil
	}
	if address == "" {
		export.Missing = "no Prometheus address; set --prometheus or PROMETHEUS_URL"
		return nil
	}
	remote, err := NewRemote(address)
	if err != nil {
		return err
	}
	result := Export{Address: remote.String(), From: m.contents.Started.Add(-margin), To: m.contents.Ended.Add(margin)}
	if now := time.Now().UTC(); result.To.After(now) {
		result.To = now
	}
	result.From, result.To = result.From.Truncate(time.Millisecond), result.To.Truncate(time.Millisecond)
	var readErr error // from Prometheus; other errors are local
	err = m.copy(ExportFile, func(out io.Writer) error {
		buffered := bufio.NewWriter(out)
		var writeErr error
		readErr, writeErr = m.export(remote, &result, buffered)
		return errors.Join(writeErr, buffered.Flush())
	})
	switch {
	case err != nil:
		return err
	case m.ctx.Err() != nil:
		return m.ctx.Err()
	case readErr != nil: // partial data would look complete
		result = Export{Missing: m.secrets.String(readErr.Error())}
	case result.Samples+result.Histograms == 0:
		result = Export{Missing: fmt.Sprintf("Prometheus at %s has no data from %s to %s", result.Address,
			result.From.Format(time.RFC3339), result.To.Format(time.RFC3339))}
	}
	*export = result
	if result.Missing != "" {
		return os.Remove(filepath.Join(m.dir, ExportFile))
	}
	return nil
}

// export writes the series of a Prometheus server without secrets in label values. It counts the series and their
// samples.
func (m *maker) export(remote *Remote, result *Export, out io.Writer) (readErr, writeErr error) {
	names := map[string]bool{}          // of all series
	replacements := map[string]string{} // label values
	readErr = remote.Read(m.ctx, result.From, result.To, func(series []*Series) error {
		for _, s := range series {
			name := ""
			for _, label := range s.Labels {
				value, known := replacements[label.Value]
				if !known {
					value = m.secrets.String(label.Value)
					replacements[label.Value] = value
				}
				label.Value = value
				name += fmt.Sprintf("%q%q", label.Name, value)
			}
			names[name] = true
			result.Samples += len(s.Samples)
			result.Histograms += len(s.Histograms)
		}
		writeErr = writeRequests(out, series)
		return writeErr
	})
	result.Series = len(names)
	if writeErr != nil {
		readErr = nil
	}
	return readErr, writeErr
}

func writeRequests(out io.Writer, series []*Series) error {
	for len(series) > 0 {
		n, samples := 0, 0
		for n < len(series) && samples < samplesPerRequest {
			samples += samplesOf(series[n])
			n++
		}
		if _, err := protodelim.MarshalTo(out, &prompb.WriteRequest{Timeseries: series[:n]}); err != nil {
			return err
		}
		series = series[n:]
	}
	return nil
}

// Load writes an export into a Prometheus server.
func Load(ctx context.Context, to *Remote, file string) error {
	in, err := os.Open(file) // #nosec G304 -- in the folder of an opened archive
	if err != nil {
		return err
	}
	defer in.Close()
	buffered := bufio.NewReader(in)
	for {
		var request prompb.WriteRequest
		err := protodelim.UnmarshalOptions{MaxSize: maxRequest}.UnmarshalFrom(buffered, &request)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = to.Write(ctx, request.Timeseries)
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", filepath.Base(file), err)
		}
	}
}
