import type { Redacted } from "../core/redacted.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";

/** Where the Hubble Relay of a cluster is, and who vouches for it; in clear text where it serves no TLS. */
export type RelayAccess = {
  /** `host:port`. */
  readonly address: string;
  readonly tls: { readonly caPem: Redacted<string>; readonly caHash: string; readonly serverName: string } | undefined;
};

const relayService = "hubble-relay";
/** The certificate of a relay is for every name below `hubble-relay.cilium.io`. */
const serverName = "causeway.hubble-relay.cilium.io";
const tlsPort = 443;

/** How to ask a cluster's Hubble Relay; the error says why it cannot be asked and what to do. */
export function relayOf(facts: CiliumFacts, ciliumNamespace: string): Result<RelayAccess, string> {
  const service = facts.services.get(`${ciliumNamespace}/${relayService}`);
  if (service === undefined) return err("there is no Hubble Relay: install Cilium with hubble.relay.enabled=true");
  const address = addressOf(service, facts);
  if (address === undefined) {
    return err(
      "Hubble Relay has no address outside its cluster: set hubble.relay.service.type to LoadBalancer or NodePort",
    );
  }
  if (service.ports[0]?.port !== tlsPort) return ok({ address, tls: undefined });
  const { authority } = facts;
  if (authority === undefined) return err("Hubble Relay serves TLS, and there is no Secret cilium-ca to trust it by");
  return ok({ address, tls: { caPem: authority.caPem, caHash: authority.hashes.ca, serverName } });
}

function addressOf({ type, ports, ingress }: ServiceFacts, { nodes }: CiliumFacts): string | undefined {
  const [first] = ports;
  if (first === undefined) return undefined;
  const [balanced] = ingress;
  const host = balanced?.ip ?? balanced?.hostname;
  if (type === "LoadBalancer" && host !== undefined) return hostPort(host, first.port);
  const node = nodes.find(({ ready }) => ready);
  const ip = node?.externalIps[0] ?? node?.internalIps[0];
  return first.nodePort === undefined || ip === undefined ? undefined : hostPort(ip, first.nodePort);
}

const hostPort = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;
