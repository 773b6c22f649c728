# shellcheck shell=bash
# What both kinds of host of the runners do first: limits, the image, k3s's installer.
# shellcheck source=../host/begin.sh
. /opt/soak/begin.sh

# Ports for all streams of a host: pods go out by its address. What this kernel lets nobody set is left.
cat >/etc/sysctl.d/90-soak.conf <<'EOF'
net.ipv4.ip_local_port_range = 1024 65535
net.ipv4.ip_local_reserved_ports = 6443,6444,8472,9100,10010,10248-10259,30000-32767
-net.netfilter.nf_conntrack_max = 1048576
EOF
sysctl -q --system

# The machine's metrics, for the stack's Prometheus. Of ethtool's only AWS's counters of what it dropped. Ubuntu keeps one
# version of the exporter for the life of the release; what it recommends would look for updates.
exporter=/etc/systemd/system/prometheus-node-exporter.service.d/soak.conf
mkdir -p "${exporter%/*}"
printf '%s\n' '[Service]' ExecStart= 'ExecStart=/usr/bin/prometheus-node-exporter --collector.tcpstat --collector.ethtool \
--collector.ethtool.device-include=^e --collector.ethtool.metrics-include=_allowance_exceeded --collector.textfile.directory=/var/lib/prometheus/node-exporter' >"$exporter"
retried apt-get -qq update
retried apt-get -qq install -y --no-install-recommends prometheus-node-exporter

# k3s loads what lies in this folder when it starts: no registry is needed.
images=/var/lib/rancher/k3s/agent/images
mkdir -p "$images"
signed s3 "$IMAGE_URL" -o "$images/runner.tar.gz"
sha256sum --check --quiet <<<"$IMAGE_SHA256  $images/runner.tar.gz"

private_ip=$(metadata local-ipv4)
# The installer of that version loads the binary and holds it against the release's checksums. Its
# unit sets LimitNOFILE=1048576, which pods inherit.
curl -sSfL --retry 5 -o /opt/soak/k3s-install.sh "https://raw.githubusercontent.com/k3s-io/k3s/$K3S_VERSION/install.sh"

# k3s_install ARGUMENT...: installs and starts k3s, as server or as agent
k3s_install() {
  INSTALL_K3S_VERSION=$K3S_VERSION INSTALL_K3S_EXEC="$* --node-ip=$private_ip" sh /opt/soak/k3s-install.sh
}
