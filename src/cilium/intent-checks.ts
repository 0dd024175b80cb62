// What may be wrong with the spec of a ConnectivityIntent. Labels are checked with care: a key of another source than
// Kubernetes, `reserved:world` for instance, would make Cilium forget the namespace and the clusters of a peer.

import type { ConnectivityIntentSpec, IntentPort, IntentSide } from "../api/connectivity-intent.ts";
import { quote } from "../core/shown.ts";
import { identityKeys } from "./policy.ts";

const portMax = 65_535;
const icmpTypeMax = 255;
const nameForm = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const valueForm = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const keyForm =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const prefixMax = 253;
const reservedKeys: ReadonlySet<string> = new Set([identityKeys.namespace, identityKeys.cluster]);

/** Everything that is wrong with a spec. */
export function intentProblems(spec: ConnectivityIntentSpec): readonly string[] {
  return [
    ...(spec.meshRef.name === "" ? ["spec.meshRef.name is missing"] : []),
    ...sideProblems("spec.source", spec.source),
    ...sideProblems("spec.destination", spec.destination),
    ...(spec.ports ?? []).flatMap((port, index) =>
      portProblems(port).map((problem) => `spec.ports[${index}]: ${problem}`),
    ),
  ];
}

function sideProblems(field: string, { namespace = "", name = "", selector = {} }: IntentSide): readonly string[] {
  const problems: string[] = [];
  if (namespace === "") problems.push(`${field}.namespace is missing`);
  else if (!nameForm.test(namespace))
    problems.push(`${field}.namespace: ${quote(namespace)} is no name of a namespace`);
  if (!valueForm.test(name)) problems.push(`${field}.name: ${quote(name)} is no value of a label`);
  if (name !== "" && Object.keys(selector).length > 0) {
    problems.push(`${field} has a name and a selector; leave one`);
  }
  const plainKeys = new Set<string>();
  for (const [key, value] of Object.entries(selector)) {
    const plain = key.startsWith("k8s:") ? key.slice("k8s:".length) : key;
    const isKey = keyForm.test(plain) && plain.indexOf("/") <= prefixMax;
    if (!isKey) problems.push(`${field}.selector: ${quote(key)} is no key of a label`);
    else if (reservedKeys.has(`k8s:${plain}`))
      problems.push(`${field}.selector: ${quote(key)} is not for an intent to set`);
    if (plainKeys.has(plain)) problems.push(`${field}.selector: ${quote(plain)} is given twice`);
    plainKeys.add(plain);
    if (!valueForm.test(value)) problems.push(`${field}.selector: ${quote(value)} is no value of a label`);
  }
  return problems;
}

function portProblems({ protocol, port, endPort, icmpType }: IntentPort): readonly string[] {
  const isPort = (number: number): boolean => number >= 1 && number <= portMax;
  if (protocol === "ICMP" || protocol === "ICMPv6") {
    if (port !== undefined || endPort !== undefined) return [`${protocol} has no ports; give icmpType`];
    if (icmpType === undefined) return [`${protocol} needs icmpType`];
    return icmpType < 0 || icmpType > icmpTypeMax ? [`icmpType ${icmpType} is not between 0 and ${icmpTypeMax}`] : [];
  }
  if (icmpType !== undefined) return [`icmpType goes with ICMP and ICMPv6, not with ${protocol}`];
  if (port === undefined) return ["port is missing; leave ports empty for all of them"];
  if (!isPort(port)) return [`port ${port} is not between 1 and ${portMax}`];
  if (endPort === undefined) return [];
  if (!isPort(endPort)) return [`endPort ${endPort} is not between 1 and ${portMax}`];
  return endPort < port ? [`endPort ${endPort} is below port ${port}`] : [];
}
