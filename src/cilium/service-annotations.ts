// The annotations by which Cilium is told how a Service is shared. Each has two spellings: every version since 1.14
// knows the old one, newer versions look for the new one first. So both are written, always with one value.

import { compareText } from "../core/world.ts";
import type { ShareWish } from "./share.ts";

/** The annotations of a shared Service: the new spelling and the old one. */
export const sharingKeys = {
  global: ["service.cilium.io/global", "io.cilium/global-service"],
  shared: ["service.cilium.io/shared", "io.cilium/shared-service"],
  affinity: ["service.cilium.io/affinity", "io.cilium/service-affinity"],
} as const;

/** Has Cilium put the endpoints of other clusters into EndpointSlices, which Services without an address need. */
const slicesKey = "service.cilium.io/global-sync-endpoint-slices";

const spellings = new Map<string, readonly string[]>(
  Object.values(sharingKeys).flatMap((keys) => keys.map((key) => [key, keys] as const)),
);

/** What makes a Service global, in both spellings. */
export const globalAnnotations: ReadonlyMap<string, string> = new Map(sharingKeys.global.map((key) => [key, "true"]));

/** What a GlobalService asks for. */
export type AnnotationRequest = {
  readonly shared: boolean | undefined;
  readonly affinity: string | undefined;
  readonly further: Readonly<Record<string, string>>;
  /** Further keys that may be asked for; one that ends in a slash stands for all keys of its domain. */
  readonly allowed: readonly string[];
};

/** The annotations to write, the keys that are refused with the reason, and what contradicts itself. */
export type AnnotationPlan = {
  readonly annotations: ReadonlyMap<string, string>;
  readonly refused: readonly { readonly key: string; readonly detail: string }[];
  readonly contradictions: readonly string[];
};

/** Works out the annotations of a Service that shall be global. */
export function planAnnotations({ shared, affinity, further, allowed }: AnnotationRequest): AnnotationPlan {
  const annotations = new Map<string, string>(globalAnnotations);
  const refused: { key: string; detail: string }[] = [];
  const contradictions: string[] = [];
  const add = (key: string, value: string, from: string): void => {
    for (const spelling of spellings.get(key) ?? [key]) {
      const other = annotations.get(spelling);
      if (other !== undefined && other !== value) {
        contradictions.push(`${from} asks for ${spelling}=${value}, and something else for ${other}`);
      } else annotations.set(spelling, value);
    }
  };
  if (shared !== undefined) add(sharingKeys.shared[0], String(shared), "spec.shared");
  if (affinity !== undefined) add(sharingKeys.affinity[0], affinity, "spec.affinity");
  for (const [key, value] of Object.entries(further).sort(([a], [b]) => compareText(a, b))) {
    const detail = refusal(key, value, allowed);
    if (detail === undefined) add(key, value, "spec.globalAnnotations");
    else refused.push({ key, detail });
  }
  return { annotations, refused, contradictions };
}

const keyForm =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const domainMax = 253;

/** Whether a text can be the key of an annotation. */
export const isAnnotationKey = (key: string): boolean => keyForm.test(key) && key.indexOf("/") <= domainMax;

// What is written here is written with our rights. Controllers of many makers act on annotations of Services, with
// accounts that tenants share; no list of those would be complete.
function refusal(key: string, value: string, allowed: readonly string[]): string | undefined {
  if (!isAnnotationKey(key)) return "it is not the key of an annotation";
  const domain = key.slice(0, key.indexOf("/") + 1);
  if (domain === "causeway.dev/" || domain.endsWith(".causeway.dev/"))
    return "it is how Causeway remembers what it did";
  if (globalAnnotations.has(key) && value !== "true") return "a GlobalService makes Services global";
  if (spellings.has(key) || key === slicesKey || allowed.includes(key)) return undefined;
  if (domain !== "" && allowed.includes(domain)) return undefined;
  return "Cilium does not share Services by it, and the operator's --global-annotations does not allow it";
}

/** Joins what several intents wish of one object: where two wish the same at a path, it is written for both. */
export function joinWishes(wishes: Iterable<ShareWish>): readonly ShareWish[] {
  const joined = new Map<string, ShareWish>();
  for (const wish of wishes) {
    const first = joined.get(wish.path);
    if (first === undefined) joined.set(wish.path, wish);
    else if (first.value === wish.value) {
      const intents = [...new Set([...first.intents, ...wish.intents])].sort(compareText);
      joined.set(wish.path, { ...first, intents });
    }
  }
  return [...joined.values()];
}
