// A tiny JSON client for tests and the bench; deliberately not the operator's own, which is what they test.
import { Pool } from "undici";

const answerMsMax = 30_000;

/** A client that speaks to one server with one token. */
export function createClient({ url, caPem }, token, { connections = 8, userAgent = "causeway-test" } = {}) {
  const pool = new Pool(url, {
    connect: { ca: caPem },
    connections,
    headersTimeout: answerMsMax,
    bodyTimeout: answerMsMax,
  });
  const common = { authorization: `Bearer ${token}`, accept: "application/json", "user-agent": userAgent };
  const request = async (method, path, body, contentType = "application/json") => {
    const response = await pool.request({
      method,
      path,
      headers: body === undefined ? common : { ...common, "content-type": contentType },
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.statusCode, body: parsed(await response.body.text()) };
  };
  const ensure = async (path, object) => {
    const { status, body } = await request("POST", path, object);
    if (status !== 201 && status !== 409) throw new Error(`POST ${path}: ${status} ${JSON.stringify(body)}`);
  };
  return { request, ensure, close: () => pool.destroy() };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a health check, a metric or a watch
  }
}
