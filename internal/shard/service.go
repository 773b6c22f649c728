package shard

import (
	"cmp"
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
)

// A Service is the part of a service description that a verdict needs; zero: a run without streams or shards.
type Service struct {
	Name       string     `json:"name"`
	SHA256     string     `json:"sha256"` // checksum of the description
	CountBasis CountBasis `json:"counts"`
	Message    string     `json:"noun"`                        // message or noop; see Noun
	Data       string     `json:"data,omitempty"`              // data of each message, if the description has message.data
	AnyOrder   bool       `json:"any_order,omitempty"`         // the service does not guarantee the order of messages
	Repeats    bool       `json:"repeats,omitempty"`           // an unnumbered message may arrive more than once
	Unmarked   bool       `json:"unmarked,omitempty"`          // messages do not contain the marker of the run
	PerTopic   bool       `json:"per_topic,omitempty"`         // all streams of a topic receive the same numbers
	HeartbeatS float64    `json:"heartbeat_every_s,omitempty"` // expected maximum silence in seconds; 0: unknown
	// LifetimeS is the minimum lifetime of a stream in seconds, if the service ends streams after a lifetime.
	LifetimeS float64 `json:"lifetime_s,omitempty"`
	// Resume is the part of a request that has the position of the client: "Last-Event-ID", "the parameter since" or
	// "none". Gap describes the announcement of missing messages; "": the service makes none.
	Resume string `json:"resume,omitempty"`
	Gap    string `json:"gap,omitempty"`
	// EndRequest is the request that ends a stream, such as "DELETE /event/forcedisconnect"; "": clients send no such
	// request.
	EndRequest string `json:"end_request,omitempty"`
	Backend    bool   `json:"backend,omitempty"` // see service.Service.MatchesBackend
}

// CountBasis is the property by which messages are counted.
type CountBasis string

// The values of CountBasis.
const (
	CountByInterval   CountBasis = "interval" // by interval, and by number if messages have one
	CountByNumber     CountBasis = "numbers"  // by number
	CountNothing      CountBasis = "nothing"  // not counted
	CountByComparison CountBasis = "shared"   // unnumbered; the streams of a topic are compared with each other
)

// ServiceOf returns the part of a description that a shard stores.
func ServiceOf(s *service.Service) Service {
	return Service{
		Name: s.Name, SHA256: s.Hash(), CountBasis: countBasisOf(&s.Message), Message: s.Message.Noun, Data: s.Message.Data(),
		AnyOrder: s.Message.AnyOrder, Repeats: s.Message.Shared && s.Message.AtLeastOnce, Unmarked: !s.Message.Marked,
		PerTopic: s.Message.Numbered && s.Message.PerTopic && !s.HasURL, HeartbeatS: s.HeartbeatEvery.Seconds(), LifetimeS: s.End.Shortest.Seconds(),
		Resume: s.Resume.String(), Gap: s.Gap(), EndRequest: s.End.Request.Route(), Backend: s.MatchesBackend(),
	}
}

func countBasisOf(m *service.Message) CountBasis {
	switch {
	case m.Interval > 0:
		return CountByInterval
	case m.Numbered:
		return CountByNumber
	case m.Shared:
		return CountByComparison
	}
	return CountNothing
}

// Noun returns the word for a message in reports.
func (s *Service) Noun() string { return cmp.Or(s.Message, "message") }

// HasInterval reports whether messages are expected at an interval. It returns true for the zero Service.
func (s *Service) HasInterval() bool { return s.CountBasis == CountByInterval || s.CountBasis == "" }

// CountsMessages reports whether messages are counted.
func (s *Service) CountsMessages() bool { return s.CountBasis != CountNothing }

// ComparesClients reports whether the streams of a topic are compared with each other.
func (s *Service) ComparesClients() bool { return s.CountBasis == CountByComparison }

// Heartbeat returns the expected maximum silence of a stream, or 0 if the description has no heartbeat.every.
func (s *Service) Heartbeat() time.Duration {
	return time.Duration(s.HeartbeatS * float64(time.Second))
}

// Resumes reports whether a client can resume a stream after a disconnect. It returns true for the zero Service.
func (s *Service) Resumes() bool { return s.Resume != "none" }

// EndsStreams reports whether the service ends streams after a lifetime.
func (s *Service) EndsStreams() bool { return s.LifetimeS > 0 }

// checkServices sets the service of the run. It reports descriptions that differ, or that do not fit the publisher.
func (m *Merged) checkServices(parts []part) {
	defer m.completeService()
	for i := range parts {
		if i == 0 {
			m.Service = parts[0].service
		}
		if parts[i].service != m.Service {
			m.problem("%s used a different service description from %s, so their counts cannot be added; use one description", m.nameAt(i), m.nameAt(0))
		}
		if p := &parts[i].plan; p.Published() && parts[i].service.CountBasis != CountByNumber {
			m.problem("%s did not count messages by their numbers, but published messages have numbers", m.nameAt(i))
		}
	}
}

// completeService sets the built-in service that the plan names, if no runner left a description.
func (m *Merged) completeService() {
	if m.Service != (Service{}) || m.Plan.Connections == 0 {
		return
	}
	if known, ok := service.BuiltIn(m.Plan.Service, m.Plan.Interval()); ok {
		m.Service = ServiceOf(known)
	}
}
