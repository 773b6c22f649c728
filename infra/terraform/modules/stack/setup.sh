#!/bin/bash
# Sets up the stack's host: Docker, the stack's files and images, .env, the stack.
# shellcheck source=../host/begin.sh
. /opt/soak/begin.sh

# Accept queues and silently dead clients (docs/stack.md). A leading dash ignores settings that the kernel rejects.
cat >/etc/sysctl.d/90-soak.conf <<'EOF'
net.core.somaxconn = 8192
net.ipv4.tcp_max_syn_backlog = 8192
net.ipv4.tcp_retries2 = 8
-net.netfilter.nf_conntrack_max = 1048576
EOF

retry apt-get -qq update
retry apt-get -qq install -y --no-install-recommends ca-certificates curl docker.io docker-compose-v2
systemctl enable --now docker
sysctl -q --system

# These files were built or pulled on the machine that ran terraform. The host does not clone, compile or pull.
mkdir -p /opt/sse-soak
cd /opt/sse-soak
retry fetch_objects /opt/soak/files
tar -xzf /opt/soak/files/files.tar.gz --no-same-owner
for image in /opt/soak/files/image-*; do docker load -q -i "$image"; done
rm -r /opt/soak/files

# Add the runners' hosts to the targets of the stack's Prometheus.
sed "s/REGION/$REGION/; s/RUN/$RUN/" infra/prometheus/runners-aws.yml >>infra/prometheus/prometheus.yml

# set_env NAME VALUE: sets a variable in .env
set_env() {
  grep -q "^$1=" .env || { echo ".env.example has no $1" >&2; return 1; }
  sed -i "s|^$1=.*|$1=$2|" .env
}
secrets='BACKEND_TOKEN|GRAFANA_PASSWORD|PROMETHEUS_PASSWORD'
infra/compose/env .env
set_env CONNECTIONS "$CONNECTIONS"
set_env NOOP_INTERVAL "$NOOP_INTERVAL"
set_env PUBLIC_URL http://localhost:8080 # the address of `bin/soak-aws open`
set_env COMPOSE_PROFILES "reference${ALERT_SNS_TOPIC:+,alerts}" # the runners' firewall.tf opens the port of the reference
set_env NODE_TEXTFILES /host/var/lib/prometheus/node-exporter # notices.sh writes there
set_env PROMETHEUS_MEMORY 1g # of 4 GiB
set_env ALERT_SNS_TOPIC "$ALERT_SNS_TOPIC"
# A replaced host uses the secrets of the first one.
stored=$(parameter "$SECRETS_PARAMETER")
if [[ $stored == pending ]]; then
  grep -E "^($secrets)=" .env | store "$SECRETS_PARAMETER"
else
  while IFS='=' read -r name value; do set_env "$name" "$value"; done <<<"$stored"
fi

mkdir -p certs/server
docker compose up -d --no-build --pull never --wait --wait-timeout 600
