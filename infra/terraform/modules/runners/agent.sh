#!/bin/bash
# Sets a k3s agent up.
# shellcheck source=../runners/node.sh
. /opt/soak/node.sh

K3S_TOKEN=$(awaited "$TOKEN_PARAMETER")
export K3S_TOKEN K3S_URL="https://$SERVER_IP:6443"
k3s_install agent
