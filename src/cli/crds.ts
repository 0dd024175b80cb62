import { realpathSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { ciliumCrds, clusterMeshCrd } from "../api/crd.ts";
import {
  apiResourceSchemas,
  exportPathPlaceholder,
  fleetIdentityPlaceholder,
  networkingBinding,
  networkingExport,
} from "../api/kcp.ts";

/** A generated file: its name in its folder and its whole text. */
export type CrdFile = { readonly name: string; readonly text: string };

/** Where the generated definitions are kept. */
export const crdFolder = fileURLToPath(new URL("../../crds/", import.meta.url));

/** Where the generated objects for kcp are kept. */
export const kcpFolder = fileURLToPath(new URL("../../deploy/kcp/", import.meta.url));

/** Every file of `crds/`, from the schemas. */
export function renderCrds(): readonly CrdFile[] {
  return [clusterMeshCrd(), ...ciliumCrds()].map((crd) => ({
    name: `${crd.spec.group}_${crd.spec.names.plural}.yaml`,
    text: generated([crd]),
  }));
}

/** Every generated file of `deploy/kcp/`, from the same schemas; what else is there is written by hand. */
export function renderKcp(): readonly CrdFile[] {
  const fill = (placeholder: string) => `# Replace ${placeholder} first: deploy/kcp/README.md says how.\n`;
  const identity = fill(fleetIdentityPlaceholder);
  return [
    { name: "apiresourceschemas.yaml", text: generated(apiResourceSchemas()) },
    { name: "apiexport.yaml", text: generated([networkingExport()], identity) },
    { name: "apibinding.yaml", text: generated([networkingBinding()], `${identity}${fill(exportPathPlaceholder)}`) },
  ];
}

function generated(objects: readonly object[], note = ""): string {
  const documents = objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }));
  return `# Generated from the schemas in src/api by \`npm run crds\`; do not edit.\n${note}${documents.join("---\n")}`;
}

/** One line for each file of the folder that is not what the schemas say; none, and the folder is up to date. */
export async function crdDifferences(folder: string): Promise<readonly string[]> {
  const files = renderCrds();
  const found = (await readdir(folder)).filter((name) => name.endsWith(".yaml"));
  const surplus = found.filter((name) => !files.some((file) => file.name === name));
  return [
    ...(await stale(folder, "crds", files)),
    ...surplus.map((name) => `crds/${name} is made from no schema: delete it`),
  ];
}

/** One line for each file of the folder for kcp that is not what the schemas say; others in it are left alone. */
export async function kcpDifferences(folder: string): Promise<readonly string[]> {
  return await stale(folder, "deploy/kcp", renderKcp());
}

async function stale(folder: string, called: string, files: readonly CrdFile[]): Promise<readonly string[]> {
  const found = await readdir(folder);
  const lines: string[] = [];
  for (const { name, text } of files) {
    if (!found.includes(name)) lines.push(`${called}/${name} is missing: run \`npm run crds\``);
    else if ((await readFile(join(folder, name), "utf8")) !== text) {
      lines.push(`${called}/${name} differs from the schemas in src/api: run \`npm run crds\` and commit it`);
    }
  }
  return lines;
}

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.filter((arg) => arg !== "--check");
  if (unknown.length > 0) {
    process.stderr.write(`crds: ${unknown.join(" ")} is not known; usage: crds [--check]\n`);
    return 2;
  }
  if (args.includes("--check")) {
    const differences = [...(await crdDifferences(crdFolder)), ...(await kcpDifferences(kcpFolder))];
    for (const line of differences) process.stderr.write(`${line}\n`);
    return differences.length === 0 ? 0 : 1;
  }
  await write(crdFolder, "crds", renderCrds());
  await write(kcpFolder, "deploy/kcp", renderKcp());
  return 0;
}

async function write(folder: string, called: string, files: readonly CrdFile[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const { name, text } of files) {
    await writeFile(join(folder, name), text);
    process.stdout.write(`${called}/${name}\n`);
  }
}

const started = process.argv[1];
if (started !== undefined && realpathSync(started) === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2));
}
