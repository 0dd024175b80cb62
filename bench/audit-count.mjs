// What API servers were asked, from their audit logs.
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from "node:fs";

const writing = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/** How the bench calls itself; what it asks is left out. */
export const benchAgent = "causeway-bench";

/** The present end of a log. */
export const endOfLog = (path) => (existsSync(path) ? statSync(path).size : 0);

/** Counts the requests of a piece of a log that neither the bench nor the server itself sent. */
export function countRequests(path, from) {
  const count = { lists: 0, writes: 0, gets: 0, watches: 0, leases: 0 };
  const seen = new Set();
  for (const line of readFrom(path, from).split("\n")) {
    if (line === "") continue;
    const { auditID, verb, user, userAgent = "", objectRef = {} } = JSON.parse(line);
    if (userAgent === benchAgent || /^system:(apiserver|anonymous)/.test(user.username ?? "")) continue;
    if (seen.has(auditID)) continue; // a watch has a line for its start and one for its end
    seen.add(auditID);
    if (objectRef.resource === "leases") count.leases += 1;
    else if (verb === "list") count.lists += 1;
    else if (verb === "watch") count.watches += 1;
    else if (writing.has(verb)) count.writes += 1;
    else count.gets += 1;
  }
  return count;
}

/** The whole lines from an offset on; the last one may be half written. */
function readFrom(path, offset) {
  if (!existsSync(path)) return "";
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(Math.max(0, fstatSync(file).size - offset));
    const length = readSync(file, buffer, 0, buffer.length, offset);
    return buffer.toString("utf8", 0, buffer.lastIndexOf("\n", length - 1) + 1);
  } finally {
    closeSync(file);
  }
}
