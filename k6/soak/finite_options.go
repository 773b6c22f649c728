package soak

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// finiteOptions is the second argument of finite. soak-streams.d.ts documents it. Rate, Concurrency and MaxInFlight
// are totals of all runners.
type finiteOptions struct {
	BaseURL     string   `js:"baseUrl"`
	Prompts     []string `js:"prompts"`
	Rate        float64  `js:"rate"`        // requests per second; 0: closed model
	Concurrency int64    `js:"concurrency"` // maximum number of concurrent responses of the closed model
	Seconds     float64  `js:"seconds"`
	Poisson     bool     `js:"poisson"`
	Seed        uint64   `js:"seed"`
	MaxInFlight int64    `js:"maxInFlight"` // maximum number of concurrent responses of the open model

	FirstTimeout float64 `js:"firstTimeout"` // maximum seconds with only heartbeats before the first content
	IdleTimeout  float64 `js:"idleTimeout"`  // maximum seconds with only heartbeats after the first content
	Linger       float64 `js:"linger"`       // maximum seconds from the terminal event to the end of the response
	Drain        float64 `js:"drain"`        // maximum seconds for the responses that are open at the end

	MaxFirst float64 `js:"maxFirst"` // ms to the first content; 0: no limit
	MaxGap   float64 `js:"maxGap"`   // ms between two chunks; 0: no limit
	MaxTotal float64 `js:"maxTotal"` // total seconds; 0: no limit

	Abandon      float64 `js:"abandon"`      // share of the requests, 0 to 1
	AbandonAfter uint32  `js:"abandonAfter"` // chunks
	AbandonBy    string  `js:"abandonBy"`    // a key of abandonments; "": fin

	AcceptEncoding string `js:"acceptEncoding"`
	HTTPVersion    string `js:"httpVersion"`
}

func (o *finiteOptions) check() error {
	switch {
	case o.Rate > 1e6:
		return fmt.Errorf("soak.finite: rate must be at most 1,000,000 requests per second, got %v", o.Rate)
	case !(o.Seconds > 0) || o.Rate < 0 || o.Concurrency < 0 || (o.Rate > 0) == (o.Concurrency > 0):
		return fmt.Errorf("soak.finite: seconds and either rate or concurrency must be positive, got seconds %v, rate %v and concurrency %d", o.Seconds, o.Rate, o.Concurrency)
	case o.Rate > 0 && o.MaxInFlight < 1:
		return fmt.Errorf("soak.finite: maxInFlight must be at least 1, got %d", o.MaxInFlight)
	case !(o.FirstTimeout > 0) || !(o.IdleTimeout > 0) || !(o.Linger > 0) || o.Drain < 0:
		return fmt.Errorf("soak.finite: firstTimeout, idleTimeout and linger must be positive, and drain must not be negative, got %v, %v, %v and %v",
			o.FirstTimeout, o.IdleTimeout, o.Linger, o.Drain)
	case o.Abandon < 0 || o.Abandon > 1 || o.Abandon > 0 && o.AbandonAfter < 1:
		return fmt.Errorf("soak.finite: abandon must be a share from 0 to 1, and abandonAfter at least 1, got %v and %d", o.Abandon, o.AbandonAfter)
	case abandonments[o.AbandonBy] == 0:
		return fmt.Errorf("soak.finite: abandonBy must be fin, reset or vanish, got %q", o.AbandonBy)
	case o.Abandon > 0 && o.cut() == sseclient.CutVanish:
		return sseclient.CanVanish()
	}
	return nil
}

var abandonments = map[string]sseclient.Cut{
	"": sseclient.CutFIN, "fin": sseclient.CutFIN, "reset": sseclient.CutRST, "vanish": sseclient.CutVanish,
}

func (o *finiteOptions) cut() sseclient.Cut { return abandonments[o.AbandonBy] }
