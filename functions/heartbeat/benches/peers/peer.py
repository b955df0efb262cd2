"""The heartbeat function's main job as a Python handler would do it, on boto3: what `cold.py` starts beside ours.

It reads the configuration from S3 and the keys from Secrets Manager once, proves a runtime's token, and records the
heartbeat by one conditional write. No coalescing, no batches, no webhooks: it is quicker than one that did all.
"""

import hashlib
import hmac
import http.client
import json
import os
import re
import time

import boto3

API = os.environ["AWS_LAMBDA_RUNTIME_API"]
DYNAMODB, S3, SECRETS = boto3.client("dynamodb"), boto3.client("s3"), boto3.client("secretsmanager")
PATH = re.compile(r"/runtimes/([^/]+)/([^/]+)/heartbeat")
kept = {}


def settings():
    if not kept:
        bucket, key = os.environ["FURLOUGH_CONFIG"].removeprefix("s3://").split("/", 1)
        text = S3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        secret = json.loads(SECRETS.get_secret_value(SecretId=os.environ["FURLOUGH_KEYS"])["SecretString"])
        kept.update(config=text, keys=secret["runtime_keys"])
    return kept


def proved(keys, runtime, token):
    """The registration that a token proves, or None."""
    _, epoch, mac = token.split(".")
    told = b"furlough runtime token 1\0" + runtime.encode() + b"\0" + int(epoch).to_bytes(8, "big")
    codes = [hmac.new(key.encode(), told, hashlib.sha256).hexdigest() for key in keys]
    return int(epoch) if any([hmac.compare_digest(code, mac) for code in codes]) else None


def handle(event):
    backend, id = PATH.fullmatch(event["rawPath"]).groups()
    runtime = f"{backend}/{id}"
    epoch = proved(settings()["keys"], runtime, event["headers"]["authorization"].removeprefix("Bearer "))
    if epoch is None:
        return 401, "unauthorized"
    now = {"N": str(int(time.time() * 1000))}
    try:
        DYNAMODB.update_item(
            TableName=os.environ["FURLOUGH_TABLE"],
            Key={"pk": {"S": f"runtime/{runtime}"}, "sk": {"S": "record"}},
            UpdateExpression="SET #idle_from = :now, la = :now",
            ConditionExpression="st = :running AND ep = :epoch AND #idle_from < :now",
            ExpressionAttributeNames={"#idle_from": "if"},
            ExpressionAttributeValues={":now": now, ":running": {"S": "running"}, ":epoch": {"N": str(epoch)}},
        )
    except DYNAMODB.exceptions.ConditionalCheckFailedException:
        return 409, "refused"
    return 200, "recorded"


def main():
    api = http.client.HTTPConnection(API)
    while True:
        api.request("GET", "/2018-06-01/runtime/invocation/next")
        asked = api.getresponse()
        event, request = json.load(asked), asked.headers["lambda-runtime-aws-request-id"]
        status, code = handle(event)
        body = json.dumps({"statusCode": status, "body": json.dumps({"status": status, "code": code})})
        api.request("POST", f"/2018-06-01/runtime/invocation/{request}/response", body)
        api.getresponse().read()


main()
