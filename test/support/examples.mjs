// What readers are meant to read: files of this repository, so that the same seed makes the same inputs everywhere.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

const root = join(import.meta.dirname, "../..");
const textOf = (path) => readFileSync(join(root, path), "utf8");
const documentsOf = (path) => parseAllDocuments(textOf(path)).map((document) => document.toJS());

/** Every object of a file of objects. */
export const objectsOf = (path) => documentsOf(path).filter((each) => each !== null);

/** The world of a scenario. */
export const worldOf = (path) => documentsOf(path)[0];

const ciliumCa = worldOf("test/scenarios-cilium/joined.yaml")
  .clusters.flatMap(({ objects }) => objects)
  .find(({ kind, metadata }) => kind === "Secret" && metadata.name === "cilium-ca").data;
const decoded = (base64) => Buffer.from(base64, "base64").toString("utf8");

/** An authority that was made for a story and is good for nothing else. */
export const authority = { certPem: decoded(ciliumCa["ca.crt"]), keyPem: decoded(ciliumCa["ca.key"]) };

/** Texts with a form of their own. */
export const exampleText = {
  world: textOf("test/scenarios/two-clusters.yaml"),
  kubeconfig: `apiVersion: v1
kind: Config
current-context: edge
contexts:
- name: edge
  context: {cluster: edge, user: causeway, namespace: kilo-system}
clusters:
- name: edge
  cluster:
    server: https://192.0.2.1:6443
    certificate-authority-data: ${ciliumCa["ca.crt"]}
users:
- name: causeway
  user: {token: abcdef.0123456789abcdef}
`,
};
