// How the cost of reading a text grows with its length. Judged by CPU and never by wall clock: by how much more a longer
// text costs, the least of several runs, on a machine that may be busy with other things.

const sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256].map((kib) => kib * 1024);
const [shortest, longest] = [4 * 1024, 256 * 1024];

/** Cheaper than this at every length is cheap, however it grows: a quadratic reader needs seconds for the longest. */
const cheapMs = 20;

/** Nothing longer is tried after a text that costs this much. */
const dearMs = 150;

/**
 * A reader that looks at every character once has 1, a quadratic one 2. A heap that grows, and noise, are in between: readers
 * that are linear were measured with up to 1.3 on two quiet cores.
 */
const exponentMax = 1.5;

/** What is wrong with how the cost grows; undefined if nothing is. Measured again, and the least counted, before it is said. */
export async function growthProblem(hostile) {
  const least = new Map();
  let problem;
  for (let attempt = 0; attempt < 5; attempt += 1) {
    for (const { size, ms } of await pointsOf(hostile)) least.set(size, Math.min(ms, least.get(size) ?? ms));
    problem = judge([...least].map(([size, ms]) => ({ size, ms })).sort((one, other) => one.size - other.size));
    if (problem === undefined) return undefined;
  }
  return problem;
}

function judge(points) {
  const dearest = points.reduce((worst, point) => (point.ms > worst.ms ? point : worst));
  if (dearest.ms < cheapMs) return undefined;
  const base = points.find(({ size }) => size * 8 >= dearest.size) ?? dearest;
  const exponent = Math.log(dearest.ms / base.ms) / Math.log(dearest.size / base.size);
  if (exponent <= exponentMax) return undefined;
  const said = points.map(({ size, ms }) => `${size / 1024} KiB ${ms.toFixed(1)} ms`).join(", ");
  return `grows with the length to the power of ${exponent.toFixed(2)}: ${said}`;
}

async function pointsOf({ make, read }) {
  const points = [];
  const pointAt = async (size, times) => {
    const input = make(size);
    return { size, ms: await leastMs(() => read(input), times) };
  };
  // Most are cheap at every length; what is quadratic would need a second for the longest, and be seen.
  if ((await pointAt(shortest, 1)).ms < 1) {
    const most = await pointAt(longest, 1);
    if (most.ms < cheapMs) return [most];
  }
  for (const size of sizes) {
    const point = await pointAt(size, 5);
    points.push(point);
    if (point.ms > dearMs) break;
  }
  return points;
}

/** The least CPU of several runs; what is dear is run less often. */
async function leastMs(run, times) {
  let [least, spent] = [Number.POSITIVE_INFINITY, 0];
  for (let time = 0; time < times && spent < 100; time += 1) {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1_000;
    least = Math.min(least, ms);
    spent += ms;
  }
  return least;
}
