// `node server-watchdog.mjs FOLDER`: ends the fleet in FOLDER as soon as standard input closes. The other end is held by
// whoever started the fleet, so it closes when that process is done, is interrupted or is killed.
import { endFleet } from "./server-pids.mjs";

const [folder] = process.argv.slice(2);
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {});
await new Promise((resolve) => process.stdin.on("close", resolve).resume());
await endFleet(folder);
