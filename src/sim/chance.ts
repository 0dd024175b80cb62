import type { Random } from "../kube/runtime.ts";

/** Chance that can be had again: the same seed gives the same numbers, on every machine. */
export type Chance = {
  /** A number in [0, 1). */
  readonly random: Random;
  /** A whole number from `min` to `max`, both possible. */
  readonly int: (min: number, max: number) => number;
  /** Whether something of this probability happens. */
  readonly happens: (probability: number) => boolean;
  /** One of several. */
  readonly pick: <T>(from: readonly [T, ...T[]]) => T;
  /** Chance of its own for one purpose: what others draw does not change what it draws. */
  readonly fork: (purpose: string) => Chance;
};

/** Chance from a seed. */
export function chanceOf(seed: string): Chance {
  const random = generator(seed);
  const int = (min: number, max: number): number => min + Math.floor(random() * (max - min + 1));
  return {
    random,
    int,
    happens: (probability) => random() < probability,
    pick: (from) => from[int(0, from.length - 1)] ?? from[0],
    fork: (purpose) => chanceOf(`${seed}/${purpose}`),
  };
}

/** The generator sfc32, started from four hashes of the seed. */
function generator(seed: string): Random {
  let [a, b, c, d] = [hash(seed, 1), hash(seed, 2), hash(seed, 3), 1];
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return (t >>> 0) / 4_294_967_296;
  };
  for (let warm = 0; warm < 12; warm += 1) next();
  return next;
}

/** FNV-1a. */
function hash(text: string, salt: number): number {
  let value = 2_166_136_261 ^ salt;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 16_777_619);
  }
  return value | 0;
}
