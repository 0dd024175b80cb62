import { isAnnotationKey } from "../cilium/service-annotations.ts";
import { type Cidr, parseCidr } from "../core/net/cidr.ts";
import { err, ok, type Result } from "../core/result.ts";
import { parseBindAddress } from "./health.ts";

/** A way of reading the value of a flag. An error says what would have been right. */
export type FlagKind<T> = {
  readonly isSwitch?: true;
  readonly read: (text: string) => Result<T, string>;
  readonly show: (value: T) => string;
};

/** Any text; an empty one is none. */
export const text: FlagKind<string | undefined> = {
  read: (given) => ok(given === "" ? undefined : given),
  show: (value) => value ?? "",
};

/** A switch, as Go reads it: what worked in the old operator's arguments goes on working. */
export const onOff: FlagKind<boolean> = {
  isSwitch: true,
  read: (given) => {
    if (/^(1|t|T|true|TRUE|True)$/.test(given)) return ok(true);
    return /^(0|f|F|false|FALSE|False)$/.test(given) ? ok(false) : err("true or false");
  },
  show: String,
};

/** Whole seconds, kept as milliseconds. */
export const seconds = (min = 0): FlagKind<number> => ({
  read: (given) =>
    /^\d{1,7}$/.test(given) && Number(given) >= min
      ? ok(Number(given) * 1000)
      : err(`a whole number of seconds${min > 0 ? `, ${min} or more` : ""}, for example 300`),
  show: (ms) => String(ms / 1000),
});

const unitMs = new Map([
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
]);

/** A duration as Go writes it, or whole seconds; kept as milliseconds. */
export const duration = (minMs: number, maxMs = Number.POSITIVE_INFINITY): FlagKind<number> => ({
  read: (given) => {
    const parts = [...(/^\d{1,7}$/.test(given) ? `${given}s` : given).matchAll(/(\d{1,7})(ms|h|m|s)/gy)];
    const ms = parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (unitMs.get(unit) ?? 0), 0);
    const isWhole = parts.map(([part]) => part).join("") === (/^\d+$/.test(given) ? `${given}s` : given);
    if (parts.length > 0 && isWhole && ms >= minMs && ms <= maxMs) return ok(ms);
    const bounds =
      maxMs === Number.POSITIVE_INFINITY ? `${minMs / 1000} s or more` : `${minMs / 1000} to ${maxMs / 1000} s`;
    return err(`a duration of ${bounds}, for example ${minMs < 1_000 ? "200ms or 1s" : "5m or 30s"}`);
  },
  show: (ms) => {
    if (ms % 1000 !== 0) return `${ms}ms`;
    return ms > 0 && ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`;
  },
});

/** A whole number within bounds. */
export const count = (min: number, max: number): FlagKind<number> => ({
  read: (given) => {
    const isWithin = /^\d{1,6}$/.test(given) && Number(given) >= min && Number(given) <= max;
    return isWithin ? ok(Number(given)) : err(`a whole number from ${min} to ${max}`);
  },
  show: String,
});

/** Where to listen. */
export const address: FlagKind<string> = {
  read: (given) => {
    const parsed = parseBindAddress(given);
    return parsed.ok ? ok(given) : err("an address like :8081, 127.0.0.1:8081 or [::1]:8081, or 0 for none");
  },
  show: (value) => value,
};

/** The name of an object. */
export const objectName: FlagKind<string> = {
  read: (given) =>
    /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(given) && given.length <= 253
      ? ok(given)
      : err("the name of an object: small letters, digits, - and ."),
  show: (value) => value,
};

/** The name of a namespace; an empty text is none. */
export const namespace: FlagKind<string | undefined> = {
  read: (given) =>
    /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$/.test(given)
      ? ok(given === "" ? undefined : given)
      : err("the name of a namespace: at most 63 small letters, digits and -"),
  show: (value) => value ?? "",
};

/** Names of namespaces with commas between them, or `*` for all. */
export const namespaces: FlagKind<ReadonlySet<string> | "*"> = {
  read: (given) => {
    if (given === "*") return ok("*");
    const names = given.split(",").map((name) => name.trim());
    const isRight = names.every((name) => name !== "" && namespace.read(name).ok);
    return isRight ? ok(new Set(names)) : err("names of namespaces with commas between them, or * for all");
  },
  show: (value) => (value === "*" ? "*" : [...value].join(",")),
};

/** Networks with commas between them; an empty text is no limit. */
export const networks: FlagKind<readonly Cidr[] | undefined> = {
  read: (given) => {
    if (given === "") return ok(undefined);
    const read = given.split(",").map((network) => parseCidr(network.trim()));
    const ranges = read.flatMap((each) => (each.ok ? [each.value] : []));
    return ranges.length === read.length
      ? ok(ranges)
      : err("networks with commas between them, for example 10.0.0.0/8,fd00::/8");
  },
  show: (value) => value?.join(",") ?? "",
};

/** Keys of annotations, and domains with a slash behind them, with commas between them; an empty text is none. */
export const annotations: FlagKind<readonly string[]> = {
  read: (given) => {
    const keys = given === "" ? [] : given.split(",").map((key) => key.trim());
    return keys.every((key) => isAnnotationKey(key.endsWith("/") ? `${key}x` : key))
      ? ok(keys)
      : err("keys of annotations or domains with commas between them, for example example.com/team,example.org/");
  },
  show: (value) => value.join(","),
};

/** One of a few words. */
export function oneOf<T extends string>(...options: readonly T[]): FlagKind<T> {
  return {
    read: (given) => {
      const found = options.find((option) => option === given);
      return found === undefined ? err(options.join(", ").replace(/, (\w+)$/, " or $1")) : ok(found);
    },
    show: (value) => value,
  };
}
