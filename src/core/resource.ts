/** A kind of object as an API server serves it. */
export type Resource = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
};

/** The `apiVersion` of a resource's objects. */
export const apiVersionOf = ({ group, version }: Resource): string => (group === "" ? version : `${group}/${version}`);

/** How people and logs call a resource: `peers.kilo.squat.ai`. */
export const resourceName = ({ group, plural }: Resource): string => (group === "" ? plural : `${plural}.${group}`);
