// What the way between two nodes is like: large packets, small packets, IPv6, and endpoints that are names.

import { nodeAddress6 } from "../fabric.ts";
import { crossedPings, summary, total } from "../pings.ts";
import type { Scenario } from "../scenario.ts";
import { transfer } from "../transfer.ts";
import { demand } from "../unmet.ts";

/** A ping of 1420 bytes, the MTU of the tunnel, that must not be cut into pieces. */
const fullPing = ["ping", "-n", "-q", "-c3", "-i0.2", "-W2", "-M", "do", "-s", "1392"];

const fullSize: Scenario = {
  name: "tcp-full-size",
  shows: "full-size packets pass, and TCP moves data both ways between pods of two clusters",
  play: async (stage) => {
    await stage.connect({ a: 1, b: 1 });
    const [from, to] = [stage.node("a1"), stage.node("b1")];
    await from.pod.exec([...fullPing, to.podAddress]);
    await to.pod.exec([...fullPing, from.podAddress]);
    const atMs = stage.note("the transfers begin");
    const there = await transfer(from, to);
    const back = await transfer(from, to, { reverse: true });
    for (const [name, { receivedBytes }] of [["a1>b1", there] as const, ["b1>a1", back] as const]) {
      demand(receivedBytes > 10_000_000, `${name}: only ${receivedBytes} bytes arrived in 3 s`);
    }
    const numbers = summary(await stage.lossSince(atMs));
    return `a1>b1 ${there.megabitsPerSecond} Mbit/s, b1>a1 ${back.megabitsPerSecond} Mbit/s; pings of 1420 bytes pass; meanwhile ${numbers}`;
  },
};

const mtuHole: Scenario = {
  name: "mtu-hole",
  shows: "a path that swallows large packets silently stops TCP, while pings pass and no object shows it",
  play: async (stage) => {
    await stage.connect({ a: 1, b: 1 });
    await stage.meshReady();
    const [from, to] = [stage.node("a1"), stage.node("b1")];
    const before = await transfer(from, to, { lasts: 1 });
    demand(before.receivedBytes > 1_000_000, `only ${before.receivedBytes} bytes arrived before`);
    const atMs = stage.note("the path swallows packets above 1300 bytes");
    for (const [host, other] of [
      [to.host, from],
      [from.host, to],
    ] as const) {
      await host.run(
        `iptables -t raw -A PREROUTING -s ${other.address} -p udp --dport 51820 -m length --length 1301:65535 -j DROP`,
      );
    }
    const there = await transfer(from, to);
    const back = await transfer(from, to, { reverse: true });
    demand(there.receivedBytes === 0, `a1>b1: ${there.receivedBytes} bytes arrived`);
    demand(back.receivedBytes === 0, `b1>a1: ${back.receivedBytes} bytes arrived`);
    const numbers = await stage.demandNoLoss(atMs);
    await stage.meshReady("m", 1_000);
    const findings = (await stage.meshStatus())?.findings ?? [];
    const said = findings.filter(({ code }) => /mtu/i.test(code)).map(({ code }) => code);
    demand(said.length === 0, `the status says ${said.join(", ")}`);
    return `TCP 0 bytes each way (${before.megabitsPerSecond} Mbit/s before); pings: ${numbers}; blind spot: the mesh stays Ready=True, no finding`;
  },
};

const underlay6: Scenario = {
  name: "ipv6-underlay",
  shows: "tunnels run over IPv6 by either annotation or by an ExternalIP; pods stay on IPv4",
  play: async (stage) => {
    const over6 = (cluster: number, node: number, annotation: string) => ({
      address6: nodeAddress6(cluster, node),
      annotations: { [`kilo.squat.ai/${annotation}`]: `[${nodeAddress6(cluster, node)}]:51820` },
    });
    // a2 has no annotation: its Node says an ExternalIP, and only an IPv6 one. Kilo itself obeys force-endpoint, so the
    // tunnel inside b is over IPv6, too; inside a, it is over IPv4.
    const plain = { address6: nodeAddress6(1, 2), hasExternalIp: false };
    await stage.raise({
      a: [over6(1, 1, "clustermesh-endpoint"), plain],
      b: [over6(2, 1, "force-endpoint"), over6(2, 2, "force-endpoint")],
    });
    const external = { addresses: [{ type: "ExternalIP", address: plain.address6 }] };
    await stage.cluster("a").ask("PATCH", "/api/v1/nodes/a2/status", { status: external });
    for (const { host, cluster } of stage.nodes()) {
      const others = cluster.name === "a" ? "198.18.2.0/24" : "198.18.0.0/16";
      await host.run(`iptables -A OUTPUT -d ${others} -p udp --dport 51820 -j DROP`);
    }
    await stage.join(["a", "b"]);
    await stage.meshReady();
    for (const node of stage.nodes()) {
      const endpoints = (await node.device()).peers.map(({ endpoint }) => endpoint ?? "");
      const count = endpoints.filter((endpoint) => endpoint.startsWith("[2001:db8:18::")).length;
      const wanted = node.cluster.name === "a" ? 2 : 3;
      demand(count === wanted, `${node.name} has ${count} tunnels over IPv6, not ${wanted}: ${endpoints.join(", ")}`);
    }
    await stage.node("a1").pod.exec([...fullPing, stage.node("b2").podAddress]);
    const atMs = stage.note("every tunnel but the one inside a is over IPv6");
    await stage.pass(5_000);
    const numbers = await stage.demandNoLoss(atMs);
    return `between clusters and inside b over IPv6, inside a over IPv4: ${numbers}; pings of 1420 bytes pass; IPv6 stays outside: Kilo takes one range of pods per node and numbers tunnels in an IPv4 range`;
  },
};

const dns: Scenario = {
  name: "dns-unresolvable",
  shows: "an endpoint that is a name nobody can resolve stops nothing, and works as soon as it can be resolved",
  play: async (stage) => {
    const name = "b2.example.test";
    const annotations = { "kilo.squat.ai/clustermesh-endpoint": `${name}:51820` };
    await stage.raise({ a: 2, b: [{}, { annotations }] });
    const named = stage.node("b2");
    // Without this, the node would call and be found by its calls. It may answer only.
    await named.host.run("iptables -A OUTPUT -d 198.18.1.0/24 -p udp -m conntrack --ctstate NEW -j DROP");
    const isOpen = (pair: string): boolean => !(pair.includes("a") && pair.includes("b2"));
    await stage.join(["a", "b"], { entries: { b: { persistentKeepalive: 25 } }, open: isOpen });
    const atMs = stage.note("the name cannot be resolved");
    await stage.pass(5_000);
    const before = await stage.demandNoLoss(atMs, isOpen);
    const closed = await stage.lossSince(atMs, (pair) => !isOpen(pair));
    demand(total(closed, "lost") === total(closed, "sent"), `the pairs of b2 were open before: ${summary(closed)}`);
    const foundMs = stage.note("the name can be resolved");
    stage.lab.operators.name([`${named.address} ${name}`]);
    const tookMs = await stage.open(undefined, 100_000);
    for (const { metadata, spec } of stage.peerWatches.get(stage.cluster("a"))?.versions ?? []) {
      const written = spec.endpoint?.dnsOrIP.dns;
      demand(written === undefined, `Peer ${metadata.name} had the name ${written}`);
    }
    const peer = (await stage.cluster("a").peers()).get("m--b--b2");
    const ip = peer?.spec.endpoint?.dnsOrIP.ip;
    demand(ip === named.address, `the Peer of b2 has the address ${ip}`);
    const after = await stage.demandGapsUpTo(crossedPings, foundMs, isOpen);
    return `while unresolvable: ${before}; ${(tookMs / 1_000).toFixed(1)} s after it could be resolved every pair is open; meanwhile ${after}`;
  },
};

/** Scenarios of the way between nodes. */
export const paths: readonly Scenario[] = [dns, underlay6, fullSize, mtuHole];
