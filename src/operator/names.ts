// Names → addresses, by DNS and the hosts file, without getaddrinfo: that blocks one of the few threads that all
// connections and files share, for as long as a name server that was chosen by somebody else likes.

import { Resolver } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Lookup } from "../fleet/resolver.ts";
import type { Clock } from "../kube/runtime.ts";

/** Names as this machine knows them. */
export type Names = {
  /** The addresses of a name as it stands, in the hosts file or by DNS: no search domain is tried. */
  readonly addressesOf: Lookup;
  /** The same for connections, where the search domains of this machine count: `kubernetes.default.svc` has one. */
  readonly lookup: LookupFunction;
};

/** What looking up names needs. */
export type NamesOptions = {
  readonly clock: Clock;
  readonly readFile: (path: string) => Promise<string>;
  /** The name servers, `host:port`; those of this machine, if nothing is said. */
  readonly servers?: readonly string[];
};

const hostsPath = "/etc/hosts";
const resolvPath = "/etc/resolv.conf";
/** Both files and the name servers are looked at again after as long. */
const filesMs = 10_000;
/** The first try; the second takes twice as long. */
const timeoutMs = 2_000;
const tries = 2;
const fileCharsMax = 1024 * 1024;
const searchMax = 32;
const addressesMax = 64;

type Surroundings = {
  readonly resolver: Resolver;
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  readonly search: SearchList;
};

/** Domains that are appended to a name, and how many dots it needs to be tried as it stands first. */
export type SearchList = { readonly domains: readonly string[]; readonly ndots: number };

/** Opens nothing until the first name is asked for. */
export function openNames({ clock, readFile, servers }: NamesOptions): Names {
  let read: { readonly atMs: number; readonly found: Promise<Surroundings> } | undefined;

  const textIn = async (path: string): Promise<string> => {
    try {
      return (await readFile(path)).slice(0, fileCharsMax);
    } catch {
      return ""; // as for everybody else who looks up names: without the file there is nothing in it
    }
  };

  const look = async (): Promise<Surroundings> => {
    const [hosts, resolv] = await Promise.all([textIn(hostsPath), textIn(resolvPath)]);
    // A new one each time: a resolver knows only the name servers of when it was made.
    const resolver = new Resolver({ timeout: timeoutMs, tries });
    if (servers !== undefined) resolver.setServers([...servers]);
    return { resolver, hosts: readHosts(hosts), search: readSearchList(resolv) };
  };

  const surroundings = (): Promise<Surroundings> => {
    if (read === undefined || clock.monotonicMs() - read.atMs >= filesMs) {
      read = { atMs: clock.monotonicMs(), found: look() };
    }
    return read.found;
  };

  const addressesOf: Lookup = async (name) => {
    const { resolver, hosts } = await surroundings();
    return hosts.get(name.toLowerCase()) ?? (await ask(resolver, name));
  };

  const searched = async (name: string): Promise<readonly string[]> => {
    const { resolver, hosts, search } = await surroundings();
    const lower = name.toLowerCase();
    const own = hosts.get(lower) ?? (/(?:^|\.)localhost\.?$/.test(lower) ? ["127.0.0.1", "::1"] : undefined);
    if (own !== undefined) return own;
    let failure: unknown;
    for (const candidate of candidatesFor(lower, search)) {
      try {
        return await ask(resolver, candidate);
      } catch (error) {
        failure ??= error;
        if (!mayBeElsewhere(error)) throw error;
      }
    }
    throw failure;
  };

  return {
    addressesOf,
    lookup: (name, { all, family }, done) => {
      void searched(name).then(
        (found) => {
          const wanted = found
            .map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
            .filter((each) => (family !== 4 && family !== 6) || each.family === family);
          const [first] = wanted;
          if (first === undefined) done(noSuchName(name, "ENOTFOUND"), "", 4);
          else if (all === true) done(null, wanted);
          else done(null, first.address, first.family);
        },
        (error: unknown) => done(noSuchName(name, codeOf(error)), "", 4),
      );
    },
  };
}

/** IPv4 first; IPv6 alone counts only if there is no IPv4, not if nothing is known of it. */
async function ask(resolver: Resolver, name: string): Promise<readonly string[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  if (four.status === "rejected" && !isNoData(four.reason)) throw four.reason;
  const found = [four, six].flatMap((each) => (each.status === "fulfilled" ? each.value.slice(0, addressesMax) : []));
  if (found.length > 0) return found;
  throw six.status === "rejected" && !isNoData(six.reason) ? six.reason : noSuchName(name, "ENOTFOUND");
}

const codeOf = (error: unknown): string => textOf(fieldsOf(error)["code"]) ?? "EAI_FAIL";

const isNoData = (error: unknown): boolean => ["ENOTFOUND", "ENODATA"].includes(codeOf(error));

/** Whether the name may be found below another domain: this one has said no, and not said nothing. */
const mayBeElsewhere = (error: unknown): boolean => isNoData(error) || codeOf(error) === "ESERVFAIL";

function noSuchName(name: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${name} does not resolve (${code})`), { code });
}

/** What to ask for, in the order of the C library. */
export function candidatesFor(name: string, { domains, ndots }: SearchList): readonly string[] {
  if (name.endsWith(".")) return [name];
  const below = domains.map((domain) => `${name}.${domain}`);
  return name.split(".").length - 1 >= ndots ? [name, ...below] : [...below, name];
}

/** The names in a hosts file, in lower case. */
export function readHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = (line.split("#", 1)[0] ?? "").split(/[ \t\r]+/).filter((word) => word !== "");
    if (address === undefined || !/^[0-9a-fA-F.:]+$/.test(address)) continue;
    for (const name of names) {
      const addresses = found.get(name.toLowerCase()) ?? [];
      found.set(name.toLowerCase(), addresses);
      if (addresses.length < addressesMax && !addresses.includes(address)) addresses.push(address);
    }
  }
  return found;
}

/** The search domains in a resolv.conf; the last line that names some counts. */
export function readSearchList(text: string): SearchList {
  let domains: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [key, ...values] = line.split(/[ \t\r]+/).filter((word) => word !== "");
    if (key === "search" || key === "domain") {
      domains = values
        .slice(0, searchMax)
        .map((domain) => domain.replace(/\.$/, "").toLowerCase())
        .filter((domain) => domain !== "");
    }
    if (key !== "options") continue;
    for (const option of values) if (/^ndots:\d{1,2}$/.test(option)) ndots = Number(option.slice("ndots:".length));
  }
  return { domains, ndots };
}
