#!/bin/bash
# Sets up a k3s agent.
# shellcheck source=../runners/node.sh
. /opt/soak/node.sh

K3S_TOKEN=$(await "$TOKEN_PARAMETER")
k3s_start agent "--server=https://$SERVER_IP:6443"
