/** A kind of object as an API server serves it. */
export type Resource = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
};

/** Which objects of a kind: one namespace or all, everything or what selectors match. */
export type Scope = {
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
};

/** Namespaces: the UID of one of them, kube-system, tells a cluster from every other. */
export const namespaces: Resource = {
  group: "",
  version: "v1",
  plural: "namespaces",
  kind: "Namespace",
  namespaced: false,
};

/** The `apiVersion` of a resource's objects. */
export const apiVersionOf = ({ group, version }: Resource): string => (group === "" ? version : `${group}/${version}`);

/** How people and logs call a resource: `peers.kilo.squat.ai`. */
export const resourceName = ({ group, plural }: Resource): string => (group === "" ? plural : `${plural}.${group}`);

/** Where an object is that plans call `<namespace>/<name>`, or by its name alone if its kind knows no namespaces. */
export function refOf({ namespaced }: Resource, name: string): { readonly namespace?: string; readonly name: string } {
  const slash = namespaced ? name.indexOf("/") : -1;
  return slash === -1 ? { name } : { namespace: name.slice(0, slash), name: name.slice(slash + 1) };
}
