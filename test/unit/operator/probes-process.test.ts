// The probes of the operator as a process; it runs what is built.

import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { startOperator } from "../../support/operator-process.ts";

const nowhere = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  "current-context": "c",
  contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:9" } }],
  users: [{ name: "u", user: { token: "a-token-that-leads-nowhere" } }],
});

test("1,000 idle connections, opened again whenever they are closed, fail no probe", async () => {
  const operator = await startOperator(nowhere);
  const { hostname, port } = new URL(operator.health);
  const held = new Set<Socket>();
  let isOver = false;
  let opened = 0;
  const hold = (): void => {
    opened += 1;
    const socket = connect(Number(port), hostname);
    held.add(socket);
    socket.on("connect", () => {
      if (opened % 2 === 0) socket.write("GET /healthz HTTP/1.1\r\n");
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      held.delete(socket);
      if (!isOver) setTimeout(hold, 500);
    });
  };
  try {
    for (let index = 0; index < 1_000; index += 1) hold();
    const codes: (number | string)[] = [];
    for (let probe = 0; probe < 30; probe += 1) {
      const answer = await fetch(`${operator.health}/healthz`, {
        headers: { connection: "close" },
        signal: AbortSignal.timeout(5_000),
      }).catch((error: unknown) => String(error));
      codes.push(typeof answer === "string" ? answer : answer.status);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(codes).toEqual(Array.from({ length: 30 }, () => 200));
    expect(opened).toBeGreaterThan(1_000);
  } finally {
    isOver = true;
    for (const socket of held) socket.destroy();
    expect(await operator.stop()).toBe(0);
  }
}, 60_000);
