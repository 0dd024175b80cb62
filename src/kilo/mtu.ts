import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { appendAll } from "../core/list.ts";
import type { MtuFacts } from "./facts.ts";

/**
 * What a cluster's own objects say about packet sizes: the CNI's MTU from the ConfigMaps of Kilo and Cilium, and
 * WireGuard's from the arguments of Kilo's agent. Only what is written down as a number counts.
 */
export function readClusterMtu(objects: readonly unknown[]): Omit<MtuFacts, "path"> {
  const pod: number[] = [];
  const wireguard: number[] = [];
  for (const object of objects) {
    const { kind, metadata, data, spec } = fieldsOf(object);
    const name = textOf(fieldsOf(metadata)["name"]) ?? "";
    if (kind === "ConfigMap" && name === "cilium-config") appendAll(pod, numberIn(fieldsOf(data)["mtu"]));
    if (kind === "ConfigMap" && name === "kilo") appendAll(pod, mtuInJson(fieldsOf(data)["cni-conf.json"]));
    if (kind !== "DaemonSet" || !name.startsWith("kilo")) continue;
    const podSpec = fieldsOf(fieldsOf(fieldsOf(spec)["template"])["spec"]);
    const args = listOf(podSpec["containers"]).flatMap((container) => listOf(fieldsOf(container)["args"]));
    for (const argument of args) {
      if (typeof argument === "string" && argument.startsWith("--mtu="))
        appendAll(wireguard, numberIn(argument.slice(6)));
    }
  }
  return { pod: smallest(pod), wireguard: smallest(wireguard) };
}

const smallest = (values: readonly number[]): number | undefined =>
  values.reduce<number | undefined>(
    (least, value) => (least === undefined || value < least ? value : least),
    undefined,
  );

function numberIn(value: unknown): number[] {
  return typeof value === "string" && /^[1-9]\d{2,4}$/.test(value) ? [Number(value)] : [];
}

function mtuInJson(value: unknown): number[] {
  const found = typeof value === "string" && value.length < 65_536 ? /"mtu"\s*:\s*([1-9]\d{2,4})\b/.exec(value) : null;
  return found?.[1] === undefined ? [] : [Number(found[1])];
}
