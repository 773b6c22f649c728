# shellcheck shell=bash
# Sourced first by the script that sets a host up: schedules the end of the host and stores the state of its setup.
set -Eeuo pipefail
shopt -s inherit_errexit # otherwise, bash ignores a failed command inside $( )
set -a
# shellcheck source=/dev/null
. /opt/soak/settings.env
set +a
export DEBIAN_FRONTEND=noninteractive HOME=/root
# shellcheck source=aws.sh
. /opt/soak/aws.sh

# report STATE: stores the state with the id of this host. A parameter outlives its host, so a state without an id may
# belong to an earlier host.
report() {
  printf '%s' "$1" | store "$STATUS_PARAMETER" || echo "SOAK-SETUP: the state could not be stored in $STATUS_PARAMETER"
}
INSTANCE=$(metadata instance-id) || INSTANCE=unknown # the end of the host is not scheduled yet
report "pending $INSTANCE"

# finish CODE WHERE COMMAND: reports the end of the setup
finish() {
  local status="ready $INSTANCE"
  if (($1 == 0)); then
    echo "SOAK-SETUP DONE after $SECONDS s"
  else
    status="failed $INSTANCE at $2: $3"
    echo "SOAK-SETUP FAILED, $status"
    # A parameter holds 4 KB.
    status+=$'\n'$(tail -n 20 /var/log/cloud-init-output.log | tail -c 3000)
  fi
  report "$status"
}
where='' command=''
trap 'where="${BASH_SOURCE[0]##*/} line $LINENO" command=$BASH_COMMAND' ERR
trap 'finish $? "$where" "$command"' EXIT

# Schedule the end of this host before any step that can fail. The timer has a date, so it survives reboots.
units=/etc/systemd/system
if [[ ! -e $units/soak-end.timer ]]; then
  printf '%s\n' '[Unit]' 'Description=Terminate this host unless its end was extended' 'Wants=network-online.target' 'After=network-online.target' \
    '[Service]' 'Type=oneshot' \
    "ExecStart=/bin/sh -c 'timeout 120 /bin/bash /opt/soak/end.sh || exec systemctl poweroff'" >$units/soak-end.service
  printf '%s\n' '[Unit]' "Description=Terminate this host $TTL_MINUTES minutes after its first boot" \
    '[Timer]' "OnCalendar=$(date -u -d "+$TTL_MINUTES minutes" '+%F %T UTC')" 'Persistent=true' \
    '[Install]' 'WantedBy=timers.target' >$units/soak-end.timer
  systemctl daemon-reload
  systemctl enable --now soak-end.timer
fi

# Query the notices of AWS for this host every 30 s (notices.sh).
printf '%s\n' '[Unit]' 'Description=Query the notices of AWS for this host' \
  '[Service]' 'Type=oneshot' 'ExecStart=/bin/bash /opt/soak/notices.sh' >$units/soak-notices.service
printf '%s\n' '[Unit]' 'Description=Query the notices of AWS for this host every 30 s' \
  '[Timer]' 'OnActiveSec=0' 'OnUnitActiveSec=30' 'AccuracySec=1' '[Install]' 'WantedBy=timers.target' >$units/soak-notices.timer
systemctl daemon-reload
systemctl enable --now soak-notices.timer

# No automatic update may install packages, neither during the setup nor during a run.
printf '%s\n' 'APT::Periodic::Enable "0";' 'DPkg::Lock::Timeout "600";' 'Acquire::Retries "5";' >/etc/apt/apt.conf.d/99-soak
systemctl stop apt-daily.timer apt-daily-upgrade.timer || true # some hosts do not have them
systemctl mask -q apt-daily.timer apt-daily.service apt-daily-upgrade.timer apt-daily-upgrade.service
! command -v snap >/dev/null || timeout 60 snap refresh --hold || true

# retry COMMAND...: runs a command up to 5 times. The lock of apt's lists has no timeout; mirrors and registries fail
# for minutes.
retry() {
  local pause
  for pause in 5 15 30 60; do
    if "$@"; then return; fi
    echo "SOAK-SETUP: $* failed; next attempt in $pause s"
    sleep "$pause"
  done
  "$@" || { where="${BASH_SOURCE[1]##*/} line ${BASH_LINENO[0]}" command="$*"; exit 1; }
}
