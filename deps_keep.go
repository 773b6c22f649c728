//go:build keep

package keep

import (
	_ "github.com/HdrHistogram/hdrhistogram-go"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/common/expfmt"
	_ "github.com/shirou/gopsutil/v4/process"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "github.com/vbauerster/mpb/v8"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "go.k6.io/k6/v2/js/modulestest"
)
