// What a server says about itself: its version, its health, and which kinds it serves.

import { json, noSuchPath, noSuchResource, plain, type SimReply } from "./answer.ts";
import { apiVersionOfKind, type Kind } from "./kind.ts";
import type { Fields } from "./value.ts";

/** The Kubernetes whose behaviour the simulation has. */
export const simulatedVersion = { major: "1", minor: "36", gitVersion: "v1.36.3" };

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** Answers a request that is not about objects. */
export function describe(path: string, kinds: readonly Kind[]): SimReply {
  const parts = path.split("/").filter((part) => part !== "");
  const [root, first, second] = parts;
  switch (root ?? "") {
    case "version":
      return json(200, {
        ...simulatedVersion,
        gitCommit: "",
        gitTreeState: "clean",
        buildDate: "1970-01-01T00:00:00Z",
        goVersion: "",
        compiler: "",
        platform: "simulation",
      });
    case "healthz":
    case "livez":
    case "readyz":
      return plain(200, "ok");
    case "api":
      if (parts.length === 1)
        return json(200, { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] });
      if (first !== "v1") throw noSuchResource();
      return resourceList(kinds, "", first);
    case "apis":
      if (parts.length === 1) return json(200, groupList(kinds));
      if (parts.length === 2) return groupOf(kinds, first ?? "");
      return parts.length === 3 ? resourceList(kinds, first ?? "", second ?? "") : noSuchPath();
    case "openapi":
      return parts.length === 2 && first === "v3" ? json(200, openApiPaths(kinds)) : openApiOf(parts.slice(2), kinds);
    default:
      return noSuchPath();
  }
}

function groupVersions(kinds: readonly Kind[]): ReadonlyMap<string, readonly string[]> {
  const out = new Map<string, string[]>();
  for (const { group, version } of kinds) {
    const versions = out.get(group);
    if (versions === undefined) out.set(group, [version]);
    else if (!versions.includes(version)) versions.push(version);
  }
  return out;
}

function groupBody(name: string, found: readonly string[]): Fields {
  const versions = found.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions, preferredVersion: versions[0] };
}

function groupList(kinds: readonly Kind[]): Fields {
  const groups = [...groupVersions(kinds)].filter(([group]) => group !== "");
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(([group, found]) => groupBody(group, found)) };
}

function groupOf(kinds: readonly Kind[], group: string): SimReply {
  const found = groupVersions(kinds).get(group);
  return found === undefined
    ? noSuchPath()
    : json(200, { kind: "APIGroup", apiVersion: "v1", ...groupBody(group, found) });
}

function resourceList(kinds: readonly Kind[], group: string, version: string): SimReply {
  const served = kinds.filter((kind) => kind.group === group && kind.version === version);
  const [first] = served;
  if (first === undefined) return noSuchPath();
  const resources = served.flatMap((kind) => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs,
      ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
      ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
      storageVersionHash: "",
    },
    ...(kind.hasStatus
      ? [
          {
            name: `${kind.plural}/status`,
            singularName: "",
            namespaced: kind.namespaced,
            kind: kind.kind,
            verbs: ["get", "patch", "update"],
          },
        ]
      : []),
  ]);
  return json(200, { kind: "APIResourceList", apiVersion: "v1", groupVersion: apiVersionOfKind(first), resources });
}

const rootOf = ({ group, version }: Kind): string => (group === "" ? `api/${version}` : `apis/${group}/${version}`);

function openApiPaths(kinds: readonly Kind[]): Fields {
  const roots = [...new Set(kinds.map(rootOf))];
  return { paths: Object.fromEntries(roots.map((root) => [root, { serverRelativeURL: `/openapi/v3/${root}` }])) };
}

/** As much of an OpenAPI document as kubectl needs to see that the server validates fields itself. */
function openApiOf(parts: readonly string[], kinds: readonly Kind[]): SimReply {
  const root = parts.join("/");
  const served = kinds.filter((kind) => rootOf(kind) === root);
  if (served.length === 0) return noSuchPath();
  const parameters = [{ name: "fieldValidation", in: "query", schema: { type: "string" } }];
  const paths = served.map(({ group, version, kind, plural, namespaced }) => [
    `/${root}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}/{name}`,
    {
      patch: {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": { group, version, kind },
        parameters,
      },
    },
  ]);
  const schemas = served.map(({ group, version, kind, custom, schema }) => [
    `${group === "" ? "core" : group}.${version}.${kind}`,
    {
      type: "object",
      "x-kubernetes-group-version-kind": [{ group, version, kind }],
      ...(custom ? schema.checks : {}),
    },
  ]);
  return json(200, {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: simulatedVersion.gitVersion },
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(schemas) },
  });
}
