// The objects of a world file, whoever reads them: lists become their items, and of two of one name one counts.

import { kcpClusterAnnotation } from "../api/networking.ts";
import { canonicalText, fieldsOf, textOf } from "./json.ts";

/** What an object is called: its kind, and what its metadata says. */
export const kindOf = (object: unknown): string | undefined => textOf(fieldsOf(object)["kind"]);

/** A text of an object's metadata. */
export const metadataText = (object: unknown, key: "name" | "namespace" | "uid"): string | undefined =>
  textOf(fieldsOf(fieldsOf(object)["metadata"])[key]);

/** The kcp workspace that an object says it is in. */
export const workspaceOf = (object: unknown): string | undefined =>
  textOf(fieldsOf(fieldsOf(fieldsOf(object)["metadata"])["annotations"])[kcpClusterAnnotation]);

/** Objects one by one, and the names that two different objects of a kind have. */
export function objectsIn(raw: readonly unknown[]): {
  readonly objects: readonly unknown[];
  readonly repeated: readonly { readonly kind: string; readonly name: string }[];
} {
  const byName = new Map<string, unknown>();
  const unnamed: unknown[] = [];
  const repeated: { kind: string; name: string }[] = [];
  for (const object of raw.flatMap(flatten)) {
    const name = metadataText(object, "name");
    const kind = kindOf(object);
    if (name === undefined || kind === undefined) {
      unnamed.push(object);
      continue;
    }
    const namespace = clusterScoped.has(kind) ? "" : (metadataText(object, "namespace") ?? "default");
    const key = JSON.stringify([kind, namespace, name, workspaceOf(object)]);
    const other = byName.get(key);
    if (other === undefined) byName.set(key, object);
    else {
      const first = canonicalText(other);
      const second = canonicalText(object);
      if (first === second) continue;
      repeated.push({ kind, name });
      // Which of two is taken must not depend on their order, so the text decides.
      if (second > first) byName.set(key, object);
    }
  }
  return { objects: [...byName.values(), ...unnamed], repeated };
}

/** `kubectl get -o yaml` of several objects is a List. */
function flatten(raw: unknown): readonly unknown[] {
  const { items } = fieldsOf(raw);
  const kind = kindOf(raw);
  if (kind === undefined || !kind.endsWith("List") || !Array.isArray(items)) return [raw];
  const itemKind = kind.slice(0, -"List".length);
  if (itemKind === "") return items;
  return items.map((item: unknown) => (kindOf(item) === undefined ? { ...fieldsOf(item), kind: itemKind } : item));
}

/** Kinds whose objects have no namespace, whatever their metadata says. */
const clusterScoped: ReadonlySet<string> = new Set(["Node", "Peer", "Namespace", "ServiceCIDR", "CiliumNode"]);
