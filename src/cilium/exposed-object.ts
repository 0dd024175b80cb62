// The Service that exposes another one: what it holds, field by field, and how it is written. Only the fields below are
// compared and written; what a cloud's controller adds, finalizers and node ports among it, is its own.

import { type ExposedServiceSpec, exposedEndpointsMax } from "../api/exposed-service.ts";
import { quote } from "../core/shown.ts";
import { fieldsOf } from "../core/json.ts";
import { shortHash } from "../core/naming.ts";
import { parseCidr } from "../core/net/cidr.ts";
import type { Content, Field } from "../core/plan.ts";
import { trimEnd } from "../core/trim.ts";
import { compareText } from "../core/world.ts";
import type { ServiceFacts } from "./facts.ts";
import { intentField, ownKeys } from "./own-object.ts";
import { globalAnnotations } from "./service-annotations.ts";

/** Annotations that bind a Service to a load balancer that exists already, on clouds that want one named. */
export const loadBalancerKeys = { id: "kubernetes.io/elb.id", class: "kubernetes.io/elb.class" } as const;

/** The class that such a load balancer has. */
export const loadBalancerClass = "union";

/** The most addresses of one cluster that are listed. */
export const clusterEndpointsMax = Math.min(16, exposedEndpointsMax);

const nameMax = 63;

/** The name of the Service that is made for an ExposedService: a DNS label, whatever that one is called. */
export function exposedName(intent: string): string {
  const end = "-exposed";
  if (/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(intent) && intent.length + end.length <= nameMax) return `${intent}${end}`;
  const hash = `-${shortHash(intent)}${end}`;
  const clean = intent.replace(/[^a-z0-9-]/gu, "-").replace(/^[^a-z]+/, "");
  return `${trimEnd(clean.slice(0, nameMax - hash.length), "-") || "x"}${hash}`;
}

/** What is wrong with the spec of an exposure. */
export function exposureProblems(spec: ExposedServiceSpec): readonly string[] {
  const cidrs = spec.allowedCIDRs ?? [];
  return [
    ...(spec.meshRef.name === "" ? ["spec.meshRef.name is missing"] : []),
    ...(spec.serviceRef.name === "" ? ["spec.serviceRef.name is missing"] : []),
    ...cidrs.flatMap((text) => {
      const cidr = parseCidr(text);
      return cidr.ok ? [] : [`spec.allowedCIDRs: ${quote(text)}: ${cidr.error}`];
    }),
    ...(cidrs.length > 0 && spec.exposure === "NodePort"
      ? ["spec.allowedCIDRs needs exposure LoadBalancer: a NodePort lets everybody in"]
      : []),
  ];
}

/** The ports of a Service that are exposed: the one that is named, or all; none, if there is no such port. */
export function portsToExpose(
  { ports }: ServiceFacts,
  wanted: number | string | undefined,
): readonly ServiceFacts["ports"][number][] {
  if (wanted === undefined) return ports;
  return ports.filter(({ name, port }) => (typeof wanted === "number" ? port === wanted : name === wanted));
}

/** Everything that the Service is made from. */
export type ExposedObject = {
  readonly intent: string;
  readonly spec: ExposedServiceSpec;
  readonly service: ServiceFacts;
  readonly ports: readonly ServiceFacts["ports"][number][];
  readonly elbId: string | undefined;
  readonly present: ServiceFacts | undefined;
};

const selectorPath = "selector/";
const annotationPath = "annotation/";

/** Annotations that are ours on a Service of ours. */
const ownAnnotations: readonly string[] = [...globalAnnotations.keys(), ...Object.values(loadBalancerKeys)];

/** The fields that the Service should have; null for what must not be there. */
export function wantedFields(input: ExposedObject): Readonly<Record<string, Field>> {
  const { intent, spec, service, ports, elbId, present } = input;
  const isBalanced = spec.exposure === "LoadBalancer";
  const annotations: Record<string, string> = {
    ...(spec.global ? Object.fromEntries(globalAnnotations) : {}),
    ...(isBalanced && elbId !== undefined
      ? {
          [loadBalancerKeys.id]: elbId,
          [loadBalancerKeys.class]: present?.shared.values[loadBalancerKeys.class] ?? loadBalancerClass,
        }
      : {}),
  };
  const ranges = (spec.allowedCIDRs ?? []).flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr.ok ? [cidr.value] : [];
  });
  const fields: Record<string, Field> = {
    [intentField]: intent,
    type: isBalanced ? "LoadBalancer" : "NodePort",
    ports: ports.map(portText).sort(compareText),
    sourceRanges: isBalanced ? [...new Set(ranges)].sort(compareText) : [],
  };
  // What is there and not wanted is said with a null: a merge takes away nothing else.
  for (const key of Object.keys(present?.selector ?? {})) fields[selectorPath + key] = null;
  for (const [key, value] of Object.entries(service.selector)) fields[selectorPath + key] = value;
  for (const key of ownAnnotations) {
    if (present?.shared.values[key] !== undefined) fields[annotationPath + key] = null;
  }
  for (const [key, value] of Object.entries(annotations)) fields[annotationPath + key] = value;
  return fields;
}

/**
 * The fields that a Service which is there would lose, each with what it keeps if it may not lose anything: annotations,
 * source ranges, ports that nothing else takes the place of, and its load balancer. What its selector is follows the
 * user's Service, and is changed rather than taken away.
 */
export function lostFields(wanted: Readonly<Record<string, Field>>, present: ServiceFacts): ReadonlyMap<string, Field> {
  const here = itemFields(present);
  const lost = new Map<string, Field>();
  for (const [path, value] of Object.entries(wanted)) {
    if (path.startsWith(annotationPath) && value === null) lost.set(path, here[path] ?? null);
  }
  if (here["type"] === "LoadBalancer" && wanted["type"] !== "LoadBalancer") lost.set("type", "LoadBalancer");
  const [ranges, after] = [listIn(here["sourceRanges"]), listIn(wanted["sourceRanges"])];
  if (ranges.some((range) => !after.includes(range))) {
    lost.set("sourceRanges", [...new Set([...ranges, ...after])].sort(compareText));
  }
  const ports = keptPorts(listIn(here["ports"]), listIn(wanted["ports"]));
  if (ports.length > 0) lost.set("ports", [...listIn(wanted["ports"]), ...ports].sort(compareText));
  return lost;
}

const listIn = (field: Field | undefined): readonly string[] =>
  typeof field === "object" && field !== null ? field : [];

/** The ports that go without another one of their name or number: ports of one Service differ in both, and have names. */
function keptPorts(before: readonly string[], after: readonly string[]): readonly string[] {
  const taken = after.map((text) => fieldsOf(JSON.parse(text)));
  const gone = before.filter((text) => !after.includes(text));
  return gone.filter((text) => {
    const { name, port, protocol } = fieldsOf(JSON.parse(text));
    const isNamed = name !== null && taken.every((each) => each["name"] !== null);
    return (
      isNamed &&
      !taken.some((each) => each["name"] === name || (each["port"] === port && each["protocol"] === protocol))
    );
  });
}

/** The same fields of a Service that is there. */
export function itemFields(service: ServiceFacts): Readonly<Record<string, Field>> {
  const { values, annotations } = service.shared;
  const fields: Record<string, Field> = {
    [intentField]: annotations[ownKeys.intent] ?? null,
    type: service.type,
    ports: service.ports.map(portText).sort(compareText),
    sourceRanges: [...service.sourceRanges].sort(compareText),
  };
  for (const [key, value] of Object.entries(service.selector)) fields[selectorPath + key] = value;
  for (const key of ownAnnotations) {
    const value = values[key];
    if (value !== undefined) fields[annotationPath + key] = value;
  }
  return fields;
}

/** A port as text that can be compared; a target port that is not given is the port itself. */
const portText = ({ name, port, targetPort, protocol }: ServiceFacts["ports"][number]): string =>
  JSON.stringify({ name: name ?? null, port, targetPort: targetPort ?? port, protocol });

/** Where in a Service one of these fields is. */
export function exposedPlaceOf(path: string): string {
  if (path.startsWith(selectorPath)) return `spec.selector.${path.slice(selectorPath.length)}`;
  if (path.startsWith(annotationPath)) return `metadata.annotations.${path.slice(annotationPath.length)}`;
  return path === "sourceRanges" ? "spec.loadBalancerSourceRanges" : `spec.${path}`;
}

/** The Service as a merge patch, or as a whole when it is made. */
export function exposedManifest(name: string, { labels, fields }: Content): Readonly<Record<string, unknown>> {
  const [namespace, plain] = name.split("/");
  const under = (prefix: string): Readonly<Record<string, Field>> =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([path, value]) =>
        path.startsWith(prefix) ? [[path.slice(prefix.length), value] as const] : [],
      ),
    );
  const ranges = fields["sourceRanges"];
  const ports = fields["ports"];
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      namespace,
      name: plain,
      labels,
      annotations: { ...under(annotationPath), [ownKeys.intent]: fields[intentField] ?? null },
    },
    spec: {
      type: fields["type"] ?? null,
      selector: under(selectorPath),
      ports: Array.isArray(ports) ? ports.map(portOf) : [],
      loadBalancerSourceRanges: Array.isArray(ranges) && ranges.length > 0 ? ranges : null,
    },
  };
}

function portOf(text: string): Readonly<Record<string, unknown>> {
  const { name, ...port } = fieldsOf(JSON.parse(text));
  return name === null ? port : { name, ...port };
}
