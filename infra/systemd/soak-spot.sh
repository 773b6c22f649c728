#!/bin/sh
# Waits for the interruption notice of a spot instance, and stops the runners of this host.
at=http://169.254.169.254/latest
notice() {
    token=$(curl -sf -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $at/api/token) &&
        curl -sf -m 2 -H "X-aws-ec2-metadata-token: $token" $at/meta-data/spot/instance-action
}
until notice; do
    sleep "${EVERY:-5}"
done
exec systemctl stop 'soak-runner@*'
