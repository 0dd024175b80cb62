// Answers without what no two servers share: ids, versions, times and the order of things that have none. Versions and
// ids become numbers in the order of their first appearance, so that "the same as before" stays visible.

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Makes the answers of one server comparable; one for each run of a case. */
export type Normaliser = (value: unknown) => unknown;

/** A normaliser that has seen nothing yet. */
export function normaliser(): Normaliser {
  const uids = new Map<string, string>();
  const versions = new Map<string, string>();
  const names = new Map<string, string>();
  const known = (map: Map<string, string>, value: string, prefix: string): string => {
    const found = map.get(value) ?? `<${prefix} ${map.size + 1}>`;
    map.set(value, found);
    return found;
  };

  const text = (value: string): string => {
    let out = value;
    for (const [uid, name] of uids) out = out.replaceAll(uid, name);
    for (const [generated, name] of names) out = out.replaceAll(generated, name);
    return out
      .replaceAll(/Invalid value: "\{.*\}": /g, 'Invalid value: "<what the patch made>": ')
      .replaceAll("Key: /spare/", "Key: /registry/")
      .replaceAll(/\((\d+)\)/g, (whole, version: string) =>
        versions.has(version) ? `(${versions.get(version)})` : whole,
      )
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
      .replaceAll(/resourceVersion(\\*)":(\\*)"\d+/g, 'resourceVersion$1":$2"<rv>')
      .replaceAll(/too old resource version: \d+ \(\d+\)/g, "too old resource version: <old> (<floor>)")
      .replaceAll(
        /Too large resource version: (\d+), current: \d+/g,
        "Too large resource version: <large>, current: <rv>",
      );
  };

  const field = (key: string, value: unknown, owner: Fields): unknown => {
    if (typeof value === "string") {
      if (key === "uid" && /^[0-9a-f]{8}-/.test(value)) return known(uids, value, "uid");
      if (key === "name" && typeof owner["generateName"] === "string" && value.startsWith(owner["generateName"])) {
        return known(names, value, "generated");
      }
      if (key === "resourceVersion") return "uid" in owner ? known(versions, value, "rv") : "<rv>";
      if (key === "continue" && value !== "") return "<token>";
      if (key === "token") return "<token>";
    }
    if (key === "managedFields" && Array.isArray(value)) return inOrder(value.map(normal), entryKey);
    // How old a row is depends on how long the case took so far.
    if (key === "cells" && Array.isArray(value))
      return value.map((cell) => (typeof cell === "string" && /^\d+s$/.test(cell) ? "<age>" : normal(cell)));
    if (key === "causes" && Array.isArray(value)) return inOrder(value.map(normal), (each) => JSON.stringify(each));
    return normal(value);
  };

  const normal = (value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(normal);
    if (!isFields(value)) return value;
    const keys = Object.keys(value).sort((a, b) => Number(b === "metadata") - Number(a === "metadata"));
    const out = Object.fromEntries(keys.map((key) => [key, field(key, value[key], value)]));
    return isFields(out["details"]) ? withSortedMessage(out, out["details"]) : out;
  };
  return normal;
}

const inOrder = (list: readonly unknown[], key: (item: unknown) => string): readonly unknown[] =>
  [...list].sort((a, b) => (key(a) < key(b) ? -1 : 1));

const entryKey = (entry: unknown): string => {
  const { manager, operation, subresource } = entry as Fields;
  return [operation, manager, subresource].join("/");
};

/** Several faults are listed in the order of Go's maps, which is none. */
function withSortedMessage(status: Fields, details: Fields): Fields {
  const { causes } = details;
  const { message } = status;
  if (!Array.isArray(causes) || causes.length < 2 || typeof message !== "string") return status;
  const start = message.indexOf(" is invalid: ");
  if (start < 0) return status;
  return { ...status, message: `${message.slice(0, start)} is invalid: ${causes.length} causes` };
}
