import { readFileSync } from "node:fs";
import { join } from "node:path";

const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));

/** What `npm run sim` gives to Node.js: flags, and the program, which is to be found from the root of a checkout. */
export const simCommand: readonly string[] = String(scripts.sim).split(" ").slice(1);
