// A raw watch: every event is seen the moment its bytes arrive, so that measuring needs no polling and costs little.
import { request as httpsRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { benchAgent } from "./audit-count.mjs";

const retryMs = 500;
const retriesMax = 60;

/** Lists and watches a path as the admin until the signal aborts; rejects if the server cannot be watched. */
export async function watchObjects(server, path, { onList, onEvent, signal }) {
  for (let retries = 0; !signal.aborted; retries += 1) {
    const { status, body } = await server.admin.request("GET", path);
    if (status !== 200) throw new Error(`${server.name} answered ${status} to a list of ${path}`);
    onList(body.items);
    const from = body.metadata.resourceVersion;
    try {
      await stream(server, `${path}?watch=true&resourceVersion=${from}`, onEvent, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (retries >= retriesMax) throw error;
    }
    if (!signal.aborted) await sleep(retryMs);
  }
}

function stream({ url, caPem, adminToken }, path, onEvent, signal) {
  const headers = { authorization: `Bearer ${adminToken}`, accept: "application/json", "user-agent": benchAgent };
  return new Promise((resolve, reject) => {
    const request = httpsRequest(`${url}${path}`, { ca: caPem, agent: false, headers, signal }, (response) => {
      if (response.statusCode !== 200) {
        response.resume();
        reject(new Error(`a watch was answered with ${response.statusCode}`));
        return;
      }
      let rest = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        const lines = `${rest}${chunk}`.split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const { type, object } = JSON.parse(line);
          if (type === "ERROR") request.destroy(new Error(object.message));
          else onEvent(type, object);
        }
      });
      response.on("end", resolve).on("error", reject);
    });
    request.on("error", reject);
    request.end();
  });
}
