"""Runs the AWS CLI in forks of a process that has loaded it, because loading takes more than a second of CPU time.

Usage: forking.py SOCKET. A client sends {"args": [...], "env": {...}} with descriptors for output and errors, and gets the exit code.
"""
import json, os, signal, socket, sys

from awscli.clidriver import create_clidriver

driver = create_clidriver()
driver._get_command_table()
# The session keeps the models and endpoints that a client reads, so that no fork reads them.
for service in ("ec2", "iam", "resourcegroupstaggingapi", "s3", "scheduler", "service-quotas", "ssm", "sts"):
    driver.session.create_client(service, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(64)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
while True:
    client, _ = server.accept()
    if os.fork():
        client.close()
        continue
    data, (out, err), _, _ = socket.recv_fds(client, 1 << 20, 2)
    request = json.loads(data)
    os.environ.clear()
    os.environ.update(request["env"])
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    code = 1
    try:
        code = driver.main(request["args"])
    except SystemExit as e:
        code = e.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        client.send(bytes([code or 0]))
        os._exit(0)
