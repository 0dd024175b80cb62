import { readFileSync } from "node:fs";
import { fieldsOf, textOf } from "../core/json.ts";

/** The version of this package. */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return textOf(fieldsOf(JSON.parse(text))["version"]) ?? "unknown";
}
