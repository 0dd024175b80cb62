// The simulation's model of Kilo's agent as a process, with kg's flags, on a real node: it follows a real API server and
// programs a real device. Beside `src/sim/agent/agent.ts` it leaves out: iptables, and IPv6 on the inside.

import { spawnSync } from "node:child_process";
import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { createAgent } from "../sim/agent/agent.ts";
import { isPublicAddress } from "../sim/agent/host-port.ts";
import { ApiMirror } from "./api-mirror.ts";
import type { ApiAccess } from "./api-stream.ts";
import { rewriteMessage } from "./agent-kind.ts";
import { createRealDevice } from "./real-device.ts";

const keyFile = "/var/lib/kilo/key";

const { values } = parseArgs({
  options: {
    kubeconfig: { type: "string", default: "" },
    hostname: { type: "string", default: "" },
    interface: { type: "string", default: "kilo0" },
    "create-interface": { type: "string" },
    cni: { type: "string" },
    local: { type: "string", default: "true" },
    encapsulate: { type: "string" },
    "mesh-granularity": { type: "string", default: "location" },
    subnet: { type: "string", default: "10.4.0.0/16" },
    port: { type: "string", default: "51820" },
    listen: { type: "string" },
    "log-level": { type: "string" },
  },
});

await main();

async function main(): Promise<void> {
  const { hostname: node, subnet, interface: device } = values;
  const privateKey = ownKey();
  const mirror = new ApiMirror(accessIn(values.kubeconfig));
  const driver = createRealDevice({
    device,
    node,
    privateKey,
    scratch: "/var/lib/kilo/conf",
    isLocal: values.local === "true",
    onWrite: (peers) => console.log(`${new Date().toISOString()} ${rewriteMessage}: writing ${peers} peers`),
  });
  const { address, internalIp } = addresses();
  const agent = createAgent({
    server: mirror.server,
    token: "",
    node,
    publicKey: publicKeyOf(privateKey),
    address,
    port: Number(values.port),
    internalIp,
    subnet,
    granularity: values["mesh-granularity"] === "full" ? "full" : "location",
    clock: { nowMs: () => Date.now(), after },
    resolve,
    driver,
  });
  await mirror.open(() => agent.relist());
  agent.start();
  process.once("SIGTERM", () => {
    agent.stop("graceful");
    mirror.close();
    process.exit(0);
  });
}

/** The key on disk; a new one, if there is none. */
function ownKey(): string {
  if (!existsSync(keyFile)) {
    const key = randomBytes(32);
    // As WireGuard wants a private key: the last three bits of the first byte and the first of the last are not free.
    key[0] = (key[0] ?? 0) & 248;
    key[31] = ((key[31] ?? 0) & 127) | 64;
    writeFileSync(keyFile, key.toString("base64"), { mode: 0o600 });
  }
  return readFileSync(keyFile, "utf8").trim();
}

function publicKeyOf(privateKey: string): string {
  // The DER of an X25519 private key is 16 fixed bytes and the key itself; that of a public key 12.
  const der = Buffer.concat([
    Buffer.from("302e020100300506032b656e04220420", "hex"),
    Buffer.from(privateKey, "base64"),
  ]);
  const key = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  return key.export({ format: "der", type: "spki" }).subarray(12).toString("base64");
}

/** The address that others reach the node at, and its internal one, as kg finds them on the way out. */
function addresses(): { readonly address: string; readonly internalIp: string } {
  const found = spawnSync("ip", ["-o", "-4", "address", "show", "dev", "eth0"], { encoding: "utf8" }).stdout;
  const all = [...found.matchAll(/inet (\S+)/g)].map((match) => match[1] ?? "");
  const bare = (text: string): string => text.slice(0, text.indexOf("/"));
  const internalIp = all.find((each) => !isPublicAddress(bare(each))) ?? "";
  return { address: bare(all.find((each) => isPublicAddress(bare(each))) ?? internalIp), internalIp };
}

function accessIn(path: string): ApiAccess {
  const config = fieldsOf(JSON.parse(readFileSync(path, "utf8")));
  const cluster = fieldsOf(fieldsOf(listOf(config["clusters"])[0])["cluster"]);
  const user = fieldsOf(fieldsOf(listOf(config["users"])[0])["user"]);
  const caPem = Buffer.from(textOf(cluster["certificate-authority-data"]) ?? "", "base64").toString();
  return { url: textOf(cluster["server"]) ?? "", caPem, token: textOf(user["token"]) ?? "" };
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

function resolve(name: string): string | undefined {
  const { status, stdout } = spawnSync("getent", ["ahostsv4", name], { encoding: "utf8" });
  return status === 0 ? stdout.split(/\s/)[0] : undefined;
}
