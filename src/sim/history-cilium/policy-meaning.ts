// What a policy of Cilium lets through or keeps out, tried with pods of a small world: clusters, namespaces, one label.

import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { workNamespaces, workServices } from "../cilium/helm.ts";
import type { Fields } from "../value.ts";

/** A pod, as far as policies can tell. */
export type Pod = { readonly cluster: string; readonly namespace: string; readonly app: string };

/** Traffic from one pod to another. */
export type Traffic = { readonly from: Pod; readonly to: Pod; readonly port: number; readonly protocol: "TCP" | "UDP" };

/** A policy where it is in force. */
export type Policy = {
  /** Nothing for one of the whole cluster. */
  readonly namespace: string | undefined;
  readonly spec: Fields;
  /** What Cilium calls the cluster, and the second part of its version. */
  readonly cluster: string;
  readonly minor: number;
};

/** One thing that a policy does: on which side, and whether it opens or closes. */
export type Side = "ingress" | "egress" | "ingressDeny" | "egressDeny";

const namespaceKey = "io.kubernetes.pod.namespace";
const clusterKey = "io.cilium.k8s.policy.cluster";
const apps = [...workServices, "other"];
const namespaces = [...workNamespaces, "other"];
const ports = [8_080, 443];

/** All the traffic that could be: between every two pods of a world. */
export function allTraffic(clusters: readonly string[]): readonly Traffic[] {
  const pods = clusters.flatMap((cluster) =>
    namespaces.flatMap((namespace) => apps.map((app) => ({ cluster, namespace, app }))),
  );
  return pods.flatMap((from) =>
    pods.flatMap((to) =>
      ports.flatMap((port) => (["TCP", "UDP"] as const).map((protocol) => ({ from, to, port, protocol }))),
    ),
  );
}

/** Whether a policy is about this traffic, on one side: it selects the pod there, and names the other one. */
export function covers(policy: Policy, side: Side, { from, to, port, protocol }: Traffic): boolean {
  const isIngress = side.startsWith("ingress");
  const [own, peer] = isIngress ? [to, from] : [from, to];
  if (own.cluster !== policy.cluster || !selectsOwn(policy, own)) return false;
  return listOf(policy.spec[side])
    .map(fieldsOf)
    .some((rule) => {
      const entities = listOf(rule[isIngress ? "fromEntities" : "toEntities"]);
      const selectors = rule[isIngress ? "fromEndpoints" : "toEndpoints"];
      const isAnybody = entities.includes("all") || entities.includes("cluster");
      const isNamed = listOf(selectors).some((selector) => selectsPeer(policy, fieldsOf(selector), peer));
      const namesNobody = selectors === undefined && entities.length === 0;
      return (isAnybody || isNamed || namesNobody) && goesTo(rule, port, protocol);
    });
}

function selectsOwn({ namespace, spec }: Policy, pod: Pod): boolean {
  if (namespace !== undefined && pod.namespace !== namespace) return false;
  return matches(fieldsOf(spec["endpointSelector"]), pod);
}

function selectsPeer({ namespace, cluster, minor }: Policy, selector: Fields, pod: Pod): boolean {
  const keys = keysOf(selector);
  if (namespace !== undefined && !keys.has(namespaceKey) && pod.namespace !== namespace) return false;
  if (minor >= 19 && !keys.has(clusterKey) && pod.cluster !== cluster) return false;
  return matches(selector, pod);
}

const plainKey = (key: string): string => key.replace(/^(k8s|any)[:.]/, "");

function keysOf(selector: Fields): ReadonlySet<string> {
  const labels = Object.keys(fieldsOf(selector["matchLabels"])).map(plainKey);
  const expressions = listOf(selector["matchExpressions"]).map((each) => plainKey(String(fieldsOf(each)["key"])));
  return new Set([...labels, ...expressions]);
}

function matches(selector: Fields, pod: Pod): boolean {
  const labels: Readonly<Record<string, string>> = {
    app: pod.app,
    [namespaceKey]: pod.namespace,
    [clusterKey]: pod.cluster,
  };
  const byLabel = Object.entries(fieldsOf(selector["matchLabels"])).every(
    ([key, value]) => labels[plainKey(key)] === value,
  );
  return (
    byLabel &&
    listOf(selector["matchExpressions"])
      .map(fieldsOf)
      .every(({ key, operator, values }) => {
        const value = labels[plainKey(String(key))];
        if (operator === "Exists") return value !== undefined;
        if (operator === "DoesNotExist") return value === undefined;
        const isIn = listOf(values).some((each) => each === value);
        return operator === "In" ? isIn : operator === "NotIn" ? !isIn : false;
      })
  );
}

function goesTo(rule: Fields, port: number, protocol: string): boolean {
  if (rule["toPorts"] === undefined) return rule["icmps"] === undefined;
  return listOf(rule["toPorts"])
    .flatMap((each) => listOf(fieldsOf(each)["ports"]))
    .map(fieldsOf)
    .some((each) => {
      const first = Number(textOf(each["port"]) ?? each["port"]);
      const last = typeof each["endPort"] === "number" ? each["endPort"] : first;
      const speaks = textOf(each["protocol"]) ?? "ANY";
      return port >= first && port <= last && (speaks === "ANY" || speaks === protocol);
    });
}

/** Whether the pods that a policy selects are cut off from everything that nobody allows, on one side. */
export function isolates({ spec }: Policy, side: "ingress" | "egress"): boolean {
  const isAbout = spec[side] !== undefined || spec[`${side}Deny`] !== undefined;
  return isAbout && fieldsOf(spec["enableDefaultDeny"])[side] !== false;
}

/** Whether an intent is about this traffic, if it is between clusters of its mesh. */
export function isMeant(intent: Fields, { from, to, port, protocol }: Traffic): boolean {
  const listed = listOf(intent["ports"]).map(fieldsOf);
  const isPort =
    listed.length === 0 ||
    listed.some((each) => each["port"] === port && ["ANY", protocol].includes(textOf(each["protocol"]) ?? "TCP"));
  return isPort && isOn(fieldsOf(intent["source"]), from) && isOn(fieldsOf(intent["destination"]), to);
}

function isOn(side: Fields, pod: Pod): boolean {
  if (textOf(side["namespace"]) !== pod.namespace) return false;
  const name = textOf(side["name"]) ?? textOf(fieldsOf(side["selector"])["app"]);
  return name === undefined || name === pod.app;
}
