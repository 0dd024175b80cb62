// What an API server says it serves.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { Resource } from "../core/resource.ts";

/** The groups of an APIGroupList, each in the version that it prefers. */
export function servedVersions(groups: unknown): readonly { readonly group: string; readonly version: string }[] {
  return listOf(fieldsOf(groups)["groups"]).flatMap((each) => {
    const { name, preferredVersion } = fieldsOf(each);
    const [group, version] = [textOf(name), textOf(fieldsOf(preferredVersion)["version"])];
    return group === undefined || version === undefined ? [] : [{ group, version }];
  });
}

/** The kinds of an APIResourceList; subresources are not among them. */
export function servedResources(list: unknown, group: string, version: string): readonly Resource[] {
  return listOf(fieldsOf(list)["resources"]).flatMap((each): Resource[] => {
    const { name, kind, namespaced } = fieldsOf(each);
    const [plural, called] = [textOf(name), textOf(kind)];
    if (plural === undefined || called === undefined || plural.includes("/")) return [];
    return [{ group, version, plural, kind: called, namespaced: namespaced === true }];
  });
}
