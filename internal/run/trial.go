package run

import (
	"context"
	"fmt"
	"os"

	"github.com/sse-soak/sse-soak/internal/target"
	"github.com/sse-soak/sse-soak/internal/trial"
)

// tryService tries the description out on its service, so that one that does not fit it is found before the load, and before the run has a folder. Pods
// may reach a service that this machine does not: there it is left out.
func (s *session) tryService(ctx context.Context) error {
	if !s.isModule || s.On != "local" {
		return nil
	}
	at, err := target.Remotes(s.Plan.BackendURLs(), os.Getenv("BACKEND_TOKEN"), s.certificates)
	if err != nil {
		return err
	}
	if err := at.Probe(ctx, 0); err != nil {
		return err
	}
	described := *s.described
	if !s.Plan.Published() {
		described.Publish = nil
	}
	err = trial.Run(ctx, trial.Config{
		Service: &described, Base: s.Plan.BackendOf(max(s.part, 1)), Topic: s.Plan.TopicName(0), ID: s.Plan.Prefix + "trial", Marker: s.Plan.Marker, Padding: s.Plan.Padding(),
		SubscribeToken: os.Getenv(s.described.Variable()), OwnToken: s.ownToken, PublishToken: os.Getenv("PUBLISH_TOKEN"), AcceptEncoding: s.Plan.Accept(), HTTPVersion: s.Plan.HTTPVersion, FollowRedirects: s.Plan.FollowRedirects, Note: s.warn,
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the description of %s does not fit what is at %s: %w", s.Plan.ServiceName(), s.Plan.BackendURL, err)
	}
	return err
}
