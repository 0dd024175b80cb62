// Lists and then follows the objects of one kind, for the model agent and for whoever keeps an eye on Peers.

import { setTimeout as sleep } from "node:timers/promises";
import { request as httpsRequest, type RequestOptions } from "node:https";

/** How a server is reached. */
export type ApiAccess = { readonly url: string; readonly caPem: string; readonly token: string };

/** What the API server keeps. */
export type StoredObject = {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
} & Readonly<Record<string, unknown>>;

/** What a follower hears: the whole list, at first and whenever the watch had to begin again; then change by change. */
export type Follower = {
  readonly listed: (objects: readonly StoredObject[]) => void;
  readonly changed: (type: "ADDED" | "MODIFIED" | "DELETED", object: StoredObject) => void;
};

/** How long somebody waits before the next try: at first, at most, and how much more by chance, as a share of that. */
export type Retry = { readonly msMin: number; readonly msMax: number; readonly jitter: number };

const prompt: Retry = { msMin: 500, msMax: 10_000, jitter: 0 };

/** As Kilo's informers wait. After an outage of a minute most of its agents have checked in before they hear anything. */
export const informersRetry: Retry = { msMin: 800, msMax: 30_000, jitter: 1 };

const watchS = 300;

/** Follows a kind until the signal is aborted. What goes wrong is tried again, ever more slowly. */
export async function follow(
  access: ApiAccess,
  path: string,
  follower: Follower,
  signal: AbortSignal,
  { msMin, msMax, jitter }: Retry = prompt,
): Promise<void> {
  let waitMs = msMin;
  let version: string | undefined;
  while (!signal.aborted) {
    try {
      if (version === undefined) {
        const list = await listOnce(access, path, signal);
        version = list.version;
        follower.listed(list.items);
      }
      waitMs = msMin;
      version = await watchOnce(access, `${path}?watch=1&timeoutSeconds=${watchS}&resourceVersion=${version}`, {
        version,
        follower,
        signal,
      });
    } catch {
      await sleep(waitMs * (1 + jitter * Math.random()), undefined, { signal }).catch(() => undefined);
      waitMs = Math.min(msMax, waitMs * 2);
    }
  }
}

/** Sends one request and answers with its status and text. */
export function send(
  access: ApiAccess,
  { method, path, body, type, signal }: ApiCall,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${access.token}`,
      accept: "application/json",
      "user-agent": "kg",
      ...(type === undefined ? {} : { "content-type": type }),
    };
    const options: RequestOptions = { method, headers, ca: access.caPem, timeout: 10_000, ...(signal && { signal }) };
    const call = httpsRequest(`${access.url}${path}`, options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.on("error", reject);
    call.end(body);
  });
}

/** One request. */
export type ApiCall = {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly type?: string;
  readonly signal?: AbortSignal;
};

async function listOnce(access: ApiAccess, path: string, signal: AbortSignal) {
  const { status, text } = await send(access, { method: "GET", path, signal });
  if (status !== 200) throw new Error(`${path}: ${status}`);
  type List = { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly StoredObject[] };
  const { metadata, items } = JSON.parse(text) as List;
  return { version: metadata.resourceVersion, items };
}

type Watching = { readonly version: string; readonly follower: Follower; readonly signal: AbortSignal };

/** Watches until the server ends it; answers with where to go on, or with nothing if that is to be found by a list. */
function watchOnce(access: ApiAccess, path: string, { version, follower, signal }: Watching) {
  return new Promise<string | undefined>((resolve, reject) => {
    const headers = { authorization: `Bearer ${access.token}`, accept: "application/json", "user-agent": "kg" };
    const call = httpsRequest(
      `${access.url}${path}`,
      { headers, ca: access.caPem, signal, agent: false },
      (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          if (response.statusCode === 410) resolve(undefined);
          else reject(new Error(`${path}: ${response.statusCode}`));
          return;
        }
        let rest = "";
        let last: string | undefined = version;
        response.setEncoding("utf8").on("data", (chunk: string) => {
          const lines = (rest + chunk).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) {
            if (line === "") continue;
            const event = JSON.parse(line) as { readonly type: string; readonly object: StoredObject };
            if (event.type === "ERROR") {
              last = undefined;
              call.destroy();
            } else if (event.type === "ADDED" || event.type === "MODIFIED" || event.type === "DELETED") {
              last = event.object.metadata.resourceVersion;
              follower.changed(event.type, event.object);
            }
          }
        });
        response.on("close", () => resolve(last));
        response.on("error", () => resolve(last));
      },
    );
    call.on("error", reject);
    call.end();
  });
}
