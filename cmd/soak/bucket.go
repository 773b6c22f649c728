package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3bolt"
	"github.com/spf13/cobra"
	"go.etcd.io/bbolt"
)

// bucketCommand serves a bucket where a cluster has none: infra/k6-operator/overlays/local.
func bucketCommand() *cobra.Command {
	var listen, dir string
	cmd := &cobra.Command{
		Use:   "bucket NAME",
		Short: "Serve a bucket for shards over S3, without authentication",
		Long: "bucket speaks enough of S3 for runners to leave their shards and for soak to fetch them, in clusters that\n" +
			"have no object storage. Everyone who reaches it can read and write: keep it behind a network policy.",
		Args: oneArg("bucket"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serveBucket(ctx, args[0], listen, dir)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9000", "address to listen on")
	cmd.Flags().StringVar(&dir, "dir", "bucket", "folder that holds the objects")
	return cmd
}

func serveBucket(ctx context.Context, name, listen, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the bucket's folder: %w", err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "bucket.db"), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("open the bucket %s in %s: %w", name, dir, err)
	}
	defer db.Close()
	backend := s3bolt.New(db)
	if there, err := backend.BucketExists(name); err != nil || !there {
		if err = errors.Join(err, backend.CreateBucket(name)); err != nil {
			return fmt.Errorf("make the bucket %s: %w", name, err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("serve the bucket %s: %w", name, err)
	}
	server := &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: 10 * time.Second}
	ended := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(grace) // what is not done by then is cut
	})
	defer ended()
	fmt.Fprintf(os.Stderr, "soak: the bucket s3://%s is served at http://%s\n", name, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
