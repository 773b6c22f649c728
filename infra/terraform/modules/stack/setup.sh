#!/bin/bash
# Sets the stack's host up: Docker, the repository at one commit, .env, the stack.
# shellcheck source=../host/begin.sh
. /opt/soak/begin.sh

# Accept queues and silently dead clients (docs/stack.md). What this kernel lets nobody set is left.
cat >/etc/sysctl.d/90-soak.conf <<'EOF'
net.core.somaxconn = 8192
net.ipv4.tcp_max_syn_backlog = 8192
net.ipv4.tcp_retries2 = 8
-net.netfilter.nf_conntrack_max = 1048576
EOF

retried apt-get -qq update
retried apt-get -qq install -y --no-install-recommends ca-certificates curl docker.io docker-buildx docker-compose-v2 git
systemctl enable --now docker
sysctl -q --system

# By its full id: a branch could have moved since it was planned.
git init -q /opt/sse-soak
cd /opt/sse-soak
git fetch -q --depth 1 "$REPOSITORY_URL" "$REPOSITORY_COMMIT"
git checkout -q --detach FETCH_HEAD

# set_env NAME VALUE: in .env
set_env() {
  grep -q "^$1=" .env || { echo ".env.example has no $1" >&2; return 1; }
  sed -i "s|^$1=.*|$1=$2|" .env
}
secrets='BACKEND_TOKEN|GRAFANA_PASSWORD|PROMETHEUS_PASSWORD'
infra/compose/env .env
set_env CONNECTIONS "$CONNECTIONS"
set_env NOOP_INTERVAL "$NOOP_INTERVAL"
set_env PUBLIC_URL "http://$(metadata public-ipv4)"
set_env PROMETHEUS_MEMORY 1g # of 4 GiB
# The first host's secrets stay those of the deployment, also where the host is replaced.
stored=$(parameter "$SECRETS_PARAMETER")
if [[ $stored == pending ]]; then
  grep -E "^($secrets)=" .env | store "$SECRETS_PARAMETER"
else
  while IFS='=' read -r name value; do set_env "$name" "$value"; done <<<"$stored"
fi

mkdir -p certs/server
export VERSION=${REPOSITORY_COMMIT:0:12}
docker compose up -d --build --wait --wait-timeout 600
docker builder prune -af >/dev/null
