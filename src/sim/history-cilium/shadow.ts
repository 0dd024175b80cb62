// A cluster as it would be if we had never been there: everything that others did to it, and nothing that we did. What we
// let go of must be that again.

import { fieldsOf, textOf } from "../../core/json.ts";
import { usersIn } from "../cilium/etcd.ts";
import { kept } from "../cilium/definitions.ts";
import type { CiliumCluster } from "../cilium/cluster.ts";
import { names } from "../cilium/helm.ts";
import type { Change } from "../store.ts";
import type { Fields } from "../value.ts";

/** An object as its leaves: what is at each path. Lists are leaves, and so is what is empty. */
export type Leaves = ReadonlyMap<string, string>;

const usersPath = "data.users.yaml";
const ignored = /^metadata\.(uid|resourceVersion|generation|creationTimestamp|managedFields)|^status/;
const templateGeneration = "deprecated.daemonset.template.generation";

/** The leaves of an object, without what the server keeps and what others say of it. */
export function leavesOf(object: Fields | undefined): Leaves {
  const out = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    if (ignored.test(path) || path.endsWith(templateGeneration)) return;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      out.set(path, typeof value === "string" ? value : JSON.stringify(value));
    } else for (const [key, each] of Object.entries(value)) walk(each, path === "" ? key : `${path}.${key}`);
  };
  if (object !== undefined) walk(object, "");
  return out;
}

/** The paths at which two objects differ. */
export function differences(before: Leaves, after: Leaves): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path));
}

/** The storages that a shadow is cast of. */
export const shadowed: readonly string[] = Object.values(kept);

/** What one cluster would be without us. */
export class Shadow {
  readonly #cluster: CiliumCluster;
  readonly #objects = new Map<string, Map<string, string>>();
  /** Paths that we wrote last. */
  readonly #ours = new Set<string>();
  /** Paths that somebody changed while they were ours: what becomes of them is nobody's business. */
  readonly #contested = new Set<string>();
  /** Users that we listed. */
  readonly #users = new Set<string>();
  #isRelisted = false;
  /** Objects that we made. */
  readonly #made = new Set<string>();

  constructor(cluster: CiliumCluster) {
    this.#cluster = cluster;
    for (const storage of shadowed) {
      for (const object of cluster.server.objects(storage))
        this.#objects.set(keyOf(storage, object), new Map(leavesOf(object)));
    }
  }

  /** Whether what is at a path is what we wrote there, or what somebody made of it. */
  isOurs(storage: string, key: string, path: string): boolean {
    const place = `${storage} ${key} ${path}`;
    return this.#ours.has(place) || this.#contested.has(place);
  }

  /** Whether we made an object. */
  isMade(storage: string, key: string): boolean {
    return this.#made.has(`${storage} ${key}`);
  }

  /** What others left at a path. */
  valueOf(storage: string, key: string, path: string): string | undefined {
    return this.#objects.get(`${storage} ${key}`)?.get(path);
  }

  /** Somebody says that what is at a path is ours. */
  disown(storage: string, key: string, path: string): void {
    this.#ours.add(`${storage} ${key} ${path}`);
    this.#contested.add(`${storage} ${key} ${path}`);
  }

  /** We changed something. */
  written(storage: string, { key, type, before, after }: Change): void {
    const object = `${storage} ${key}`;
    if (type === "ADDED") this.#made.add(object);
    if (type === "DELETED") this.#made.delete(object);
    const now = type === "DELETED" ? new Map<string, string>() : leavesOf(after);
    const listed = new Set(usersIn(leavesOf(before).get(usersPath) ?? ""));
    for (const user of usersIn(now.get(usersPath) ?? "")) if (!listed.has(user)) this.#users.add(user);
    for (const path of differences(leavesOf(before), now)) {
      const isAsBefore = now.get(path) === this.#objects.get(object)?.get(path);
      if (isAsBefore) this.#ours.delete(`${object} ${path}`);
      else this.#ours.add(`${object} ${path}`);
    }
  }

  /** Somebody else changed something. */
  changed(storage: string, { key, type, before, after }: Change): void {
    const object = `${storage} ${key}`;
    const now = type === "DELETED" ? new Map<string, string>() : leavesOf(after);
    // What is wholly ours is not changed by others, only spoilt.
    if (type === "MODIFIED" && storage.startsWith("cilium.io/") && this.#made.has(object)) return;
    if (type === "DELETED") {
      this.#objects.delete(object);
      this.#made.delete(object);
    }
    for (const path of differences(leavesOf(before), now)) {
      const place = `${object} ${path}`;
      if (path === usersPath && type !== "DELETED") {
        this.#listUsers(object, now.get(path) ?? "");
        continue;
      }
      if (this.#ours.delete(place) && type !== "DELETED") this.#contested.add(place);
      const value = now.get(path);
      if (type === "DELETED") this.#contested.delete(place);
      else if (value === undefined) this.#objects.get(object)?.delete(path);
      else {
        const leaves = this.#objects.get(object) ?? new Map<string, string>();
        this.#objects.set(object, leaves.set(path, value));
      }
    }
  }

  #isSameUsers(path: string, is: string | undefined, should: string | undefined): boolean {
    if (path !== usersPath || !this.#isRelisted) return false;
    return [...usersIn(is ?? "")].sort().join() === [...usersIn(should ?? "")].sort().join();
  }

  /** A list of users without which clustermesh-apiserver could not start again stays, empty. */
  #isNeeded(object: string, is: Leaves | undefined, should: Leaves | undefined): boolean {
    if (!object.endsWith(`/${names.users}`) || this.#cluster.installed.authMode === "legacy") return false;
    return should === undefined && usersIn(is?.get(usersPath) ?? "").length === 0;
  }

  /** Others wrote into a list of users in which some are ours: who is listed counts from now on, not how. */
  #listUsers(object: string, text: string): void {
    const theirs = usersIn(text).filter((user) => !this.#users.has(user));
    const leaves = this.#objects.get(object) ?? new Map<string, string>();
    this.#objects.set(object, leaves.set(usersPath, `users:\n${theirs.map((user) => `- name: ${user}\n`).join("")}`));
    this.#isRelisted = true;
  }

  /** How the cluster differs from what it would be. */
  remains(): readonly string[] {
    const actual = new Map<string, Leaves>();
    for (const storage of shadowed) {
      for (const object of this.#cluster.server.objects(storage)) actual.set(keyOf(storage, object), leavesOf(object));
    }
    return [...new Set([...actual.keys(), ...this.#objects.keys()])].flatMap((object) => {
      const [is, should] = [actual.get(object), this.#objects.get(object)];
      return differences(should ?? new Map(), is ?? new Map())
        .filter((path) => !this.#contested.has(`${object} ${path}`))
        .filter((path) => !(this.#made.has(object) && should !== undefined && isMark(path)))
        .filter((path) => !this.#isSameUsers(path, is?.get(path), should?.get(path)))
        .filter(() => !this.#isNeeded(object, is, should))
        .map((path) => {
          const shown = (text: string | undefined): string =>
            text === undefined ? "nothing" : JSON.stringify(text.slice(0, 60));
          return `${object} on ${this.#cluster.name} has ${shown(is?.get(path))} at ${path}, not ${shown(should?.get(path))}`;
        });
    });
  }
}

/** What an object that we made has beside its content; it stays with what others put into it. */
const isMark = (path: string): boolean => /^(apiVersion|kind|type|metadata\.(name|namespace|labels\..*))$/.test(path);

function keyOf(storage: string, object: Fields): string {
  const { namespace, name } = fieldsOf(object["metadata"]);
  return `${storage} ${textOf(namespace) === undefined ? "" : `${String(namespace)}/`}${String(name)}`;
}
