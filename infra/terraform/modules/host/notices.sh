#!/bin/bash
# Writes the notices of AWS for this host to a file of node_exporter, which Prometheus scrapes: events such as a reboot,
# and the interruption of a spot instance. The boot id shows which runners ran on this host.
set -euo pipefail
# shellcheck source=aws.sh
. "${BASH_SOURCE[0]%/*}/aws.sh"

to=${1:-/var/lib/prometheus/node-exporter}
mkdir -p "$to"
# Without a notice, the service responds with 404.
events=$(metadata events/maintenance/scheduled 2>/dev/null || echo '[]')
spot=$(metadata spot/instance-action 2>/dev/null || echo '{}')
end=$(grep '^OnCalendar=' "${TIMER:-/etc/systemd/system/soak-end.timer}" || true)
python3 - "$events" "$spot" "$end" <<'EOF' >"$to/soak.prom.part"
import datetime, email.utils, json, sys
at = {}
def notice(what, when):
    at[what] = min(at.get(what, when), when)
for event in json.loads(sys.argv[1]):
    if event.get("State", "active") == "active":
        notice(event["Code"], email.utils.parsedate_to_datetime(event["NotBefore"]).timestamp())
if sys.argv[3]: # the end of this host, which extend changes
    end = datetime.datetime.strptime(sys.argv[3], "OnCalendar=%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=datetime.timezone.utc)
    print("soak_host_end_timestamp_seconds %d" % end.timestamp())
spot = json.loads(sys.argv[2])
if "action" in spot:
    notice("spot " + spot["action"], datetime.datetime.fromisoformat(spot["time"].replace("Z", "+00:00")).timestamp())
print('soak_host_info{boot_id="%s"} 1' % open("/proc/sys/kernel/random/boot_id").read().strip())
for what, when in sorted(at.items()):
    print("soak_host_notice_timestamp_seconds{what=%s} %d" % (json.dumps(what), when))
EOF
mv "$to/soak.prom.part" "$to/soak.prom"
