// Where an exposed Service is reached.

import type { ExposedServiceSpec } from "../api/exposed-service.ts";
import { isIPv4, parseAddress } from "../core/net/address.ts";
import { compareText } from "../core/world.ts";
import { clusterEndpointsMax } from "./exposed-object.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";
import type { MeshMember } from "./mesh-state.ts";

/** One item of `status.endpoints`. */
export type ExposedEndpoint = {
  readonly clusterName: string;
  readonly address?: string;
  readonly port?: number;
  readonly url?: string;
  readonly ready: boolean;
};

/** The addresses of a Service of ours on one cluster; none, while it has none. */
export function endpointsOf({
  member,
  facts,
  spec,
  service,
}: {
  readonly member: MeshMember;
  readonly facts: CiliumFacts;
  readonly spec: ExposedServiceSpec;
  readonly service: ServiceFacts;
}): readonly ExposedEndpoint[] {
  const ready = (facts.endpoints.get(`${service.namespace}/${service.name}`) ?? 0) > 0;
  const addresses =
    spec.exposure === "NodePort"
      ? nodeAddresses(facts)
      : service.ingress.flatMap(({ ip, hostname }) => ip ?? hostname ?? []);
  const shown = [...new Set(addresses)].sort(compareText).flatMap((address) =>
    service.ports.flatMap((each): readonly ExposedEndpoint[] => {
      const port = spec.exposure === "NodePort" ? each.nodePort : each.port;
      if (port === undefined || port === 0) return [];
      const url = urlOf(spec, each, port, address);
      return [{ clusterName: member.name, address, port, ...(url === undefined ? {} : { url }), ready }];
    }),
  );
  return shown.slice(0, clusterEndpointsMax);
}

/** Addresses of nodes that can be reached from outside; those inside, if there are no others. */
function nodeAddresses({ nodes }: CiliumFacts): readonly string[] {
  const ready = nodes.filter((node) => node.ready);
  const outside = ready.flatMap(({ externalIps }) => externalIps);
  return outside.length > 0 ? outside : ready.flatMap(({ internalIps }) => internalIps);
}

/** What a browser takes, if the port is one for browsers. */
function urlOf(
  { hostname, tls }: ExposedServiceSpec,
  { name = "", port }: ServiceFacts["ports"][number],
  reached: number,
  address: string,
): string | undefined {
  const isSecure = tls?.enabled === true || name.startsWith("https") || port === 443;
  const isPlain = name.startsWith("http") || port === 80;
  if (!isSecure && !isPlain) return undefined;
  const parsed = parseAddress(address);
  const host = hostname ?? (parsed.ok && !isIPv4(parsed.value) ? `[${address}]` : address);
  const usual = isSecure ? 443 : 80;
  return `${isSecure ? "https" : "http"}://${host}${reached === usual ? "" : `:${reached}`}`;
}
