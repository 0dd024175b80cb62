// Time, chance and the log of a real process. Nothing else under src/operator but main.ts asks the machine for them.

import { pino } from "pino";
import { escaped } from "../core/shown.ts";
import { type Clock, type Log, type LogFields, type Runtime, sleepWith } from "../kube/runtime.ts";

/** The runtime of a real process. */
export function systemRuntime(log: Log): Runtime {
  const clock: Clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    after,
    sleep: (ms, signal) => sleepWith(after, ms, signal),
  };
  return { clock, random: Math.random, log };
}

/** Node fires a timer that is set for longer at once. */
const timerMsMax = 2 ** 31 - 1;

// These timers keep the process alive, on purpose: while every cluster is in back-off they are all there is. Whoever
// sets one calls it off when it ends.
function after(ms: number, run: () => void): () => void {
  const endMs = performance.now() + ms;
  let timer = setTimeout(wake, timerMs(ms));
  return () => clearTimeout(timer);

  function wake(): void {
    const leftMs = endMs - performance.now();
    if (leftMs > 0) timer = setTimeout(wake, timerMs(leftMs));
    else run();
  }
}

const timerMs = (ms: number): number => Math.min(Math.max(0, Math.ceil(ms)), timerMsMax);

/** From which level on lines are written. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** The levels, from the most to the least talkative. */
export const logLevels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** JSON lines for machines, or one readable line each for people. */
export type LogFormat = "json" | "pretty";

/** How a log is written. `redact` sees every text before it is written, with what knows the secrets. */
export type LogOptions = {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly destination: { write(line: string): unknown };
  readonly redact: Pick<Secrets, "scrub" | "scrubShapes">;
};

const textLengthMax = 4_096;
const listLengthMax = 50;
const ownFields: ReadonlySet<string> = new Set(["level", "time", "msg"]);
/** Names, codes and kinds: others choose them, and a line without them says nothing. */
const nameFields: ReadonlySet<string> = new Set([
  "action",
  "cluster",
  "code",
  "failure",
  "holder",
  "identity",
  "intent",
  "key",
  "kind",
  "lease",
  "mesh",
  "name",
  "namespace",
  "reason",
  "resource",
  "server",
  "version",
]);
const secretField = /^(preshared|private)[-_]?key$|^(token|password)$/i;

/** A log that writes each line at once, without secrets and of limited length. */
export function createLog({ level, format, destination, redact }: LogOptions): Log {
  const write = format === "json" ? jsonWriter(level, destination) : prettyWriter(destination);
  const least = logLevels.indexOf(level);
  const at = (own: LogLevel): Log["info"] => {
    if (logLevels.indexOf(own) < least) return () => {};
    return (message, fields = {}) => write(own, bounded(redact.scrub(message)), cleanFields(fields));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };

  function bounded(text: string): string {
    return text.length > textLengthMax ? `${text.slice(0, textLengthMax)}…` : text;
  }

  function cleanFields(fields: LogFields): LogFields {
    const cluster = typeof fields["cluster"] === "string" ? fields["cluster"] : undefined;
    const entries = Object.entries(fields).map(([name, value]): [string, LogFields[string]] => {
      const clean = (text: string): string =>
        bounded(nameFields.has(name) ? redact.scrubShapes(text) : redact.scrub(text, cluster));
      // A field that is called like one of the line's own would stand in the JSON twice.
      const free = ownFields.has(name) ? `${name}_` : clean(name);
      if (typeof value === "string") return [free, secretField.test(name) ? redacted : clean(value)];
      if (typeof value !== "object" || value === null) return [free, value];
      const shown = value.slice(0, listLengthMax).map(clean);
      if (value.length > shown.length) shown.push(`… ${value.length - shown.length} more`);
      return [free, shown];
    });
    return Object.fromEntries(entries);
  }
}

type Writer = (level: LogLevel, message: string, fields: LogFields) => void;

function jsonWriter(level: LogLevel, destination: LogOptions["destination"]): Writer {
  const formatters = { level: (label: string) => ({ level: label }) };
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, messageKey: "msg", formatters };
  const logger = pino(options, { write: (line) => void destination.write(escaped(line)) });
  return (own, message, fields) => logger[own](fields, message);
}

function prettyWriter(destination: LogOptions["destination"]): Writer {
  return (level, message, fields) => {
    const words = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => ` ${plain(name)}=${word(value)}`);
    const time = new Date().toISOString().slice(11, 23);
    destination.write(`${time} ${level.toUpperCase().padEnd(5)} ${plain(message)}${words.join("")}\n`);
  };
}

/** A value in a pretty line: bare if it is one word, else quoted. */
function word(value: LogFields[string]): string {
  if (typeof value === "object" && value !== null) return `[${value.map(word).join(" ")}]`;
  if (typeof value !== "string") return String(value);
  return /^[^\s"'=[\]\p{C}]+$/u.test(value) ? value : plain(JSON.stringify(value));
}

/** What cannot be seen as escapes: what others wrote must not end a line or move a cursor. */
const plain = (text: string): string => escaped(text).replaceAll("\n", "\\u000a");

const redacted = "[redacted]";

/** The secrets that this process holds, so that none is ever written down. */
export type Secrets = {
  /**
   * Makes every later `scrub` remove this text, also base64-encoded or inside JSON. Texts below 20 characters are not
   * taken. Whose it is: a cluster's, or this process's own, if nothing is said.
   */
  readonly register: (text: string, cluster?: string, server?: string) => void;
  /**
   * The text without secrets, and without what looks like a JWT, a private key or a preshared key. Whoever writes a
   * kubeconfig chooses its token: in a line about another cluster it goes only if it looks like chance and is no name.
   */
  readonly scrub: (text: string, cluster?: string) => string;
  /** The text without what looks like a secret; for names, codes and kinds, which are others' to choose. */
  readonly scrubShapes: (text: string) => string;
};

/** A shorter text would occur by chance, and take harmless words out of the log. */
const secretLengthMin = 20;
const coreLength = 8;
const secretsMax = 10_000;
/** Tokens and keys of one cluster; those of a few changes. */
const secretsPerCluster = 8;
const ourselves = "local";

type Kept = { readonly owners: Set<string>; readonly forms: readonly string[]; readonly isRandom: boolean };

/** Makes an empty set of secrets. When it is full the one that was registered longest ago goes. */
export function createSecrets(): Secrets {
  const kept = new Map<string, Kept>();
  const byOwner = new Map<string, Set<string>>();
  const names = new Map<string, string>();
  // Secrets by a few characters of theirs: a text is walked through once, however many secrets there are. They are taken
  // at three quarters, since tokens and keys begin and end alike but hold chance there.
  const byCore = new Map<string, Map<string, Kept>>();
  const coreStart = ({ length }: string): number => Math.min(Math.floor(length * 0.75), length - coreLength);
  const coreOf = (form: string): string => form.slice(coreStart(form), coreStart(form) + coreLength);

  function register(text: string, given = ourselves, server = ""): void {
    const cluster = given.includes("/") ? given : ourselves; // only what comes from a Secret is somebody else's
    names.delete(cluster);
    names.set(cluster, server);
    const [stale] = names.size > secretsMax ? names.keys() : [];
    if (stale !== undefined) names.delete(stale);
    const secret = text.trim();
    if (secret.length < secretLengthMin) return;
    const own = byOwner.get(cluster) ?? new Set();
    byOwner.set(cluster, own);
    own.delete(secret);
    own.add(secret);
    const [first] = own;
    if (own.size > secretsPerCluster && first !== undefined) disown(first, cluster);
    const owners = kept.get(secret)?.owners ?? new Set();
    if (kept.has(secret)) forget(secret);
    const [oldest] = kept.size >= secretsMax ? kept : [];
    if (oldest !== undefined) for (const owner of oldest[1].owners) disown(oldest[0], owner);
    const forms = [secret, JSON.stringify(secret).slice(1, -1), base64(secret), base64(text)];
    const made = { owners: owners.add(cluster), forms, isRandom: looksRandom(secret) };
    kept.set(secret, made);
    for (const form of forms) byCore.set(coreOf(form), (byCore.get(coreOf(form)) ?? new Map()).set(form, made));
  }

  function disown(secret: string, owner: string): void {
    const own = byOwner.get(owner);
    own?.delete(secret);
    if (own?.size === 0) byOwner.delete(owner);
    const owners = kept.get(secret)?.owners;
    owners?.delete(owner);
    if (owners?.size === 0) forget(secret);
  }

  function forget(secret: string): void {
    for (const form of kept.get(secret)?.forms ?? []) {
      const alike = byCore.get(coreOf(form));
      alike?.delete(form);
      if (alike?.size === 0) byCore.delete(coreOf(form));
    }
    kept.delete(secret);
  }

  function found(text: string, cluster: string | undefined): string[] {
    const all = new Set<string>();
    for (let at = 0; byCore.size > 0 && at + coreLength <= text.length; at += 1) {
      for (const [form, secret] of byCore.get(text.slice(at, at + coreLength)) ?? [])
        if (!all.has(form) && text.startsWith(form, at - coreStart(form)) && counts(secret, cluster)) all.add(form);
    }
    return [...all].sort((a, b) => b.length - a.length); // a secret may be the beginning of another
  }

  function counts({ owners, forms, isRandom }: Kept, cluster: string | undefined): boolean {
    if (owners.has(ourselves) || (cluster !== undefined && owners.has(cluster))) return true;
    return isRandom && ![...names].some((pair) => pair.some((name) => name.includes(forms[0] ?? "")));
  }

  return {
    register,
    scrub: (text, cluster) =>
      scrubShapes(found(text, cluster).reduce((rest, form) => rest.replaceAll(form, redacted), text)),
    scrubShapes,
  };
}

/** Whether a text can hardly be a word that is of use to anybody: names and codes have few digits and no mixed case. */
function looksRandom(text: string): boolean {
  if (text.includes("\n")) return true;
  if (/[a-z]/.test(text) && /[A-Z]/.test(text) && /\d/.test(text)) return true;
  return text.replaceAll(/\D/g, "").length >= coreLength;
}

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

// What secrets look like when nobody registered them. Each begins where no part of one can begin inside another, and has
// no choice to go back on, so that a hostile text costs no more than its length.
const shapes: readonly (readonly [hint: RegExp, shape: RegExp, instead: string])[] = [
  [/eyJ/, /(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{8,}(?:\.[\w-]+){2,4}/g, redacted],
  [/PRIVATE KEY/, /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[^]*?(?:-----END [A-Z0-9 ]{0,40}-----|$)/g, redacted],
  // "-----BEGIN " in base64: how kubeconfigs carry keys (and certificates, which do no harm either way).
  [/LS0tLS1CRUdJTi/, /LS0tLS1CRUdJTi[\w+/=]+/g, redacted],
  [/key/i, /((?:preshared|private)[-_ ]?key[\\"'\s]{0,8}[:=][\\"'\s]{0,8})[\w+/]{40,}={0,2}/gi, `$1${redacted}`],
];

function scrubShapes(text: string): string {
  let rest = text;
  for (const [hint, shape, instead] of shapes) if (hint.test(rest)) rest = rest.replace(shape, instead);
  return rest;
}
