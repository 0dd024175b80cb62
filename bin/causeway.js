#!/usr/bin/env node
import { existsSync } from "node:fs";

const program = new URL("../dist/cli/main.js", import.meta.url);
if (existsSync(program)) {
  const { main } = await import(program.href);
  process.exitCode = await main(process.argv.slice(2));
} else {
  console.error("causeway is not built: npm run build");
  process.exitCode = 3;
}
