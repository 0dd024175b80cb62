import type { LabelSelector } from "../api/selector.ts";

/** Whether labels satisfy a selector, as Kubernetes reads it. */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const value = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(selector.matchLabels).every(([key, wanted]) => value(key) === wanted) &&
    selector.matchExpressions.every(({ key, operator, values }) => {
      const found = value(key);
      switch (operator) {
        case "In":
          return found !== undefined && values.includes(found);
        case "NotIn":
          return found === undefined || !values.includes(found);
        case "Exists":
          return found !== undefined;
        case "DoesNotExist":
          return found === undefined;
      }
    })
  );
}
