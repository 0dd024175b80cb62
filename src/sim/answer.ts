// What a request is answered with, and every refusal in the words of a real API server.

import type { Fields } from "./value.ts";
import { quote } from "./value.ts";

/** One HTTP request, as a server sees it. */
export type SimRequest = {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** A line of a watch: its JSON, without the end of line. */
export type SimLine = string;

/** A watch under way. Nothing is lost between the answer and `subscribe`; after `cancel` or `onEnd` nothing comes. */
export type SimWatch = {
  /** Hands over every line so far at once, and then each as it happens; once only. */
  readonly subscribe: (onLine: (line: SimLine) => void, onEnd: () => void) => void;
  readonly cancel: () => void;
};

/** A whole answer: JSON, or plain text if `body` is text. The body is the store's own and must not be changed. */
export type SimReply = {
  readonly kind: "reply";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
};

/** An answer: whole, or a watch. */
export type SimAnswer =
  | SimReply
  | {
      readonly kind: "watch";
      readonly status: 200;
      readonly headers: Readonly<Record<string, string>>;
      readonly watch: SimWatch;
    };

/** Which kind, and which object of it, a refusal is about. */
export type About = { readonly group: string; readonly plural: string; readonly kind: string };

/** What is wrong with one field. */
export type Cause = { readonly reason: string; readonly message: string; readonly field: string };

/** A refusal; thrown inside the server and turned into its answer at the door. */
export class Refusal extends Error {
  readonly reply: SimReply;

  constructor(code: number, status: Fields) {
    const { message } = status;
    super(typeof message === "string" ? message : String(code));
    this.reply = json(code, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      ...status,
      code,
    });
  }
}

/** A JSON answer. */
export const json = (status: number, body: unknown): SimReply => ({
  kind: "reply",
  status,
  headers: { "content-type": "application/json" },
  body,
});

/** A plain answer. */
export const plain = (status: number, body: string): SimReply => ({
  kind: "reply",
  status,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body,
});

/** The path leads nowhere. */
export const noSuchPath = (): SimReply => plain(404, "404 page not found\n");

const resourceText = ({ group, plural }: About): string => (group === "" ? plural : `${plural}.${group}`);
const kindText = ({ group, kind }: About): string => (group === "" ? kind : `${kind}.${group}`);

const details = ({ group }: About, name: string, kind: string): Fields => ({
  ...(name === "" ? {} : { name }),
  ...(group === "" ? {} : { group }),
  kind,
});

/** There is no such object. */
export const notFound = (about: About, name: string): Refusal =>
  new Refusal(404, {
    message: `${resourceText(about)} ${quote(name)} not found`,
    reason: "NotFound",
    details: details(about, name, about.plural),
  });

/** There is no such kind. */
export const noSuchResource = (): Refusal =>
  new Refusal(404, { message: "the server could not find the requested resource", reason: "NotFound", details: {} });

/** The kind knows no such method. */
export const methodNotAllowed = (): Refusal =>
  new Refusal(405, {
    message: "the server does not allow this method on the requested resource",
    reason: "MethodNotAllowed",
    details: {},
  });

/** The part of the object knows no such method. */
export const notSupported = (about: About, verb: string): Refusal =>
  new Refusal(405, {
    message: `${verb} is not supported on resources of kind ${quote(resourceText(about))}`,
    reason: "MethodNotAllowed",
    details: details(about, "", about.plural),
  });

/** There is one of that name already. */
export const alreadyExists = (about: About, name: string): Refusal =>
  new Refusal(409, {
    message: `${resourceText(about)} ${quote(name)} already exists`,
    reason: "AlreadyExists",
    details: details(about, name, about.plural),
  });

/** Something that the request took for granted is not so; `as` is what the message names: the resource or its kind. */
export function conflict(about: About, name: string, why: string, as: "kind" | "plural" = "plural"): Refusal {
  const what = as === "kind" ? kindText(about) : resourceText(about);
  return new Refusal(409, {
    message: `Operation cannot be fulfilled on ${what} ${quote(name)}: ${why}`,
    reason: "Conflict",
    details: details(about, name, about[as]),
  });
}

/** Somebody changed the object meanwhile. */
export const modifiedMeanwhile = (about: About, name: string): Refusal =>
  conflict(about, name, "the object has been modified; please apply your changes to the latest version and try again");

/** The request makes no sense. */
export const badRequest = (message: string): Refusal => new Refusal(400, { message, reason: "BadRequest" });

/** The server is at a loss. */
export const internal = (message: string): Refusal => new Refusal(500, { message });

/** The body is of a kind that the path does not take. */
export const unsupported = (accepted: readonly string[]): Refusal =>
  new Refusal(415, {
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
    reason: "UnsupportedMediaType",
  });

/** A patch does not fit. */
export const unprocessable = (): Refusal =>
  new Refusal(422, {
    message: "the server rejected our request due to an error in our request",
    reason: "Invalid",
    details: {},
  });

/** What is asked for is not in the history any more; a list may go on without consistency from a new token. */
export const expired = (message: string, token?: string): Refusal =>
  new Refusal(410, {
    ...(token === undefined ? {} : { metadata: { continue: token } }),
    message,
    reason: "Expired",
  });

/** Nobody knows who asks. */
export const unauthorized = (): Refusal => new Refusal(401, { message: "Unauthorized", reason: "Unauthorized" });

/** Whoever asks may not. */
export const forbidden = (about: About | undefined, name: string, why: string): Refusal => {
  if (about === undefined) return new Refusal(403, { message: `forbidden: ${why}`, reason: "Forbidden", details: {} });
  const which = name === "" ? "" : ` ${quote(name)}`;
  return new Refusal(403, {
    message: `${resourceText(about)}${which} is forbidden: ${why}`,
    reason: "Forbidden",
    details: details(about, name, about.plural),
  });
};

/** The object is not as it must be. */
export function invalid(about: About, name: string, causes: readonly Cause[], as: "kind" | "plural" = "kind"): Refusal {
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  const what = as === "kind" ? kindText(about) : resourceText(about);
  return new Refusal(422, {
    message: `${what} ${quote(name)} is invalid: ${texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`}`,
    reason: "Invalid",
    details: { ...details(about, name, about[as]), causes },
  });
}

/** Others own what an apply would change. */
export function applyConflict(conflicts: readonly { readonly manager: string; readonly path: string }[]): Refusal {
  const managers = [...new Set(conflicts.map(({ manager }) => manager))].sort();
  const [only] = conflicts;
  const text =
    conflicts.length === 1 && only !== undefined
      ? `conflict with ${only.manager}: ${only.path}`
      : managers
          .flatMap((manager) => [
            `conflicts with ${manager}:`,
            ...conflicts.filter((each) => each.manager === manager).map(({ path }) => `- ${path}`),
          ])
          .join("\n");
  return new Refusal(409, {
    message: `Apply failed with ${conflicts.length} conflict${conflicts.length === 1 ? "" : "s"}: ${text}`,
    reason: "Conflict",
    details: {
      causes: conflicts.map(({ manager, path }) => ({
        reason: "FieldManagerConflict",
        message: `conflict with ${manager}`,
        field: path,
      })),
    },
  });
}

/** What is wrong with a value. */
export const invalidValue = (field: string, value: unknown, why: string): Cause => ({
  reason: "FieldValueInvalid",
  message: `Invalid value: ${typeof value === "string" ? quote(value) : JSON.stringify(value)}: ${why}`,
  field,
});

/** A value that is missing. */
export const required = (field: string, why = ""): Cause => ({
  reason: "FieldValueRequired",
  message: why === "" ? "Required value" : `Required value: ${why}`,
  field,
});
