// Command mercure is a Mercure hub for tests. Publishers need a JWT; subscribers need one if SUBSCRIBER_JWT_KEY is
// set. It is a separate module, so that sse-soak does not have its dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dunglas/mercure"
)

type settings struct {
	listen, history     string
	events              uint64
	heartbeat, lifetime time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:3000", "address:port")
	flag.StringVar(&s.history, "history", "", "file of the history (transport bolt; empty: transport local without a history)")
	flag.Uint64Var(&s.events, "events", 0, "maximum number of events in the history (0: unlimited)")
	flag.DurationVar(&s.heartbeat, "heartbeat", mercure.DefaultHeartbeat, "time without an event after which a stream receives a comment")
	flag.DurationVar(&s.lifetime, "lifetime", mercure.DefaultWriteTimeout, "maximum lifetime of a stream (0: unlimited)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Getenv("PUBLISHER_JWT_KEY"), os.Getenv("SUBSCRIBER_JWT_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, "mercure:", err)
		os.Exit(1)
	}
}

// run serves the hub until ctx ends. If subscriberKey is "", subscribers need no JWT.
func run(ctx context.Context, s settings, publisherKey, subscriberKey string) error {
	if publisherKey == "" {
		return errors.New("PUBLISHER_JWT_KEY must be the HS256 key of the publisher's JWT, got none")
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	options := []mercure.Option{
		mercure.WithPublisherJWT([]byte(publisherKey), "HS256"), mercure.WithLogger(logger),
		mercure.WithHeartbeat(s.heartbeat), mercure.WithWriteTimeout(s.lifetime),
	}
	if subscriberKey == "" {
		options = append(options, mercure.WithAnonymous())
	} else {
		options = append(options, mercure.WithSubscriberJWT([]byte(subscriberKey), "HS256"))
	}
	if s.history != "" {
		list := mercure.NewSubscriberList(mercure.DefaultSubscriberListCacheSize)
		bolt, err := mercure.NewBoltTransport(list, logger, s.history, "", s.events, mercure.BoltDefaultCleanupFrequency)
		if err != nil {
			return fmt.Errorf("open the history: %w", err)
		}
		options = append(options, mercure.WithTransport(bolt))
	}
	// The end of ctx ends only streams without a lifetime. server.Close ends the other streams.
	hub, err := mercure.NewHub(ctx, options...)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: s.listen, Handler: hub, ReadHeaderTimeout: 10 * time.Second}
	result := make(chan error, 1)
	go func() { result <- server.ListenAndServe() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	_ = server.Close()
	return hub.Stop(context.WithoutCancel(ctx))
}
