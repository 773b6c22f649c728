package shard

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestReachKeepsTheMaximumOfEachMessage(t *testing.T) {
	a, b := NewReach(2, 3), NewReach(2, 3)
	a.Record(0, 1, 5*time.Millisecond)
	a.Record(0, 1, 2*time.Millisecond)
	b.Record(0, 1, 9*time.Millisecond)
	b.Record(1, 3, time.Second)
	b.Record(1, 4, time.Hour) // above the maximum number
	b.Record(7, 1, time.Hour)
	a.Merge(b)
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back Reach
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, *a) {
		t.Fatalf("%v: got %+v, want %+v", err, back, *a)
	}
	h := back.Histogram()
	if h.Count() != 2 || h.Quantile(.5).Round(time.Millisecond) != 9*time.Millisecond || h.Max() < time.Second || h.Max() > 1008*time.Millisecond {
		t.Errorf("got %d messages with the median %v and the maximum %v, want 2 messages with 9 ms and 1 s", h.Count(), h.Quantile(.5), h.Max())
	}
}

func TestReachCodesGrowWithTheDuration(t *testing.T) {
	last := uint16(0)
	for us := int64(0); us < highestMicros; us += 1 + us/500 {
		d := time.Duration(us) * time.Microsecond
		code := reachCode(d)
		if back := reachOf(code); code < last || back < d || float64(back) > 1.008*float64(d)+float64(time.Microsecond) {
			t.Fatalf("the duration %v has code %d, the previous one has code %d; the code is decoded as %v", d, code, last, back)
		}
		last = code
	}
}

func FuzzReach(f *testing.F) {
	f.Add([]byte(`{"most":3,"topics":["AQA=",null]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		var r Reach
		if json.Unmarshal(text, &r) == nil {
			r.Histogram()
		}
	})
}
