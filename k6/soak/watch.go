package soak

import (
	"encoding/json"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
)

// report writes one line of progress. It stops for good when the reader is gone.
func (o *outputSoak) report() {
	p := o.recorder.progress()
	if trouble := o.trouble.Load(); trouble != nil {
		p.Trouble = *trouble
	}
	o.mu.Lock()
	o.sums.progress(&p)
	o.mu.Unlock()
	line, err := json.Marshal(p)
	if err == nil {
		_, err = o.progress.Write(append(line, '\n'))
	}
	if err != nil {
		_ = o.progress.Close() // it is broken already, and nothing of the run depends on it
		o.progress = nil
	}
}

// plannedIterations is how many iterations the scenarios plan over all runners, as far as
// they plan a number.
func plannedIterations(scenarios lib.ScenarioConfigs) (sum int64) {
	for _, s := range scenarios {
		switch c := s.(type) {
		case executor.SharedIterationsConfig:
			sum += c.Iterations.Int64
		case executor.PerVUIterationsConfig:
			sum += c.VUs.Int64 * c.Iterations.Int64
		}
	}
	return sum
}
