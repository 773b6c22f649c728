// Command cadvisor serves /metrics and /healthz with the libraries of cAdvisor. The original command is in a module
// that the Go module proxy does not have.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	_ "github.com/google/cadvisor/container/docker/install"
	"github.com/google/cadvisor/lib/cache/memory"
	"github.com/google/cadvisor/lib/container"
	_ "github.com/google/cadvisor/lib/container/raw"
	"github.com/google/cadvisor/lib/manager"
	"github.com/google/cadvisor/lib/metrics"
	info "github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

var metricSet = container.MetricSet{
	container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.NetworkUsageMetrics: {},
	container.DiskIOMetrics: {}, container.ProcessMetrics: {}, container.DiskUsageMetrics: {},
}

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	if err := serve(":8080"); err != nil {
		log.Fatal(err)
	}
}

func serve(address string) error {
	// The library defines this flag but does not read it.
	interval, err := time.ParseDuration(flag.Lookup("housekeeping_interval").Value.String())
	if err != nil {
		return err
	}
	dynamic := true
	m, err := manager.New(memory.New(2*time.Minute, nil), sysfs.NewRealSysFs(),
		manager.HousekeepingConfig{Interval: &interval, AllowDynamic: &dynamic}, metricSet, []string{""}, []string{""}, "", 0)
	if err != nil {
		return fmt.Errorf("create the manager of containers: %w", err)
	}
	if err := m.Start(); err != nil {
		return fmt.Errorf("start the manager of containers: %w", err)
	}
	options := info.RequestOptions{IdType: "name", Count: 1, Recursive: true}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewPrometheusCollector(m, nil, metricSet, clock.RealClock{}, options), metrics.NewPrometheusMachineCollector(m, metricSet))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	return (&http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe()
}
