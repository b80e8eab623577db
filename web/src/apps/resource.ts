// The user interface of a tool (MCP Apps): its HTML, its Content-Security-Policy and the URL of its frame.
import { mcpRequest } from '../resources/catalog';

/** AppCsp has the origins that an app declares for its Content-Security-Policy. */
export interface AppCsp {
  connectDomains?: string[];
  resourceDomains?: string[];
  frameDomains?: string[];
  baseUriDomains?: string[];
}

export interface AppResource {
  html: string;
  csp: AppCsp;
  border: boolean;
}

interface Contents {
  uri?: string;
  mimeType?: string;
  text?: string;
  blob?: string;
  _meta?: { ui?: { csp?: unknown; prefersBorder?: unknown } };
}

/** maxHtmlLength bounds the HTML of an app. */
export const maxHtmlLength = 16 * 1024 * 1024;

const strings = (v: unknown): string[] => (Array.isArray(v) ? v.filter((s): s is string => typeof s === 'string' && s.length <= 256).slice(0, 32) : []);

function parseCsp(v: unknown): AppCsp {
  const c = (typeof v === 'object' && v !== null ? v : {}) as Record<string, unknown>;
  return { connectDomains: strings(c.connectDomains), resourceDomains: strings(c.resourceDomains), frameDomains: strings(c.frameDomains), baseUriDomains: strings(c.baseUriDomains) };
}

/** parseApp returns the app in the result of resources/read, or throws an error with the reason why there is none. */
export function parseApp(uri: string, contents: Contents[]): AppResource {
  const c = contents.find((c) => c.uri === uri) ?? contents[0];
  if (!c) throw new Error('The server returned no content for it.');
  if (!/^text\/html\s*;\s*profile="?mcp-app"?\s*$/i.test(c.mimeType ?? '')) throw new Error(`Its type is ${c.mimeType || 'not declared'}, not text/html;profile=mcp-app.`);
  if ((c.text ?? c.blob ?? '').length > maxHtmlLength) throw new Error('It is larger than 16 MB.');
  const html = typeof c.text === 'string' ? c.text : new TextDecoder().decode(Uint8Array.from(atob(c.blob ?? ''), (x) => x.charCodeAt(0)));
  return { html, csp: parseCsp(c._meta?.ui?.csp), border: c._meta?.ui?.prefersBorder !== false };
}

/** readApp reads an app from its server. */
export async function readApp(server: string, uri: string, signal: AbortSignal): Promise<AppResource> {
  if (!uri.startsWith('ui://')) throw new Error('Its address does not begin with ui://.');
  const result = await mcpRequest<{ contents?: Contents[] }>(server, 'resources/read', { uri }, signal);
  return parseApp(uri, result.contents ?? []);
}

/** frameUrl returns the URL of the document that loads an app with this policy (internal/webui, appframe.go). */
export function frameUrl(csp: AppCsp): string {
  const q = new URLSearchParams();
  for (const [name, list] of [['connect', csp.connectDomains], ['resource', csp.resourceDomains], ['frame', csp.frameDomains], ['base', csp.baseUriDomains]] as const)
    for (const s of list ?? []) q.append(name, s);
  const text = q.toString();
  return '/app-frame' + (text ? '?' + text : '');
}
