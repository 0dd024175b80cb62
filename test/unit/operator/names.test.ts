import { createSocket, type Socket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, test } from "vitest";
import { candidatesFor, type Names, openNames, readHosts, readSearchList } from "../../../src/operator/names.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const servers: Socket[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

type Answers = Readonly<Record<string, string>>;

/** A name server on loopback: A records of these names; nothing at all for `silence`, no such name for others. */
async function serveNames(answers: Answers, asked: string[] = []): Promise<string> {
  const server = createSocket("udp4");
  servers.push(server);
  server.on("message", (message, { port, address }) => {
    const { name, end } = nameIn(message);
    const type = message.readUInt16BE(end);
    if (type === 1) asked.push(name);
    const answer = answers[name];
    if (answer !== "silence") server.send(reply(message, end, type === 1 ? answer : undefined), port, address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
  return `127.0.0.1:${server.address().port}`;
}

function nameIn(message: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 };
}

function reply(message: Buffer, end: number, ip: string | undefined): Buffer {
  const head = Buffer.from(message.subarray(0, end + 4));
  head.writeUInt16BE(ip === undefined ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(ip === undefined ? 0 : 1, 6);
  head.writeUInt32BE(0, 8);
  if (ip === undefined) return head;
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...ip.split(".").map(Number)]);
  return Buffer.concat([head, record]);
}

function namesOf(server: string, files: Readonly<Record<string, string>> = {}): Names {
  return openNames({
    clock: new VirtualClock(),
    readFile: async (path) => files[path] ?? "",
    servers: [server],
  });
}

const connect = (names: Names, name: string): Promise<readonly string[]> =>
  new Promise((resolve, reject) =>
    names.lookup(name, { all: true }, (error, found) => {
      if (error !== null) reject(error);
      else resolve(typeof found === "string" ? [found] : found.map(({ address }) => address));
    }),
  );

describe("openNames", () => {
  test("names that are never answered occupy nothing that files or other names need", async () => {
    const slow = Array.from({ length: 200 }, (_, index) => `n${index}.slow.example`);
    const silent = Object.fromEntries(slow.map((name) => [name, "silence"]));
    const names = namesOf(await serveNames({ ...silent, "gw.victim.example": "203.0.113.7" }));
    let given = 0;
    const all = slow.map((name) => names.addressesOf(name).catch(() => (given += 1)));
    // Both use the threads that getaddrinfo would block; they are done before any of the 200 is given up.
    await Promise.all([readFile(import.meta.filename), readFile(import.meta.filename)]);
    expect(await names.addressesOf("gw.victim.example")).toEqual(["203.0.113.7"]);
    expect(await connect(names, "gw.victim.example")).toEqual(["203.0.113.7"]);
    expect(given).toBe(0);
    await Promise.all(all);
    expect(given).toBe(200);
  }, 30_000);

  test("the hosts file comes first, and a change of it counts", async () => {
    const clock = new VirtualClock();
    const files: Record<string, string> = { "/etc/hosts": "192.0.2.1 gw.example" };
    const server = await serveNames({ "gw.example": "203.0.113.7" });
    const names = openNames({ clock, readFile: async (path) => files[path] ?? "", servers: [server] });
    expect(await names.addressesOf("GW.example")).toEqual(["192.0.2.1"]);
    files["/etc/hosts"] = "";
    await clock.advance(10_000);
    expect(await names.addressesOf("gw.example")).toEqual(["203.0.113.7"]);
  });

  test("an endpoint is asked for as it stands; a connection below the search domains too", async () => {
    const asked: string[] = [];
    const server = await serveNames({ "api.tenant.svc.cluster.local": "203.0.113.8" }, asked);
    const names = namesOf(server, { "/etc/resolv.conf": "search svc.cluster.local cluster.local\noptions ndots:5" });
    await expect(names.addressesOf("api.tenant")).rejects.toThrow("api.tenant does not resolve (ENOTFOUND)");
    expect(asked).toEqual(["api.tenant"]);
    expect(await connect(names, "api.tenant")).toEqual(["203.0.113.8"]);
    expect(asked).toEqual(["api.tenant", "api.tenant.svc.cluster.local"]);
    await expect(connect(names, "other.tenant")).rejects.toThrow("other.tenant does not resolve (ENOTFOUND)");
    expect(asked.slice(2)).toEqual(["other.tenant.svc.cluster.local", "other.tenant.cluster.local", "other.tenant"]);
  });

  test("localhost needs neither", async () => {
    expect(await connect(namesOf(await serveNames({})), "localhost")).toEqual(["127.0.0.1", "::1"]);
  });
});

test("readHosts: comments, several names, several addresses, what is no address", () => {
  const text = "127.0.0.1 localhost # here\n::1\tlocalhost ip6\n\n# 1.1.1.1 no\nfoo bar\n192.0.2.1 A.example\r\n";
  expect([...readHosts(text)]).toEqual([
    ["localhost", ["127.0.0.1", "::1"]],
    ["ip6", ["::1"]],
    ["a.example", ["192.0.2.1"]],
  ]);
});

test("candidatesFor: by the number of dots, as the C library does", () => {
  const search = readSearchList(
    "nameserver 192.0.2.53\nsearch ns.svc.example. svc.example\noptions ndots:2 timeout:1\n",
  );
  expect(search).toEqual({ domains: ["ns.svc.example", "svc.example"], ndots: 2 });
  expect(candidatesFor("a.b", search)).toEqual(["a.b.ns.svc.example", "a.b.svc.example", "a.b"]);
  expect(candidatesFor("a.b.c", search)).toEqual(["a.b.c", "a.b.c.ns.svc.example", "a.b.c.svc.example"]);
  expect(candidatesFor("a.", search)).toEqual(["a."]);
});
