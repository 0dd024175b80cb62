// Whatever a cluster names itself, its load balancer and its certificates: what is written for others holds the texts
// that were meant, and nothing that they could be read as.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { localEntry, remoteEntry } from "../../src/cilium/connection.ts";
import { dialOf, namesToResolve, reachOf } from "../../src/cilium/endpoint.ts";
import { readUsers, withoutUsers, withUsers } from "../../src/cilium/remote-users.ts";
import { readYamlText, yamlText } from "../../src/cilium/yaml-text.ts";
import { runs, Tally } from "../support/tally.ts";

const folder = "/var/lib/cilium/clustermesh";
const dnsName = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;

/** Pieces that mean something in YAML, in one of its versions or in a URL, among pieces that mean nothing. */
const piece = fc.constantFrom(
  ..."a|west|x.example|10.0.0.1|::1|fd00::|2379|1:20|1e3|0x10|0|.5|.inf|2026-11-18|true|no|null|~|-|---|...|_|/|.".split(
    "|",
  ),
  ..."\n|\r\n|\t| |: |:|#| #|- |? |[|]|{|}|,|&a|*a|!!int |%|@|`|'|''|\"|\\|\\n|\\u0041|>|<<: ".split("|"),
  ..."\u0000|\u0007|\u001b[2J|\u007f|\u0085|\u00a0|\u2028|\u2029|\ufeff|\ufffe|é|日本|\u{1f600}|\ud800|\udc00".split(
    "|",
  ),
  "\nkey-file: /etc/shadow\n",
  "\n---\n#",
  "a".repeat(300),
);
const hostile = fc.oneof(
  fc.array(piece, { minLength: 1, maxLength: 5 }).map((all) => all.join("")),
  fc.string(),
);
const text = fc.oneof(
  hostile,
  fc.constantFrom("west", "x.elb.example.com", "X.Example", "198.51.100.7", "2001:db8::7"),
);
const usualUrl = fc.constantFrom(
  "https://west.mesh.cilium.io:2379",
  "https://[2001:db8::7]:2379",
  "https://198.51.100.7:32379",
);

test("a text that is written to YAML is read as that text", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(fc.oneof({ weight: 8, arbitrary: text }, { weight: 1, arbitrary: usualUrl }), (given) => {
      const scalar = yamlText(given);
      for (const version of ["1.1", "1.2"] as const) {
        expect(parse(`a: ${scalar}\nb:\n- ${scalar}\n- c: ${scalar}\n`, { version })).toEqual({
          a: given,
          b: [given, { c: given }],
        });
      }
      expect(readYamlText(scalar)).toBe(given);
      expect(scalar).toMatch(/^[\x20-\x7e]+$/);
      if (/^https?:\/\/[A-Za-z0-9./:_[\]-]*[A-Za-z0-9]$|^[a-z]+(-[a-z]+)+$/.test(given)) expect(scalar).toBe(given);
      tally.saw("plain", scalar === given);
      tally.saw("quoted", scalar !== given);
    }),
    runs,
  );
  tally.atLeast({ plain: 0.1, quoted: 0.3 });
});

test("the entry of a peer is the document that was meant, whatever names it", () => {
  const tally = new Tally();
  const ingress = fc.record({ hostname: text, ip: fc.option(text, { nil: undefined, freq: 3 }) }, { requiredKeys: [] });
  fc.assert(
    fc.property(
      fc.array(ingress, { minLength: 1, maxLength: 3 }),
      fc.array(text, { maxLength: 3 }),
      fc.oneof(text, fc.constant("west")),
      fc.boolean(),
      (balanced, sans, peer, hasAliases) => {
        const service = { type: "LoadBalancer", ports: [{ port: 2379 }], ingress: balanced };
        const names = balanced.flatMap(({ hostname }) => hostname?.toLowerCase() ?? []);
        // The attacker's certificate names whatever his load balancer does.
        const certificate = { dnsNames: [...sans, ...names, `${peer}.mesh.cilium.io`], ipAddresses: sans };
        for (const name of namesToResolve(service as never)) expect(name).toMatch(dnsName);
        const reach = reachOf({ ref: { name: "b" }, facts: { endpoint: service } } as never, undefined, new Set());
        if (!reach.ok) return tally.saw("refused");
        const dns = new Map(names.map((name) => [name, "198.51.100.9"]));
        const dial = dialOf(reach.value, peer, certificate as never, dns);
        if (!dial.ok) return tally.saw("not dialled");
        const { urls, alias } = dial.value;
        const entry = remoteEntry(peer, dial.value, { pem: "", hash: "sha256:0123456789abcdef" }, hasAliases);
        expect(parse(entry)).toEqual({
          endpoints: urls,
          "trusted-ca-file": `${folder}/${peer}.etcd-client-ca.crt`,
          "key-file": `${folder}/${peer}.etcd-client.key`,
          "cert-file": `${folder}/${peer}.etcd-client.crt`,
          ...(hasAliases && alias !== undefined ? { "cilium-host-aliases": [alias] } : {}),
        });
        for (const url of urls) {
          const [, host = ""] = /^https:\/\/(.*):2379$/s.exec(url) ?? [];
          expect(alias?.hostname === host || /^[0-9a-f.:[\]]+$/.test(host) || dnsName.test(host)).toBe(true);
        }
        tally.saw("aliases", hasAliases && alias !== undefined);
        tally.saw("written");
      },
    ),
    runs,
  );
  tally.atLeast({ refused: 0.05, written: 0.2, aliases: 0.01 });
});

test("the entry of a cluster's own etcd is the document that was meant, whatever its namespace is called", () => {
  fc.assert(
    fc.property(text, fc.boolean(), (namespace, hasOwn) => {
      const file = `${folder}/${hasOwn ? "local" : "common"}-etcd-client`;
      expect(parse(localEntry(namespace, hasOwn))).toEqual({
        endpoints: [`https://clustermesh-apiserver.${namespace}.svc:2379`],
        "trusted-ca-file": `${file}-ca.crt`,
        "key-file": `${file}.key`,
        "cert-file": `${file}.crt`,
      });
    }),
    runs,
  );
});

test("users of any name are added as they are, are found again, and go without a trace", () => {
  const before = "users:\n  - name: remote-a\n    role: remote\n";
  fc.assert(
    fc.property(fc.uniqueArray(text, { minLength: 1, maxLength: 3 }), fc.constantFrom("", before), (names, present) => {
      const users = names.filter((name) => name !== "remote-a").map((name) => ({ name, role: "remote" }));
      const others = present === "" ? [] : [{ name: "remote-a", role: "remote" }];
      const added = withUsers(present, users);
      expect(parse(added)).toEqual({ users: [...others, ...users] });
      expect(readUsers(added)).toEqual([...others, ...users]);
      if (present !== "") expect(withoutUsers(added, new Set(names))).toBe(present);
    }),
    runs,
  );
});
