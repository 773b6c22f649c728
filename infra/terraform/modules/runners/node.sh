# shellcheck shell=bash
# What both kinds of host of the runners do first: limits, metrics, the files of k3s.
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

# k3s, its images, the k6-operator and the runners' image: no registry is needed. k3s loads the images in that folder when it starts.
retried fetch_objects /opt/soak/files
install -m 755 /opt/soak/files/k3s /usr/local/bin/k3s
mkdir -p /var/lib/rancher/k3s/agent/images
mv /opt/soak/files/*.tar.* /var/lib/rancher/k3s/agent/images/

# k3s_start ARGUMENT...: starts k3s, as server or as agent, as its own installer does. Pods inherit LimitNOFILE.
k3s_start() {
  (umask 077 && printf 'K3S_TOKEN=%s
' "$K3S_TOKEN" >/etc/k3s.env)
  printf '%s
' '[Unit]' 'Description=Kubernetes of the runners' 'Wants=network-online.target' 'After=network-online.target' \
    '[Service]' 'Type=notify' 'EnvironmentFile=/etc/k3s.env' 'ExecStartPre=-/sbin/modprobe -a br_netfilter overlay' \
    "ExecStart=/usr/local/bin/k3s $* --node-ip=$(metadata local-ipv4)" 'KillMode=process' 'Delegate=yes' 'LimitNOFILE=1048576' \
    'LimitNPROC=infinity' 'LimitCORE=infinity' 'TasksMax=infinity' 'TimeoutStartSec=0' 'Restart=always' 'RestartSec=5s' \
    '[Install]' 'WantedBy=multi-user.target' >/etc/systemd/system/k3s.service
  systemctl daemon-reload
  systemctl enable --now k3s.service
}
