// Who may ask: tokens, roles, and the words in which a request is turned away.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { configMaps, merge, meshes, nodes, peer, peers, secrets, useTargets } from "../support/conformance-objects.ts";
import { caseNamespace } from "../support/conformance-target.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const operator = { as: "operator" } as const;
const subjects = [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "causeway" }];

const cases: readonly Case[] = [
  {
    name: "a token that nobody gave",
    run: async ({ ask }) => {
      for (const path of [peers, `${peers}/a`, "/version", "/healthz", "/api", "/bogus"])
        await ask("GET", path, undefined, { as: "nobody" });
      await ask("POST", peers, peer("a"), { as: "nobody" });
    },
  },
  {
    name: "somebody without rights",
    run: async ({ ask, watch, ended }) => {
      for (const path of [
        peers,
        `${peers}/a`,
        nodes,
        `${nodes}/n1`,
        `${secrets}/x`,
        configMaps,
        "/bogus",
        "/metrics",
        "/healthz",
        "/apis/bogus.io/v1/x",
      ])
        await ask("GET", path, undefined, operator);
      await ask("POST", peers, peer("a"), operator);
      await ask("PUT", `${peers}/a`, peer("a"), operator);
      await ask("PATCH", `${meshes}/m/status`, {}, { ...operator, ...merge });
      await ask("DELETE", `${peers}/a`, undefined, operator);
      await ask("DELETE", peers, undefined, operator);
      await ended(await watch(`${peers}?watch=true`, operator));
    },
  },
  {
    name: "rights by cluster role, by role and by name",
    run: async ({ ask }) => {
      await ask("POST", `${rbac}/clusterroles`, {
        metadata: { name: "c" },
        rules: [
          {
            apiGroups: ["kilo.squat.ai"],
            resources: ["peers", "clustermeshes/status"],
            verbs: ["get", "list", "create"],
          },
        ],
      });
      await ask("POST", `${rbac}/clusterrolebindings`, {
        metadata: { name: "c" },
        subjects,
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "c" },
      });
      await ask("POST", `${rbac}/namespaces/${caseNamespace}/roles`, {
        metadata: { name: "r" },
        rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"], resourceNames: ["s"] }],
      });
      await ask("POST", `${rbac}/namespaces/${caseNamespace}/rolebindings`, {
        metadata: { name: "r" },
        subjects,
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" },
      });
      await ask("POST", peers, peer("a"), operator);
      await ask("GET", peers, undefined, operator);
      await ask("DELETE", `${peers}/a`, undefined, operator);
      await ask("PATCH", `${peers}/a`, {}, { ...operator, ...merge });
      await ask("GET", `${meshes}/m/status`, undefined, operator);
      await ask("GET", `${meshes}/m`, undefined, operator);
      await ask("GET", `${secrets}/s`, undefined, operator);
      await ask("GET", `${secrets}/t`, undefined, operator);
      await ask("GET", secrets, undefined, operator);
      await ask("GET", `${secrets}?fieldSelector=metadata.name%3Ds`, undefined, operator);
      await ask("GET", `${secrets}?fieldSelector=metadata.name%3Dt`, undefined, operator);
      await ask("GET", "/api/v1/namespaces/default/secrets/s", undefined, operator);
      await ask("DELETE", `${rbac}/clusterrolebindings/c`);
      await ask("GET", `${rbac}/clusterrolebindings/c`);
    },
  },
];

compareCases(cases, useTargets());
