// Command pocketbase is PocketBase for tests, with the collection that load-tests/services/pocketbase.js uses. It is a
// separate module, so that sse-soak does not have its dependencies.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	_ "github.com/pocketbase/pocketbase/migrations" // creates the tables of PocketBase
)

const collection = "soak"

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "address:port")
	dir := flag.String("dir", "pb_data", "folder of the databases")
	lifetime := flag.Duration("lifetime", 0, "maximum lifetime of a stream (0: 30 minutes, the default of PocketBase)")
	flag.Parse()
	if err := run(*listen, *dir, *lifetime); err != nil {
		fmt.Fprintln(os.Stderr, "pocketbase:", err)
		os.Exit(1)
	}
}

func run(listen, dir string, lifetime time.Duration) error {
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir})
	if err := app.Bootstrap(); err != nil {
		return err
	}
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.InstallerFunc = nil // the installer opens a browser
		if err := createCollection(e.App); err != nil {
			return fmt.Errorf("create the collection %s: %w", collection, err)
		}
		return e.Next()
	})
	if lifetime > 0 {
		app.OnRealtimeConnectRequest().BindFunc(func(e *core.RealtimeConnectRequestEvent) error {
			e.MaxTimeout = lifetime
			return e.Next()
		})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		// apis.Serve returns when this event is triggered.
		terminate := &core.TerminateEvent{App: app}
		_ = app.OnTerminate().Trigger(terminate, func(e *core.TerminateEvent) error { return e.App.ResetBootstrapState() })
	}()
	return apis.Serve(app, apis.ServeConfig{HttpAddr: listen})
}

// createCollection creates the collection if it does not exist. Every client may list, view and create records.
func createCollection(app core.App) error {
	if _, err := app.FindCollectionByNameOrId(collection); err == nil {
		return nil
	}
	public := ""
	c := core.NewBaseCollection(collection)
	c.ListRule, c.ViewRule, c.CreateRule = &public, &public, &public
	c.Fields.Add(
		&core.TextField{Name: "topic"}, &core.TextField{Name: "run"}, &core.TextField{Name: "sum"},
		&core.NumberField{Name: "seq"}, &core.NumberField{Name: "t"},
	)
	return app.Save(c)
}
