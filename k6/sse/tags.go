package sse

import (
	"net"
	"net/url"
	"strconv"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// describeRequest sets the tags that are known before the dial. The tags url and name omit the query, the fragment and
// the credentials of a URL, which may contain ids or secrets. As in k6/http, a name that the user sets replaces both
// tags. In that case u may be nil.
func describeRequest(tm *metrics.TagsAndMeta, enabled *metrics.SystemTagSet, u *url.URL, method string) {
	name, hasName := tm.Tags.Get(metrics.TagName.String())
	if !hasName {
		plain := *u
		plain.User, plain.RawQuery, plain.ForceQuery, plain.Fragment, plain.RawFragment = nil, "", false, "", ""
		name = plain.String()
		tm.SetSystemTagOrMetaIfEnabled(enabled, metrics.TagName, name)
	}
	tm.SetSystemTagOrMetaIfEnabled(enabled, metrics.TagURL, name)
	tm.SetSystemTagOrMetaIfEnabled(enabled, metrics.TagMethod, method)
}

// describeResponse returns tm with the tags of a response. If r is nil, it returns tm unchanged.
func describeResponse(tm metrics.TagsAndMeta, state *lib.State, r *sseclient.Response) metrics.TagsAndMeta {
	if r == nil {
		return tm
	}
	tm = tm.Clone()
	enabled := state.Options.SystemTags
	tm.SetSystemTagOrMetaIfEnabled(enabled, metrics.TagStatus, strconv.Itoa(r.Status))
	tm.SetSystemTagOrMetaIfEnabled(enabled, metrics.TagProto, r.Proto)
	if enabled.Has(metrics.TagIP) && r.Remote != nil {
		if ip, _, err := net.SplitHostPort(r.Remote.String()); err == nil {
			tm.SetSystemTagOrMeta(metrics.TagIP, ip)
		}
	}
	if r.TLS != nil {
		info, _ := netext.ParseTLSConnState(r.TLS)
		tm.SetSystemTagOrMetaIfEnabled(enabled, metrics.TagTLSVersion, info.Version)
	}
	return tm
}
