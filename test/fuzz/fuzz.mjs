// One reader against inputs from a seed. It must not throw, must not cost more than in proportion, and must not say
// anything that moves a cursor or forges a line.

import { quote } from "../../dist/core/shown.js";
import { chanceOf } from "../../dist/sim/chance.js";
import { growthProblem } from "../support/growth.mjs";
import { objectReaders } from "../support/object-readers.mjs";
import { textReaders } from "../support/text-readers.mjs";
import { objectInput, pumpedObject, pumpedText, textInput } from "./inputs.mjs";

/** Every reader that can be fuzzed, with how its inputs are made. */
export const targets = [
  ...textReaders.map((reader) => ({ ...reader, input: textInput, pumped: pumpedText })),
  ...objectReaders.map((reader) => ({ ...reader, input: objectInput, pumped: pumpedObject })),
];

/** One input in so many is a long one, which tells how the cost grows. */
const longEvery = 200;
const longSize = 16 * 1024;

/** A reader that is linear takes less for the longest input, on any machine; what takes more is measured. */
const suspectMs = 25;

/** Tries so many inputs; what the first one that goes wrong is, and why. */
export async function fuzz(target, { seed, from = 0, inputs }) {
  const count = Math.ceil(inputs / (target.dear ?? 1));
  for (let index = from; index < from + count; index += 1) {
    const chance = chanceOf(`${seed}/${target.name}/${index}`);
    const isLong = index % longEvery === longEvery - 1;
    const make = isLong ? target.pumped(chance, target.examples) : undefined;
    const input = make === undefined ? target.input(chance, target.examples) : make(longSize);
    const problem = await tryOne(target, input, make ?? (() => input));
    if (problem !== undefined) return { index, input, problem };
  }
  return undefined;
}

async function tryOne(target, input, make) {
  const startedMs = performance.now();
  let output;
  try {
    output = await target.read(input);
  } catch (error) {
    return `throws ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
  // A busy machine makes anything look slow: what seems so is run again, and CPU counts.
  if (performance.now() - startedMs > suspectMs && (await cpuMs(() => target.read(input))) > suspectMs) {
    const growth = await growthProblem({ name: target.name, make, read: target.read });
    if (growth !== undefined) return growth;
  }
  const text = unfit(output, target, target.kept !== true, 0);
  return text === undefined ? undefined : `says ${quote(text, 200)}`;
}

async function cpuMs(run) {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const unseen = /[\p{C}\p{Zl}\p{Zp}]/u;

/** Where a reader says what is wrong in its own words, even if it keeps everything else as it was written. */
const saying = new Set(["detail", "error", "invalid", "message", "notes", "reason"]);

/** The first text in a value, or name of a field, that cannot be shown as it is. */
function unfit(output, { lines }, isSaid, depth) {
  if (typeof output === "string") {
    return isSaid && unseen.test(lines === true ? output.replaceAll("\n", "") : output) ? output : undefined;
  }
  if (typeof output !== "object" || output === null || ArrayBuffer.isView(output) || depth > 20) return undefined;
  const isList = Array.isArray(output) || output instanceof Set;
  for (const [key, part] of output instanceof Map ? output : Object.entries(isList ? [...output] : output)) {
    const isSaying = saying.has(key) && (typeof part === "string" || Array.isArray(part));
    const found =
      unfit(isList ? "" : key, { lines }, isSaid, depth) ?? unfit(part, { lines }, isSaid || isSaying, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
