package report

import "math"

// cutsOverTime is the chart of the cuts that the run made of its own streams. There may be thousands: too many for a line
// each on every chart, as actions have.
func (s *subject) cutsOverTime(out *Section) {
	t := s.series
	var made, broken []float64
	for r, c := range s.v.EachCut() {
		if made == nil {
			made, broken = make([]float64, t.n), make([]float64, t.n)
		}
		i := int(math.Floor((float64(s.Merged.Runners[r.Runner].At(c.At).UnixMicro())/1e6 - float64(t.from)) / float64(step)))
		if i < 0 || i >= t.n {
			continue // by a clock that the axis leaves out
		}
		made[i]++
		if c.Missed+c.Doubled+c.Announced > 0 {
			broken[i]++
		}
	}
	out.add(&Chart{ID: "cuts", Title: "Cuts", Note: "of streams, by this client, in each 5 s", Wide: true},
		over("made", "bars", made, sampleGap), over("cost a message, or brought one twice", "", broken, sampleGap))
}
