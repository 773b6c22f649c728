package sse

import (
	"crypto/rand"
	"maps"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// debugOf returns a function that creates the log of one request, or nil without k6's option http-debug.
func debugOf(state *lib.State, tags *metrics.TagsAndMeta) func() *sseclient.Debug {
	option := state.Options.HTTPDebug.String
	if option == "" {
		return nil
	}
	return func() *sseclient.Debug {
		fields := logrus.Fields{}
		for _, set := range []map[string]string{tags.Tags.Map(), tags.Metadata} {
			for name, value := range set {
				fields[name] = value
			}
		}
		maps.Copy(fields, logrus.Fields{"source": "http-debug", "vu": state.VUID, "iter": state.Iteration, "request_id": rand.Text()})
		log := state.Logger.WithFields(fields)
		return &sseclient.Debug{Log: func(text string) { log.Info(text) }, Body: option == "full"}
	}
}
