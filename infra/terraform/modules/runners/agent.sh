#!/bin/bash
# Sets a k3s agent up.
# shellcheck source=../runners/node.sh
. /opt/soak/node.sh

K3S_TOKEN=$(awaited "$TOKEN_PARAMETER")
k3s_start agent "--server=https://$SERVER_IP:6443"
