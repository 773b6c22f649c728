package capsule

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/sse-soak/sse-soak/internal/history"
)

// known holds the versions, images and kernel settings that the series contain, of the hosts of the run.
type known struct {
	series     map[string]bool
	builds     map[string]map[string]string // labels, by their JSON text
	containers map[string]container
	kernels    map[string]map[string]string // by instance, then by setting
}

// A container is the image of a container that cAdvisor saw.
type container struct {
	Image string `json:"image"`
	ID    string `json:"image_id,omitempty"` // from a label of Docker Compose
}

func newKnown() *known {
	return &known{series: map[string]bool{}, builds: map[string]map[string]string{}, containers: map[string]container{}, kernels: map[string]map[string]string{}}
}

const (
	sysctlMetric = "node_sysctl_" // of node_exporter
	composeImage = "container_label_com_docker_compose_image"
)

// see adds the labels and values of one series.
func (k *known) see(s *history.Series) {
	labels := history.Labels(s)
	key := labelKey(labels)
	k.series[key] = true
	name := labels["__name__"]
	switch {
	case strings.HasSuffix(name, "_build_info"), name == "node_uname_info", name == "node_os_info":
		k.builds[key] = labels
	case name == "container_last_seen" && labels["image"] != "":
		k.containers[labels["name"]] = container{labels["image"], labels[composeImage]}
	case strings.HasPrefix(name, sysctlMetric) && len(s.Samples) > 0:
		setting := strings.TrimPrefix(name, sysctlMetric)
		if index := labels["index"]; index != "" { // of a setting with several values
			setting += "[" + index + "]"
		}
		if last := s.Samples[len(s.Samples)-1].Value; !math.IsNaN(last) {
			host := k.kernels[labels["instance"]]
			if host == nil {
				host = map[string]string{}
				k.kernels[labels["instance"]] = host
			}
			host[setting] = strconv.FormatFloat(last, 'f', -1, 64)
		}
	}
}

func labelKey(labels map[string]string) string {
	text, _ := json.Marshal(labels) // in the order of names
	return string(text)
}

// versions is versions.json.
type versions struct {
	Soak       string               `json:"soak"`
	Go         string               `json:"go"`
	K6         []string             `json:"k6"`
	Builds     []map[string]string  `json:"builds,omitempty"`     // labels of *_build_info and of similar series
	Containers map[string]container `json:"containers,omitempty"` // that cAdvisor saw, by name
	Compose    map[string]string    `json:"compose,omitempty"`    // images that compose.yaml names, by service
	Docker     map[string]string    `json:"docker,omitempty"`     // id and digests of these images, from Docker on the machine that made the capsule
}

func versionsOf(ctx context.Context, from Source, run ran, k *known) versions {
	v := versions{Soak: from.Version, Go: runtime.Version(), Containers: k.containers, Compose: composeImages(from.Compose)}
	for _, r := range run.Runners {
		if !slices.Contains(v.K6, r.K6) {
			v.K6 = append(v.K6, r.K6)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.builds)) {
		v.Builds = append(v.Builds, k.builds[key])
	}
	v.Docker = digests(ctx, slices.Collect(maps.Values(v.Compose)))
	return v
}

// composeImages returns the images of compose.yaml by service, none if there is no such file.
func composeImages(file string) map[string]string {
	var compose struct {
		Services map[string]struct {
			Image string `yaml:"image"`
		} `yaml:"services"`
	}
	text, err := os.ReadFile(file) //nolint:gosec // G304: the compose.yaml of the working directory
	if err != nil || yaml.Unmarshal(text, &compose) != nil {
		return nil
	}
	images := map[string]string{}
	for service, s := range compose.Services {
		if s.Image != "" {
			images[service] = s.Image
		}
	}
	return images
}

// dockerWithin limits the time of all calls of Docker: a Docker that hangs must not delay the capsule.
const dockerWithin = 5 * time.Second

// digests returns the ids and digests of images from Docker, none if there is no Docker.
func digests(ctx context.Context, images []string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, dockerWithin)
	defer cancel()
	found := map[string]string{}
	for _, image := range images {
		cmd := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", `{{.Id}} {{join .RepoDigests " "}}`, image) //nolint:gosec // G204: image names of containers, without a shell
		cmd.WaitDelay = time.Second
		if said, err := cmd.Output(); err == nil {
			found[image] = strings.TrimSpace(string(said))
		}
	}
	return found
}

// settingsThatMatter are the sysctls that affect thousands of long connections.
var settingsThatMatter = []string{
	"fs/file-max", "fs/nr_open", "kernel/osrelease", "net/core/netdev_max_backlog", "net/core/rmem_max", "net/core/somaxconn", "net/core/wmem_max",
	"net/ipv4/ip_local_port_range", "net/ipv4/tcp_congestion_control", "net/ipv4/tcp_fin_timeout", "net/ipv4/tcp_keepalive_intvl",
	"net/ipv4/tcp_keepalive_probes", "net/ipv4/tcp_keepalive_time", "net/ipv4/tcp_max_syn_backlog", "net/ipv4/tcp_mem", "net/ipv4/tcp_retries2",
	"net/ipv4/tcp_rmem", "net/ipv4/tcp_syncookies", "net/ipv4/tcp_tw_reuse", "net/ipv4/tcp_wmem", "net/netfilter/nf_conntrack_max",
	"net/netfilter/nf_conntrack_tcp_timeout_established", "vm/swappiness",
}

// kernel is kernel.json.
type kernel struct {
	Here  map[string]string            `json:"here"`            // of the machine that made the capsule
	Hosts map[string]map[string]string `json:"hosts,omitempty"` // of the hosts with node_exporter, by instance
}

func kernelOf(k *known) kernel {
	out := kernel{Here: map[string]string{}, Hosts: k.kernels}
	out.Here["hostname"], _ = os.Hostname()
	for _, name := range settingsThatMatter {
		if text, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil { //nolint:gosec // G304: names of a fixed list
			out.Here[strings.ReplaceAll(name, "/", ".")] = strings.Join(strings.Fields(string(text)), " ")
		}
	}
	if len(out.Here) == 1 {
		out.Here["note"] = fmt.Sprintf("%s has no /proc/sys", runtime.GOOS)
	}
	return out
}
