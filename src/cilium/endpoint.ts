// How the others reach the clustermesh-apiserver of a cluster. What the spec says wins over what the Service was given;
// of nodes several are used, and the ones in use stay in use, so that nothing is written when a node comes or goes.
//
// A host must be one that the server's certificate names. If none is, the name `<cluster>.mesh.cilium.io`, which every
// such certificate covers, is used, and the addresses are made known under it.

import type { ClusterMeshBindingSpec } from "../api/cluster-mesh-binding.ts";
import { isIPv4, parseAddress } from "../core/net/address.ts";
import { type Endpoint, formatEndpoint, isDnsName, parseEndpoint } from "../core/net/endpoint.ts";
import { err, ok, type Result } from "../core/result.ts";
import { quote } from "../core/shown.ts";
import { compareText } from "../core/world.ts";
import type { CertificateFacts, NodeFacts, ServiceFacts } from "./facts.ts";
import type { Participant } from "./participant.ts";

/** Where a cluster is reached, and by which of its addresses. */
export type Reach = { readonly via: "spec" | "loadBalancer" | "nodePort"; readonly endpoints: readonly Endpoint[] };

/** Why a cluster cannot be reached. */
export type NoReach =
  | { readonly code: "EndpointInvalid"; readonly endpoint: string; readonly detail: string }
  | { readonly code: "EndpointMissing"; readonly detail: string };

/** How one peer writes it down: URLs, and the addresses of a name that nobody else knows. */
export type Dial = {
  readonly urls: readonly string[];
  readonly alias: { readonly hostname: string; readonly ips: readonly string[] } | undefined;
};

/** Nodes that are named as ways to one cluster; enough that one may go. */
export const nodesMax = 3;

/** The port of clustermesh-apiserver's Service. */
const etcdPort = 2379;

/** The ways to a cluster's clustermesh-apiserver; `inUse` are addresses that a peer uses already. */
export function reachOf(
  member: Pick<Participant, "ref" | "facts">,
  meshConfig: ClusterMeshBindingSpec["meshConfig"],
  inUse: ReadonlySet<string>,
): Result<Reach, NoReach> {
  const given = member.ref.endpoints ?? [];
  if (given.length > 0) return fromSpec(given);
  const service = member.facts?.endpoint;
  if (service === undefined) return missing("Service clustermesh-apiserver is not there");
  const type = meshConfig?.serviceType ?? service.type;
  const port = service.ports.find(({ port: number }) => number === etcdPort) ?? service.ports[0];
  if (port === undefined) return missing("its Service has no port");
  if (type === "LoadBalancer") return fromIngress(service, port.port);
  if (type !== "NodePort") return missing(`its Service is of type ${type}, which others cannot reach`);
  if (port.nodePort === undefined) return missing("its Service has no node port");
  return fromNodes(member.facts?.nodes ?? [], port.nodePort, inUse);
}

const missing = (detail: string): Result<Reach, NoReach> => err({ code: "EndpointMissing", detail });

function fromSpec(given: readonly string[]): Result<Reach, NoReach> {
  const endpoints: Endpoint[] = [];
  for (const endpoint of given) {
    const parsed = parseEndpoint(endpoint);
    if (!parsed.ok) return err({ code: "EndpointInvalid", endpoint, detail: parsed.error });
    endpoints.push(parsed.value);
  }
  return ok({ via: "spec", endpoints });
}

function fromIngress(service: ServiceFacts, port: number): Result<Reach, NoReach> {
  const endpoints = service.ingress.flatMap(({ ip, hostname }): Endpoint[] => {
    const address = ip === undefined ? undefined : parseAddress(ip);
    if (address?.ok === true) return [{ host: { ip: address.value }, port }];
    return hostname !== undefined && isDnsName(hostname) ? [{ host: { dns: hostname.toLowerCase() }, port }] : [];
  });
  const wrong = service.ingress.find(({ hostname }) => hostname !== undefined && !isDnsName(hostname))?.hostname;
  if (endpoints.length === 0 && wrong !== undefined) {
    return missing(`its load balancer is called ${quote(wrong)}, which is no DNS name`);
  }
  if (endpoints.length === 0) return missing("its load balancer has no address yet");
  return ok({ via: "loadBalancer", endpoints: endpoints.sort(byText) });
}

function fromNodes(nodes: readonly NodeFacts[], port: number, inUse: ReadonlySet<string>): Result<Reach, NoReach> {
  const ready = nodes.filter((node) => node.ready);
  const isOutside = ready.some(({ externalIps }) => externalIps.length > 0);
  const addressOf = ({ externalIps, internalIps }: NodeFacts): string | undefined =>
    isOutside ? externalIps[0] : internalIps[0];
  const able = ready.flatMap((node) => addressOf(node) ?? []);
  const all = new Set(nodes.flatMap(({ externalIps, internalIps }) => [...externalIps, ...internalIps]));
  const staying = able.filter((address) => inUse.has(address));
  const others = able.filter((address) => !inUse.has(address));
  const chosen = [...staying, ...others].slice(0, nodesMax);
  // With no node ready, those in use may come back first.
  const addresses = chosen.length > 0 ? chosen : [...inUse].filter((address) => all.has(address)).slice(0, nodesMax);
  const endpoints = addresses.flatMap((text): Endpoint[] => {
    const address = parseAddress(text);
    return address.ok ? [{ host: { ip: address.value }, port }] : [];
  });
  if (endpoints.length === 0) return missing("no node with an address is ready");
  return ok({ via: "nodePort", endpoints: endpoints.sort(byText) });
}

const byText = (a: Endpoint, b: Endpoint): number => compareText(formatEndpoint(a), formatEndpoint(b));

/** The name under which a cluster is known to those that cannot use its addresses as they are. */
export const meshHostname = (ciliumName: string): string => `${ciliumName}.mesh.cilium.io`;

/** How a peer writes the ways down, given the server's certificate and the names that were resolved. */
export function dialOf(
  reach: Reach,
  ciliumName: string,
  certificate: CertificateFacts | undefined,
  dns: ReadonlyMap<string, string>,
): Result<Dial, NoReach> {
  const named = certificate === undefined ? [] : reach.endpoints.filter((each) => names(certificate, each));
  if (named.length > 0)
    return ok({ urls: unique(named.map((each) => `https://${formatEndpoint(each)}`)), alias: undefined });
  const hostname = meshHostname(ciliumName);
  if (certificate !== undefined && !coversName(certificate.dnsNames, hostname)) {
    const detail = `the server's certificate names neither ${hostname} nor any of its addresses`;
    return err({ code: "EndpointMissing", detail });
  }
  const ips: string[] = [];
  const ports = new Set<number>();
  let unresolved: string | undefined;
  for (const { host, port } of reach.endpoints) {
    const ip = "ip" in host ? host.ip : dns.get(host.dns);
    if (ip === undefined) unresolved = "dns" in host ? host.dns : undefined;
    else {
      ips.push(ip);
      ports.add(port);
    }
  }
  if (ips.length === 0) {
    const detail = `the server's certificate does not name ${unresolved ?? "it"}, and the name cannot be resolved`;
    return err({ code: "EndpointMissing", detail });
  }
  const urls = [...ports].sort((a, b) => a - b).map((port) => `https://${hostname}:${port}`);
  return ok({ urls, alias: { hostname, ips: unique(ips).sort(compareText) } });
}

/** The names of ways to a cluster that have to be resolved. */
export function namesToResolve(service: ServiceFacts | undefined): readonly string[] {
  const given = service?.ingress.flatMap(({ ip, hostname }) => (ip === undefined ? (hostname ?? []) : [])) ?? [];
  return given.filter(isDnsName).map((name) => name.toLowerCase());
}

/** The addresses that an entry of a connection Secret leads to. */
export function addressesIn(urls: readonly string[]): readonly string[] {
  return urls.flatMap((url) => {
    const parsed = parseEndpoint(url.replace(/^https?:\/\//, ""));
    return parsed.ok && "ip" in parsed.value.host ? [parsed.value.host.ip] : [];
  });
}

function names(certificate: CertificateFacts, { host }: Endpoint): boolean {
  if ("dns" in host) return coversName(certificate.dnsNames, host.dns);
  return certificate.ipAddresses.some((text) => {
    const address = parseAddress(text);
    return address.ok && address.value === host.ip && isIPv4(address.value) === isIPv4(host.ip);
  });
}

/** As TLS has it: a star stands for one label, the first. */
function coversName(patterns: readonly string[], name: string): boolean {
  const rest = name.slice(name.indexOf(".") + 1);
  return patterns.some((pattern) => {
    const lower = pattern.toLowerCase();
    return lower === name || (lower.startsWith("*.") && name.includes(".") && lower.slice(2) === rest);
  });
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];
