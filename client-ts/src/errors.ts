import type { components } from "./openapi.js";

type Problem = Partial<components["schemas"]["Problem"]> & { hint?: string };

/** Codes of errors that pass by themselves: a later attempt may succeed, and stores nothing twice. */
const PASSING = new Set(["unreachable", "unavailable", "timeout", "too_many_requests", "internal"]);

const HINTS: Record<string, string> = {
  unreachable: "Check that the gateway runs (`modestream up`) and that its address is right.",
  timeout: "The request may have taken effect; sending it again with the same ids is safe.",
  unavailable: "The service restarts or its broker is away: try again, or give the client an outbox.",
  too_many_requests: "Slow down: `retryAfterMs` says how long to wait.",
  unauthenticated: "Pass a key of the gateway as `key`.",
  not_allowed: "The key has no right to do this; its operator can grant it.",
  unknown_mode: "Declare the mode with `declareMode`, or use one that `listModes` returns.",
  outbox_full: "Check for how long the gateway has been away; the turn is stored nowhere.",
};

/** An error of the service or of the way to it. */
export class MemoryError extends Error {
  override readonly name = "MemoryError";
  /** A code of the service, or `unreachable`, `unexpected_answer`, `outbox_full`, `closed`. */
  readonly code: string;
  /** The next thing to try. */
  readonly hint: string | undefined;
  /** The status of the answer, where there was one. */
  readonly status: number | undefined;
  /** The field at fault, as a dotted path of the body. */
  readonly field: string | undefined;
  /** Names the request in the operator's log. */
  readonly requestId: string | undefined;
  /** The shortest pause before another attempt. */
  readonly retryAfterMs: number;

  constructor(code: string, message: string, more: ErrorOptions & Problem & { retryAfterMs?: number } = {}) {
    super(`${code}: ${message}${more.field ? ` (field ${more.field})` : ""}`, "cause" in more ? { cause: more.cause } : {});
    this.code = code;
    this.hint = more.hint ?? HINTS[code];
    this.status = more.status;
    this.field = more.field ?? undefined;
    this.requestId = more.request_id;
    this.retryAfterMs = more.retryAfterMs ?? 0;
  }

  /** True if a later attempt may succeed. Turns, reads and declarations may be sent again without harm. */
  get retryable(): boolean {
    return PASSING.has(this.code);
  }
}

/** Return the error of a body that may be a problem of RFC 9457; anything else comes from a proxy or another service. */
export function errorOf(body: unknown, response: Response): MemoryError {
  const problem: Problem = typeof body === "object" && body !== null ? body : {};
  const outage = response.status >= 502 && response.status <= 504;
  const code = problem.code ?? (outage ? "unavailable" : "unexpected_answer");
  const message = problem.detail ?? `the address answered ${response.status}`;
  const seconds = Number(response.headers.get("retry-after") ?? 0);
  return new MemoryError(code, message, {
    ...problem,
    status: response.status,
    retryAfterMs: Number.isFinite(seconds) ? 1000 * seconds : 0,
  });
}
