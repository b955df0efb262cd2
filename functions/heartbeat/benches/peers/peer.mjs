// The heartbeat function's main job as a Node handler would do it, on the AWS SDK for JavaScript: what `cold.py` starts
// beside ours, bundled and minified by esbuild.
//
// It reads the configuration from S3 and the keys from Secrets Manager once, proves a runtime's token, and records the
// heartbeat by one conditional write. No coalescing, no batches, no webhooks: it is quicker than one that did all.

import { createHmac, timingSafeEqual } from "node:crypto";
import { ConditionalCheckFailedException, DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { GetObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";

const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
const [dynamodb, s3, secrets] = [new DynamoDBClient(), new S3Client({ forcePathStyle: true }), new SecretsManagerClient()];
let kept;

async function settings() {
  if (!kept) {
    const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/.exec(process.env.FURLOUGH_CONFIG);
    const found = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
    const secret = await secrets.send(new GetSecretValueCommand({ SecretId: process.env.FURLOUGH_KEYS }));
    kept = { config: await found.Body.transformToString(), keys: JSON.parse(secret.SecretString).runtime_keys };
  }
  return kept;
}

/** The registration that a token proves, or undefined. */
function proved(keys, runtime, token) {
  const [, epoch, mac] = token.split(".");
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(epoch));
  const told = Buffer.concat([Buffer.from(`furlough runtime token 1\0${runtime}\0`), number]);
  const codes = keys.map((key) => createHmac("sha256", key).update(told).digest("hex"));
  const good = codes.filter((code) => timingSafeEqual(Buffer.from(code), Buffer.from(mac)));
  return good.length ? epoch : undefined;
}

async function handle(event) {
  const [, runtime] = /^\/runtimes\/([^/]+\/[^/]+)\/heartbeat$/.exec(event.rawPath);
  const epoch = proved((await settings()).keys, runtime, event.headers.authorization.replace("Bearer ", ""));
  if (!epoch) return [401, "unauthorized"];
  try {
    await dynamodb.send(new UpdateItemCommand({
      TableName: process.env.FURLOUGH_TABLE,
      Key: { pk: { S: `runtime/${runtime}` }, sk: { S: "record" } },
      UpdateExpression: "SET #idle_from = :now, la = :now",
      ConditionExpression: "st = :running AND ep = :epoch AND #idle_from < :now",
      ExpressionAttributeNames: { "#idle_from": "if" },
      ExpressionAttributeValues: { ":now": { N: String(Date.now()) }, ":running": { S: "running" }, ":epoch": { N: epoch } },
    }));
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return [409, "refused"];
    throw error;
  }
  return [200, "recorded"];
}

for (;;) {
  const asked = await fetch(`${api}/next`);
  const request = asked.headers.get("lambda-runtime-aws-request-id");
  const [status, code] = await handle(await asked.json());
  const body = JSON.stringify({ statusCode: status, body: JSON.stringify({ status, code }) });
  await fetch(`${api}/${request}/response`, { method: "POST", body });
}
