#!/bin/bash
# Runs when the time of this host is over. It succeeds, and the host continues, only if `bin/soak-aws extend` has stored
# a later end. Any failure terminates the host.
set -euo pipefail
set -a
# shellcheck source=/dev/null
. /opt/soak/settings.env
set +a
# shellcheck source=aws.sh
. /opt/soak/aws.sh

end=$(parameter "$END_PARAMETER")
[[ $end =~ ^20[0-9-]{8}T[0-9:]{8}Z$ ]]
seconds=$(($(date -d "$end" +%s) - $(date +%s)))
((seconds > 0 && seconds <= 86400)) # at most a day, the limit of soak-aws
sed -i "s/^OnCalendar=.*/OnCalendar=$(date -u -d "$end" '+%F %T UTC')/" /etc/systemd/system/soak-end.timer
systemctl daemon-reload
systemctl restart soak-end.timer
echo "SOAK: the end of this host was extended to $end"
