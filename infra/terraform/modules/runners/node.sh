# shellcheck shell=bash
# First steps of both kinds of hosts of the runners: limits, metrics, the files of k3s.
# shellcheck source=../host/begin.sh
. /opt/soak/begin.sh

# Ports for all streams of a host, because pods connect with its address. A leading dash ignores settings that the
# kernel rejects.
cat >/etc/sysctl.d/90-soak.conf <<'EOF'
net.ipv4.ip_local_port_range = 1024 65535
net.ipv4.ip_local_reserved_ports = 6443,6444,8472,9100,10010,10248-10259,30000-32767
-net.netfilter.nf_conntrack_max = 1048576
EOF
sysctl -q --system

# The metrics of the machine, for the stack's Prometheus. ethtool exports only AWS's counters of dropped packets. Ubuntu
# keeps one version of the exporter for the life of the release. The recommended packages would check for updates.
exporter=/etc/systemd/system/prometheus-node-exporter.service.d/soak.conf
mkdir -p "${exporter%/*}"
printf '%s\n' '[Service]' ExecStart= 'ExecStart=/usr/bin/prometheus-node-exporter --collector.tcpstat --collector.ethtool \
--collector.ethtool.device-include=^e --collector.ethtool.metrics-include=_allowance_exceeded --collector.textfile.directory=/var/lib/prometheus/node-exporter' >"$exporter"
retry apt-get -qq update
retry apt-get -qq install -y --no-install-recommends prometheus-node-exporter

# k3s, its images, the k6-operator and the runners' image: no registry is needed. k3s loads the images in agent/images
# when it starts.
retry fetch_objects /opt/soak/files
install -m 755 /opt/soak/files/k3s /usr/local/bin/k3s
mkdir -p /var/lib/rancher/k3s/agent/images
mv /opt/soak/files/*.tar.* /var/lib/rancher/k3s/agent/images/

# k3s_start ARGUMENT...: starts k3s as a server or an agent, with the unit of its own installer. Pods inherit
# LimitNOFILE.
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
