// What processes cost, from /proc. On other systems nothing is known, and every answer is undefined.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

const ticksPerSecond = 100; // USER_HZ is 100 on every Linux that Node.js runs on
const hasProc = existsSync("/proc/self/stat");

/** The processes of a process group. */
export function groupPids(group) {
  if (!hasProc) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && statOf(name)?.group === group)
    .map(Number);
}

/** CPU seconds that processes have used so far, user and system. */
export function cpuSeconds(pids) {
  if (!hasProc) return undefined;
  return pids.reduce((sum, pid) => sum + (statOf(pid)?.cpuSeconds ?? 0), 0);
}

/** Memory of processes in MB: now, and at their peaks. */
export function memoryMb(pids) {
  if (!hasProc) return undefined;
  const sum = { rss: 0, peak: 0 };
  for (const pid of pids) {
    const status = readText(`/proc/${pid}/status`) ?? "";
    const field = (name) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1024) / 1e6;
    sum.rss += field("VmRSS");
    sum.peak += field("VmHWM");
  }
  return sum;
}

/**
 * Measures what a phase costs: CPU seconds of the operator, of the servers, of the bench itself and of everything else on
 * the machine. The answer ends the phase.
 */
export function measureLoad({ operator, servers }) {
  const look = () => ({
    atMs: performance.now(),
    operator: cpuSeconds(operator()),
    servers: cpuSeconds(servers()),
    bench: cpuSeconds([process.pid]),
    machine: machineSeconds(),
  });
  const before = look();
  return () => {
    const after = look();
    const seconds = (name) => (before[name] === undefined ? undefined : after[name] - before[name]);
    const [own, known] = [seconds("operator"), ["operator", "servers", "bench"]];
    const others = seconds("machine") - known.reduce((sum, name) => sum + seconds(name), 0);
    return {
      wall: (after.atMs - before.atMs) / 1000,
      operator: own,
      servers: seconds("servers"),
      bench: seconds("bench"),
      others: Number.isNaN(others) ? undefined : Math.max(0, others),
      cores: availableParallelism(),
    };
  };
}

function machineSeconds() {
  const line = readText("/proc/stat")?.split("\n")[0];
  if (line === undefined) return undefined;
  const [user, nice, system, , , irq, softirq, steal] = line.trim().split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq + steal) / ticksPerSecond;
}

function statOf(pid) {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" "); // from the third field on: the name may hold anything
  return { group: Number(fields[2]), cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond };
}

function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return undefined;
    throw error;
  }
}
