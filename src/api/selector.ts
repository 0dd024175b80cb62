import { z } from "zod";
import { type Immutable, withoutNulls } from "./object.ts";

const requirementsMax = 64;
const valuesMax = 256;

const labelKey = z
  .string()
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/,
    "not a label key",
  );
const labelValue = z.string().regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/, "not a label value");
const labelMap = z.record(labelKey, labelValue);

const requirement = z
  .preprocess(
    withoutNulls,
    z.strictObject({
      key: labelKey,
      operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]),
      values: z.array(labelValue).max(valuesMax).optional(),
    }),
  )
  .refine(({ operator, values = [] }) => (operator === "In" || operator === "NotIn") === values.length > 0, {
    message: "In and NotIn need at least one value; Exists and DoesNotExist take none",
    path: ["values"],
  });

// Strict: the API server keeps what it does not know in a nodeSelector, and a mistyped key would widen the selection.
const fullSelector = z.preprocess(
  withoutNulls,
  z.strictObject({
    matchLabels: labelMap.optional(),
    matchExpressions: z.array(requirement).max(requirementsMax).optional(),
  }),
);

type LabelMap = Immutable<z.output<typeof labelMap>>;
type FullSelector = Immutable<z.output<typeof fullSelector>>;

/** Which nodes take part, as a user writes it: a plain map of labels, or a full label selector. */
export type NodeSelector = LabelMap | FullSelector;

/** One requirement of a selector in normal form; `values` is empty for `Exists` and `DoesNotExist`. */
export type SelectorRequirement = {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values: readonly string[];
};

/** A selector in normal form: every label and every requirement must match; an empty one matches every node. */
export type LabelSelector = {
  readonly matchLabels: LabelMap;
  readonly matchExpressions: readonly SelectorRequirement[];
};

/** Accepts both forms of a selector. Two forms under one key are no structural schema, so the CRD says only "object". */
export const nodeSelectorSchema = z
  .record(z.string(), z.unknown())
  .transform((value, context): NodeSelector => {
    const parsed = isFull(value) ? fullSelector.safeParse(value) : labelMap.safeParse(value);
    if (parsed.success) return parsed.data;
    for (const { path, message } of parsed.error.issues) context.addIssue({ code: "custom", path, message });
    return z.NEVER;
  })
  .meta({ "x-kubernetes-preserve-unknown-fields": true });

/** One form for both forms; no selector selects every node. */
export function normaliseSelector(selector: NodeSelector | undefined): LabelSelector {
  if (selector === undefined) return { matchLabels: {}, matchExpressions: [] };
  if (!isFullSelector(selector)) return { matchLabels: selector, matchExpressions: [] };
  return {
    matchLabels: selector.matchLabels ?? {},
    matchExpressions: (selector.matchExpressions ?? []).map(({ key, operator, values }) => ({
      key,
      operator,
      values: values ?? [],
    })),
  };
}

function isFullSelector(selector: NodeSelector): selector is FullSelector {
  return isFull(selector);
}

function isFull(value: Readonly<Record<string, unknown>>): boolean {
  const { matchLabels, matchExpressions } = value;
  const hasLabels = typeof matchLabels === "object" && matchLabels !== null && !Array.isArray(matchLabels);
  return hasLabels || Array.isArray(matchExpressions);
}
