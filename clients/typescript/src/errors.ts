/** The errors of the client, with messages that explain what to do. */

export interface ErrorFields {
  status?: number;
  code?: string;
  details?: unknown;
  requestId?: string;
  retryAfter?: number;
  cause?: unknown;
}

/**
 * The gateway responded with an error. `code` is for programs (TOOL_NOT_FOUND,
 * INVALID_ARGUMENTS …), `details` has the facts, and `requestId` is the id
 * under which the gateway's log has the rest.
 */
export class GatewayError extends Error {
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly details: unknown;
  readonly requestId: string | undefined;
  /** Seconds after which a retry is useful. */
  readonly retryAfter: number | undefined;

  constructor(message: string, fields: ErrorFields = {}) {
    super(message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.name = new.target.name;
    this.status = fields.status;
    this.code = fields.code;
    this.details = fields.details;
    this.requestId = fields.requestId;
    this.retryAfter = fields.retryAfter;
  }
}

/** The request or the tool's arguments are wrong (400, 405, 413). */
export class InvalidRequestError extends GatewayError {}
/** No or wrong credentials, here or at the upstream (401). */
export class AuthenticationError extends GatewayError {}
/** Not allowed, or the tool is disabled (403). */
export class PermissionDeniedError extends GatewayError {}
/** No such server, tool or provider (404). */
export class NotFoundError extends GatewayError {}
/** Too many calls (429). */
export class RateLimitError extends GatewayError {}
/** The upstream is down, slow, or its circuit is open (502, 503, 504). */
export class UpstreamError extends GatewayError {}
/** The gateway cannot be reached. */
export class GatewayConnectionError extends GatewayError {}
/** The gateway did not answer in time. The tool may still have run. */
export class GatewayTimeout extends GatewayConnectionError {}

const byStatus: Record<number, typeof GatewayError> = {
  400: InvalidRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  405: InvalidRequestError,
  413: InvalidRequestError,
  429: RateLimitError,
  502: UpstreamError,
  503: UpstreamError,
  504: UpstreamError,
};

/** Returns the error for an error response. */
export function errorFor(status: number, body: unknown, retryAfter?: string | null): GatewayError {
  const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const message = typeof fields["message"] === "string" ? fields["message"] : `the gateway answered with status ${status}`;
  const seconds = retryAfter ? Number(retryAfter) : NaN;
  return new (byStatus[status] ?? GatewayError)(message, {
    status,
    ...(typeof fields["code"] === "string" && { code: fields["code"] }),
    ...(fields["details"] !== undefined && { details: fields["details"] }),
    ...(typeof fields["requestId"] === "string" && { requestId: fields["requestId"] }),
    ...(seconds >= 0 && { retryAfter: seconds }),
  });
}
