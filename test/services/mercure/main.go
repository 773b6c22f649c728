// Command mercure is a Mercure hub for the tests: the hub's own module with usual settings and a few flags. Publishers
// need a JWT; subscribers need one if SUBSCRIBER_JWT_KEY is set.
//
// It is a separate module, so that sse-soak does not have its dependencies.
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
	flag.StringVar(&s.history, "history", "", "file that keeps what was published (transport bolt); without it nothing is kept (transport local)")
	flag.Uint64Var(&s.events, "events", 0, "how many events the history keeps; 0: all")
	flag.DurationVar(&s.heartbeat, "heartbeat", mercure.DefaultHeartbeat, "after so long without an event a stream gets a comment")
	flag.DurationVar(&s.lifetime, "lifetime", mercure.DefaultWriteTimeout, "the longest life of a stream; 0: no end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Getenv("PUBLISHER_JWT_KEY"), os.Getenv("SUBSCRIBER_JWT_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, "mercure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, key, subscribers string) error {
	if key == "" {
		return errors.New("PUBLISHER_JWT_KEY is empty: set it to the secret (HS256) of the publisher's JWT")
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	options := []mercure.Option{
		mercure.WithPublisherJWT([]byte(key), "HS256"), mercure.WithLogger(logger),
		mercure.WithHeartbeat(s.heartbeat), mercure.WithWriteTimeout(s.lifetime),
	}
	if subscribers == "" {
		options = append(options, mercure.WithAnonymous())
	} else {
		options = append(options, mercure.WithSubscriberJWT([]byte(subscribers), "HS256"))
	}
	if s.history != "" {
		list := mercure.NewSubscriberList(mercure.DefaultSubscriberListCacheSize)
		bolt, err := mercure.NewBoltTransport(list, logger, s.history, "", s.events, mercure.BoltDefaultCleanupFrequency)
		if err != nil {
			return fmt.Errorf("open the history: %w", err)
		}
		options = append(options, mercure.WithTransport(bolt))
	}
	// When this context ends, the hub ends only streams without a lifetime. server.Close ends the others.
	hub, err := mercure.NewHub(ctx, options...)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: s.listen, Handler: hub, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = server.Close()
	return hub.Stop(context.WithoutCancel(ctx))
}
