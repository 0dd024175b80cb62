// `users.yaml` of ConfigMap clustermesh-remote-users, read and written line by line: what others wrote stays as it is,
// to the byte. Only the form that Cilium's chart and documentation use is understood; anything else is left alone.

import { readYamlText, yamlText } from "./yaml-text.ts";

/** A user of clustermesh-apiserver's etcd, with the lines that say so. */
type Listed = { readonly name: string; readonly role: string; readonly from: number; readonly to: number };

/** A user and its role. */
export type RemoteUser = { readonly name: string; readonly role: string };

const usersMax = 2048;

/** The users of a text; undefined if it is of another form. */
export function readUsers(text: string): readonly RemoteUser[] | undefined {
  return listedIn(text)?.map(({ name, role }) => ({ name, role }));
}

/** The text without the users of these names. */
export function withoutUsers(text: string, names: ReadonlySet<string>): string {
  const listed = listedIn(text)?.filter(({ name }) => names.has(name)) ?? [];
  const gone = new Set(listed.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, index) => from + index)));
  if (gone.size === 0) return text;
  return text
    .split("\n")
    .filter((_, index) => !gone.has(index))
    .join("\n");
}

/** The text with further users, in their order; the same text if there are none. */
export function withUsers(text: string, users: readonly RemoteUser[]): string {
  if (users.length === 0) return text === "" || text === "users:\n" ? "users: []\n" : text;
  const listed = listedIn(text) ?? [];
  const lines = text.split("\n");
  const last = listed[listed.length - 1];
  const indent = last === undefined ? "" : (/^ */.exec(lines[last.from] ?? "")?.[0] ?? "");
  const added = users.flatMap(({ name, role }) => [
    `${indent}- name: ${yamlText(name)}`,
    `${indent}  role: ${yamlText(role)}`,
  ]);
  if (last === undefined) return `${["users:", ...added].join("\n")}\n`;
  return [...lines.slice(0, last.to), ...added, ...lines.slice(last.to)].join("\n");
}

function listedIn(text: string): readonly Listed[] | undefined {
  const lines = text.split("\n");
  const listed: Listed[] = [];
  let isOpen = false;
  for (let at = 0; at < lines.length; at += 1) {
    const line = (lines[at] ?? "").trimEnd();
    if (line === "" || line.startsWith("#")) continue;
    if (!isOpen) {
      if (!/^users:( *\[\]| null)?$/.test(line)) return undefined;
      isOpen = true;
      continue;
    }
    const first = /^( *)- (name|role): (.+)$/.exec(line);
    const second = first === null ? null : /^( *)(name|role): (.+)$/.exec((lines[at + 1] ?? "").trimEnd());
    const [, indent, firstKey, firstValue] = first ?? [];
    const [, secondIndent, secondKey, secondValue] = second ?? [];
    if (indent === undefined || secondIndent !== `${indent}  ` || firstKey === secondKey) return undefined;
    const [name, role] = firstKey === "name" ? [firstValue, secondValue] : [secondValue, firstValue];
    if (listed.length === usersMax) return undefined;
    listed.push({ name: readYamlText(name ?? ""), role: readYamlText(role ?? ""), from: at, to: at + 2 });
    at += 1;
  }
  return listed;
}
