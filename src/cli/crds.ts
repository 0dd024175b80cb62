import { realpathSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { ciliumCrds, clusterMeshCrd } from "../api/crd.ts";

/** A generated file: its name in `crds/` and its whole text. */
export type CrdFile = { readonly name: string; readonly text: string };

/** Where the generated files are kept. */
export const crdFolder = fileURLToPath(new URL("../../crds/", import.meta.url));

/** Every file of `crds/`, from the schemas. */
export function renderCrds(): readonly CrdFile[] {
  return [clusterMeshCrd(), ...ciliumCrds()].map((crd) => ({
    name: `${crd.spec.group}_${crd.spec.names.plural}.yaml`,
    text: `# Generated from the schemas in src/api by \`npm run crds\`; do not edit.\n${stringify(crd, { lineWidth: 0 })}`,
  }));
}

/** One line for each file of the folder that is not what the schemas say; none, and the folder is up to date. */
export async function crdDifferences(folder: string): Promise<readonly string[]> {
  const files = renderCrds();
  const found = (await readdir(folder)).filter((name) => name.endsWith(".yaml"));
  const lines: string[] = [];
  for (const { name, text } of files) {
    if (!found.includes(name)) lines.push(`crds/${name} is missing: run \`npm run crds\``);
    else if ((await readFile(join(folder, name), "utf8")) !== text) {
      lines.push(`crds/${name} differs from the schemas in src/api: run \`npm run crds\` and commit it`);
    }
  }
  const surplus = found.filter((name) => !files.some((file) => file.name === name));
  return [...lines, ...surplus.map((name) => `crds/${name} is made from no schema: delete it`)];
}

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.filter((arg) => arg !== "--check");
  if (unknown.length > 0) {
    process.stderr.write(`crds: ${unknown.join(" ")} is not known; usage: crds [--check]\n`);
    return 2;
  }
  if (args.includes("--check")) {
    const differences = await crdDifferences(crdFolder);
    for (const line of differences) process.stderr.write(`${line}\n`);
    return differences.length === 0 ? 0 : 1;
  }
  await mkdir(crdFolder, { recursive: true });
  for (const { name, text } of renderCrds()) {
    await writeFile(join(crdFolder, name), text);
    process.stdout.write(`crds/${name}\n`);
  }
  return 0;
}

const started = process.argv[1];
if (started !== undefined && realpathSync(started) === fileURLToPath(import.meta.url)) {
  process.exitCode = await main(process.argv.slice(2));
}
