// Servers that answer as an API server and mean harm: each mode is one way of using up somebody else's memory or time.
// Plain JavaScript, so that tests and benches can use it.

import { once } from "node:events";
import { createServer } from "node:https";

/** Every way there is, with what it does. */
export const hostileModes = {
  fat: "pages of Nodes with a label of 100 KB each, and always a next page",
  facts: "Nodes whose annotations are as large as they may be and all of which would be kept",
  inflate: "every list is 63 MiB of empty objects",
  dense: "every list is 7 MB of empty objects",
  deep: "every list is 7 MB of arrays in arrays",
  biglines: "lists are small, and every line of a watch is 7.5 MB of empty arrays",
  many: "60,000 Nodes, one of which changes every 100 ms",
  longname: "a Node with a name of 100,000 characters",
};

const filler = "x".repeat(100_000);

/** A Node as Kilo annotates it; what differs is merged into its metadata. */
function nodeOf(number, index, { annotations = {}, ...metadata } = {}) {
  const [high, low] = [Math.floor(index / 250) % 250, (index % 250) + 1];
  return {
    metadata: {
      name: `n${index}`,
      uid: `uid-${index}`,
      resourceVersion: "1000",
      ...metadata,
      annotations: {
        "kilo.squat.ai/key": Buffer.from(`${number}/${index}`.padEnd(32, "k")).toString("base64"),
        "kilo.squat.ai/wireguard-ip": `10.${110 + number}.${high}.${low}/16`,
        "kilo.squat.ai/granularity": "full",
        "kilo.squat.ai/force-endpoint": `198.51.100.${low}:51820`,
        "kilo.squat.ai/last-seen": String(Math.floor(Date.now() / 1000)),
        ...annotations,
      },
    },
    spec: { podCIDR: `10.${100 + number}.${high}.${low}/32` },
    status: { addresses: [{ type: "ExternalIP", address: `198.51.100.${low}` }] },
  };
}

/** 250 KB of endpoints, no two nodes alike. */
function manyEndpoints(index) {
  const seen = {};
  for (let entry = 0; entry < 2_400; entry += 1) {
    const key = Buffer.from(`${index}/${entry}`.padEnd(32, "k")).toString("base64");
    seen[key] = { IP: `203.0.${entry % 250}.${index % 250}`, Port: 51820, Zone: "" };
  }
  return JSON.stringify(seen);
}

const listOf = (items, next) =>
  JSON.stringify({
    metadata: { resourceVersion: "1000", ...(next === undefined ? {} : { continue: next }) },
    items,
  });

/** The page of a list that begins where the token of the page before says; a server may send fewer than it is asked for. */
function pageOf(url, total, make, pageMax = 500) {
  const from = Number(url.searchParams.get("continue") ?? "0");
  const to = Math.min(total, from + Math.min(pageMax, Number(url.searchParams.get("limit") ?? "500")));
  return listOf(
    Array.from({ length: to - from }, (_, index) => make(from + index)),
    to < total ? String(to) : undefined,
  );
}

const repeated = (text, bytes) => text.repeat(Math.floor(bytes / text.length));

const emptyObjects = (bytes) => `{"metadata":{"resourceVersion":"1"},"items":[${repeated("{},", bytes)}{}]}`;

/** What a mode answers to a list of Nodes; text, made once where it is always the same. */
const nodeLists = {
  fat: (url, number) => pageOf(url, Infinity, (index) => nodeOf(number, index, { labels: { fat: filler } }), 80),
  facts: (url, number) =>
    pageOf(
      url,
      4_000,
      (index) => nodeOf(number, index, { annotations: { "kilo.squat.ai/discovered-endpoints": manyEndpoints(index) } }),
      20,
    ),
  inflate: lazily(() => emptyObjects(63 * 1024 * 1024)),
  dense: lazily(() => emptyObjects(7_000_000)),
  deep: lazily(() => repeated("[", 7_000_000)),
  biglines: (url, number) => pageOf(url, 3, (index) => nodeOf(number, index)),
  many: (url, number) => pageOf(url, 60_000, (index) => nodeOf(number, index)),
  longname: (url, number) => pageOf(url, 1, (index) => nodeOf(number, index, { name: `a${"-".repeat(100_000)}x` })),
};

/** The value of a function that is called when it is needed, and once. */
function lazily(make) {
  let made;
  return () => {
    made ??= make();
    return made;
  };
}

const bigLine = lazily(
  () => `{"type":"MODIFIED","object":{"metadata":{"name":"n0"},"spec":[${repeated("[],", 7_500_000)}[]]}}\n`,
);

/** What a mode sends on a watch of Nodes: a line, and how long until the next; nothing, where it stays silent. */
const nodeLines = {
  biglines: () => ({ line: bigLine(), pauseMs: 100 }),
  many: (count, number) => ({
    line: `${JSON.stringify({
      type: "MODIFIED",
      object: nodeOf(number, 0, {
        resourceVersion: String(1_001 + count),
        annotations: { "kilo.squat.ai/force-endpoint": `198.51.100.${1 + (count % 250)}:51820` },
      }),
    })}\n`,
    pauseMs: 100,
  }),
};

/**
 * Starts a server on the loopback interface that serves one mode to whoever asks. Its nodes are those of a cluster with
 * pods in 10.<100 + number>.0.0/16 and WireGuard addresses in 10.<110 + number>.0.0/16.
 */
export async function startHostile({ mode, number = 1, certPem, keyPem }) {
  const sockets = new Set();
  let asked = 0;
  let sentBytes = 0;
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    asked += 1;
    response.on("error", () => undefined);
    void answer({ mode, number }, new URL(request.url, "https://hostile"), {
      write: async (text) => {
        sentBytes += text.length;
        if (!response.headersSent) response.writeHead(200, { "content-type": "application/json" });
        if (!response.write(text) && !response.destroyed) {
          await Promise.race([once(response, "drain"), once(response, "close")]).catch(() => undefined);
        }
      },
      end: (status = 200) => {
        if (!response.headersSent) response.writeHead(status, { "content-type": "application/json" });
        response.end();
      },
      isGone: () => response.destroyed,
    }).catch(() => response.destroy());
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", () => undefined);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${server.address().port}`,
    asked: () => asked,
    sentBytes: () => sentBytes,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const inEveryList = ["inflate", "dense", "deep"];

async function answer({ mode, number }, url, { write, end, isGone }) {
  const resource = url.pathname.split("/").at(-1);
  if (url.searchParams.get("watch") === "true") {
    const lines = resource === "nodes" ? nodeLines[mode] : mode === "biglines" ? nodeLines.biglines : undefined;
    for (let count = 0; !isGone(); count += 1) {
      const next = lines?.(count, number) ?? {
        line: '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1000"}}}\n',
        pauseMs: 1_000,
      };
      await write(next.line);
      await new Promise((resolve) => setTimeout(resolve, next.pauseMs).unref());
    }
    return;
  }
  if (resource === "kube-system")
    await write(JSON.stringify({ metadata: { name: resource, uid: `uid-of-${mode}-${number}` } }));
  else if (resource === "nodes" || inEveryList.includes(mode))
    await inPieces(nodeLists[mode](url, number), write, isGone);
  else await write(listOf([]));
  end();
}

async function inPieces(text, write, isGone) {
  for (let from = 0; from < text.length && !isGone(); from += 1_000_000)
    await write(text.slice(from, from + 1_000_000));
}
