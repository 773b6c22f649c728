#!/bin/bash
# Sets up the k3s server and the k6-operator in it.
# shellcheck source=../runners/node.sh
. /opt/soak/node.sh

# Any host with the token can join. A replaced server uses the token of the first one.
K3S_TOKEN=$(parameter "$TOKEN_PARAMETER")
if [[ $K3S_TOKEN == pending ]]; then
  K3S_TOKEN=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
  printf '%s' "$K3S_TOKEN" | store "$TOKEN_PARAMETER"
fi
k3s_start server --disable=traefik,servicelb,metrics-server,local-storage --secrets-encryption

export KUBECONFIG=/etc/rancher/k3s/k3s.yaml
for _ in $(seq 60); do k3s kubectl wait --for=condition=Ready node --all --timeout=5s && break; sleep 2; done
k3s kubectl wait --for=condition=Ready node --all --timeout=10s
# --server-side, because the definition of TestRun is too long for an annotation.
k3s kubectl apply --server-side -f /opt/soak/files/operator.yaml
k3s kubectl -n k6-operator-system rollout status deployment --timeout=300s
# The kubeconfig contains a local address; a session of Systems Manager leads to it. The first line names the host.
{ echo "# $INSTANCE" && cat "$KUBECONFIG"; } | store "$KUBECONFIG_PARAMETER"
