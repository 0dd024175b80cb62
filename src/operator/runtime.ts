// Time, chance and the log of a real process. Nothing else under src/operator but main.ts asks the machine for them.

import { pino } from "pino";
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

/** How a log is written. `redact` sees every text before it is written; `createSecrets().scrub` is meant for it. */
export type LogOptions = {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly destination: { write(line: string): unknown };
  readonly redact: (text: string) => string;
};

const textLengthMax = 4_096;
const listLengthMax = 50;
const ownFields: ReadonlySet<string> = new Set(["level", "time", "msg"]);
const secretField = /^(preshared|private)[-_]?key$|^(token|password)$/i;

/** A log that writes each line at once, without secrets and of limited length. */
export function createLog({ level, format, destination, redact }: LogOptions): Log {
  const write = format === "json" ? jsonWriter(level, destination) : prettyWriter(destination);
  const least = logLevels.indexOf(level);
  const at = (own: LogLevel): Log["info"] => {
    if (logLevels.indexOf(own) < least) return () => {};
    return (message, fields = {}) => write(own, clean(message), cleanFields(fields));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };

  function clean(text: string): string {
    const safe = redact(text);
    return safe.length > textLengthMax ? `${safe.slice(0, textLengthMax)}…` : safe;
  }

  function cleanFields(fields: LogFields): LogFields {
    const entries = Object.entries(fields).map(([name, value]): [string, LogFields[string]] => {
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
  const logger = pino(options, { write: (line) => void destination.write(line) });
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
  return /^[^\s"'=[\]\p{Cc}]+$/u.test(value) ? value : plain(JSON.stringify(value));
}

/** Control characters as escapes: what others wrote must not end a line or move a cursor. */
function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const redacted = "[redacted]";

/** The secrets that this process holds, so that none is ever written down. */
export type Secrets = {
  /** Makes every later `scrub` remove this text, also base64-encoded or inside JSON. Texts below 8 characters are not taken. */
  readonly register: (text: string) => void;
  /** The text without registered secrets, and without what looks like a JWT, a private key or a preshared key. */
  readonly scrub: (text: string) => string;
};

/** A shorter text would occur by chance, and take harmless words out of the log. */
const secretLengthMin = 8;
const secretsMax = 10_000;

/** Makes an empty set of secrets. When it is full the one that was registered longest ago goes. */
export function createSecrets(): Secrets {
  const forms = new Map<string, readonly string[]>();
  // Secrets by a few characters of theirs: a text is walked through once, however many secrets there are. They are taken
  // at three quarters, since tokens and keys begin and end alike but hold chance there.
  const byCore = new Map<string, Set<string>>();
  const coreStart = ({ length }: string): number => Math.min(Math.floor(length * 0.75), length - secretLengthMin);
  const coreOf = (form: string): string => form.slice(coreStart(form), coreStart(form) + secretLengthMin);

  function register(text: string): void {
    const secret = text.trim();
    if (secret.length < secretLengthMin) return;
    const own = [secret, JSON.stringify(secret).slice(1, -1), base64(secret), base64(text)];
    forms.delete(secret);
    const oldest = forms.size >= secretsMax ? forms.entries().next().value : undefined;
    if (oldest !== undefined) forget(...oldest);
    forms.set(secret, own);
    for (const form of own) byCore.set(coreOf(form), (byCore.get(coreOf(form)) ?? new Set()).add(form));
  }

  function forget(secret: string, own: readonly string[]): void {
    forms.delete(secret);
    for (const form of own) {
      const alike = byCore.get(coreOf(form));
      alike?.delete(form);
      if (alike?.size === 0) byCore.delete(coreOf(form));
    }
  }

  function found(text: string): string[] {
    const all = new Set<string>();
    for (let at = 0; byCore.size > 0 && at + secretLengthMin <= text.length; at += 1) {
      for (const form of byCore.get(text.slice(at, at + secretLengthMin)) ?? [])
        if (text.startsWith(form, at - coreStart(form))) all.add(form);
    }
    return [...all].sort((a, b) => b.length - a.length); // a secret may be the beginning of another
  }

  return {
    register,
    scrub: (text) => scrubShapes(found(text).reduce((rest, form) => rest.replaceAll(form, redacted), text)),
  };
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
