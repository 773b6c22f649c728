# shellcheck shell=bash
# Requests to AWS with the credentials of the host's role. curl signs them, so no AWS tools are needed.

# metadata PATH: prints metadata of this host, from version 2 of its metadata service
metadata() {
  local token
  token=$(curl -sSf --retry 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
  curl -sSf --retry 5 -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}

# field PATH: prints a field, such as Parameter.Value, of the JSON object on standard input
field() {
  python3 -c 'import functools, json, sys
print(functools.reduce(lambda o, k: o[k], sys.argv[1].split("."), json.load(sys.stdin)))' "$1"
}

# signed SERVICE CURL-ARGUMENT...: runs curl with a signature; the secret uses standard input, because arguments are
# public
signed() {
  local role credentials
  role=$(metadata iam/security-credentials/)
  credentials=$(metadata "iam/security-credentials/$role")
  printf 'user = "%s:%s"\nheader = "X-Amz-Security-Token: %s"\n' "$(field AccessKeyId <<<"$credentials")" \
    "$(field SecretAccessKey <<<"$credentials")" "$(field Token <<<"$credentials")" |
    curl -sS --fail-with-body --retry 5 --config - --aws-sigv4 "aws:amz:$REGION:$1" "${@:2}"
}

# ssm ACTION JSON: calls Systems Manager
ssm() {
  signed ssm "https://ssm.$REGION.amazonaws.com/" -H "X-Amz-Target: AmazonSSM.$1" \
    -H 'Content-Type: application/x-amz-json-1.1' --data-binary "$2"
}

# parameter NAME: prints its value
parameter() {
  ssm GetParameter "{\"Name\":\"$1\",\"WithDecryption\":true}" | field Parameter.Value
}

# store NAME: stores standard input as the value of the parameter
store() {
  ssm PutParameter "$(python3 -c 'import json, sys
print(json.dumps({"Name": sys.argv[1], "Value": sys.stdin.read(), "Overwrite": True}))' "$1")" >/dev/null
}

# fetch_objects FOLDER: loads the files of this host from the bucket and checks the SHA-256 of each
fetch_objects() {
  local sha256 key
  mkdir -p "$1"
  while read -r sha256 key; do
    signed s3 "https://$BUCKET.s3.$REGION.amazonaws.com/$key" -o "$1/${key##*/}" || return
    sha256sum --check --quiet <<<"$sha256  $1/${key##*/}" || return
  done </opt/soak/objects
}

# await NAME: prints the value of a parameter after another host has stored it; fails after 15 minutes
await() {
  local value
  for _ in $(seq 180); do
    value=$(parameter "$1") || { sleep 5; continue; } # AWS limits requests
    [[ $value == pending ]] || { printf '%s\n' "$value"; return; }
    sleep 5
  done
  echo "$1 is still pending after 15 minutes; check the host that stores it" >&2
  return 1
}
