// How what was planned is written. This is the only place where what is sealed is opened.

import { apiVersionOf, type Resource } from "../core/resource.ts";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { Content } from "../core/plan.ts";
import type { WrittenKind } from "../core/provider.ts";
import { compareText } from "../core/world.ts";
import { policyManifest } from "./connectivity-intent.ts";
import { exposedManifest } from "./exposed-object.ts";
import type { PolicyFacts } from "./facts.ts";
import { shareKinds, wholeKinds } from "./kind-plan.ts";
import { usersKey } from "./object-reader.ts";
import type { CiliumPorts, Issued, IssueOrder } from "./ports.ts";
import { withUsers } from "./remote-users.ts";
import { resources } from "./resources.ts";
import { recordPath, shareManifest } from "./share.ts";
import { othersField } from "./share-objects.ts";

type Body = Readonly<Record<string, unknown>>;

/** The kinds that are written, by the name that operations give them; `instanceOf` says who we are at that moment. */
export function ciliumWrittenKinds(
  ports: Pick<CiliumPorts, "issue">,
  instanceOf: () => string,
): Readonly<Record<string, WrittenKind>> {
  const shared = (resource: Resource, manifest: (name: string, content: Content, instance: string) => Body) => ({
    resource,
    update: "merge" as const,
    manifest: (name: string, content: Content) => manifest(name, content, instanceOf()),
  });
  const { secrets, configMaps, services, deployments, daemonSets, networkPolicies, clusterwidePolicies } = resources;
  return {
    [shareKinds.connection]: shared(secrets, (name, content, instance) => secretBody(name, content, instance, ports)),
    [shareKinds.remoteUsers]: shared(configMaps, usersBody),
    [shareKinds.serviceAnnotations]: shared(services, annotationsBody),
    [shareKinds.apiserverAliases]: shared(deployments, (...of) => aliasesBody(deployments, ...of)),
    [shareKinds.agentAliases]: shared(daemonSets, (...of) => aliasesBody(daemonSets, ...of)),
    [wholeKinds.networkPolicy]: policies(networkPolicies, wholeKinds.networkPolicy),
    [wholeKinds.clusterwideNetworkPolicy]: policies(clusterwidePolicies, wholeKinds.clusterwideNetworkPolicy),
    // What the cloud writes into a Service of ours, addresses and node ports, is the cloud's.
    [wholeKinds.exposedService]: { resource: services, update: "merge", manifest: exposedManifest },
  };
}

/** A policy that somebody added a rule to would open more than was intended: it is replaced as a whole. */
const policies = (resource: Resource, kind: PolicyFacts["kind"]): WrittenKind => ({
  resource,
  update: "replace",
  manifest: (name, content) => policyManifest(kind, name, content),
});

const typeOf = (resource: Resource) => ({ apiVersion: apiVersionOf(resource), kind: resource.kind });

function secretBody(name: string, content: Content, instance: string, ports: Pick<CiliumPorts, "issue">): Body {
  const issued = new Map<IssueOrder, Issued>();
  const issue = (order: IssueOrder): Issued => {
    const known = issued.get(order);
    if (known !== undefined) return known;
    const made = ports.issue(order);
    // The authority was checked when it was read; what fails here is a fault of ours or of the machine.
    if (!made.ok) throw new Error(`a certificate for ${order.commonName} cannot be made: ${made.error.detail}`);
    issued.set(order, made.value);
    return made.value;
  };
  return shareManifest(typeOf(resources.secrets), name, instance, content, (path, value, sealed) => {
    if (value === null) return { data: { [path]: null } };
    if (typeof sealed === "string") return { stringData: { [path]: sealed } };
    const order = orderIn(sealed);
    if (order === undefined) return {};
    const { certPem, keyPem } = issue(order.issue);
    return { stringData: { [path]: order.part === "cert" ? certPem : keyPem.expose() } };
  });
}

function orderIn(sealed: unknown): { readonly issue: IssueOrder; readonly part: unknown } | undefined {
  const { issue, part } = fieldsOf(sealed);
  if (typeof issue !== "object" || issue === null) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- connection.ts sealed it as a SealedOrder
  return { issue: issue as IssueOrder, part };
}

function usersBody(name: string, content: Content, instance: string): Body {
  const body = shareManifest(typeOf(resources.configMaps), name, instance, content, () => ({}));
  if (content.fields[usersKey] === null) return { ...body, data: { [usersKey]: null } };
  const users = Object.entries(content.fields).flatMap(([path, role]) =>
    path.startsWith("user/") && typeof role === "string" ? [{ name: path.slice(5), role }] : [],
  );
  users.sort((a, b) => compareText(a.name, b.name));
  return { ...body, data: { [usersKey]: withUsers(textOf(content.fields[othersField]) ?? "", users) } };
}

const annotationsBody = (name: string, content: Content, instance: string): Body =>
  shareManifest(typeOf(resources.services), name, instance, content, (path, value) => ({
    metadata: { annotations: { [path]: value } },
  }));

/** The list as a whole: theirs as they were, and ours beside the address they are at. */
function aliasesBody(resource: Resource, name: string, content: Content, instance: string): Body {
  const body = shareManifest(typeOf(resource), name, instance, content, () => ({}));
  const list = listOf(JSON.parse(textOf(content.fields[othersField]) ?? "[]")).map((each) => {
    const { ip, hostnames } = fieldsOf(each);
    return { ip: textOf(ip) ?? "", hostnames: listOf(hostnames).flatMap((hostname) => textOf(hostname) ?? []) };
  });
  for (const path of Object.keys(content.fields).sort(compareText)) {
    const slash = path.indexOf("/");
    if (path === recordPath || path === othersField || slash === -1 || content.fields[path] === null) continue;
    const [ip, hostname] = [path.slice(0, slash), path.slice(slash + 1)];
    const known = list.find((each) => each.ip === ip);
    if (known === undefined) list.push({ ip, hostnames: [hostname] });
    else known.hostnames.push(hostname);
  }
  return { ...body, spec: { template: { spec: { hostAliases: list.length === 0 ? null : list } } } };
}
