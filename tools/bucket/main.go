// Command bucket serves a bucket over S3 without authentication, for clusters that have no object storage
// (infra/k6-operator/overlays/local) and for tests. Every client that reaches the server can read and write the bucket,
// so a network policy must protect it.
package main

import (
	"context"
	"errors"
	"flag"
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
	"go.etcd.io/bbolt"
)

func main() {
	name := flag.String("name", "soak", "name of the bucket")
	listen := flag.String("listen", "127.0.0.1:9000", "address to listen on")
	dir := flag.String("dir", "bucket", "folder of the objects")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *name, *listen, *dir); err != nil {
		fmt.Fprintf(os.Stderr, "bucket: %v\n", err)
		os.Exit(1) //nolint:gocritic // exitAfterDefer: the process ends
	}
}

func serve(ctx context.Context, name, listen, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create the folder of the bucket: %w", err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "bucket.db"), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("open the bucket %s in %s: %w", name, dir, err)
	}
	defer db.Close()
	backend := s3bolt.New(db)
	if found, err := backend.BucketExists(name); err != nil || !found {
		if err = errors.Join(err, backend.CreateBucket(name)); err != nil {
			return fmt.Errorf("create the bucket %s: %w", name, err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("serve the bucket %s: %w", name, err)
	}
	server := &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: 10 * time.Second}
	shutdown := make(chan struct{}) // closed when the requests in progress have ended, or after 5 s
	stop := context.AfterFunc(ctx, func() {
		defer close(shutdown)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	defer stop()
	fmt.Fprintf(os.Stderr, "bucket: serving s3://%s at http://%s\n", name, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-shutdown
	return nil
}
