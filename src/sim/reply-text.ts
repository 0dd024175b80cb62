import { fieldsOf } from "../core/json.ts";
import type { SimReply } from "./answer.ts";
import { isFields } from "./value.ts";
import { objectText } from "./watching.ts";

/** The bytes of an answer as text. An object that is sent often is turned into JSON once. */
export function replyText({ body }: Pick<SimReply, "body">): string {
  if (typeof body === "string") return body;
  if (!isFields(body)) return JSON.stringify(body);
  const { items, ...rest } = body;
  if (!Array.isArray(items))
    return "metadata" in body && "uid" in fieldsOf(body["metadata"]) ? objectText(body) : JSON.stringify(body);
  const texts = items.map((item: unknown) => objectText(fieldsOf(item)));
  return `${JSON.stringify(rest).slice(0, -1)},"items":[${texts.join(",")}]}`;
}
