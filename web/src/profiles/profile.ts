// Profiles as the API has them and as the form edits them.

import type { Profile, ProfileConfig } from '../lib/api';

/** Draft is a profile while it is edited: lists of globs are texts. */
export interface Draft {
  name: string;
  description: string;
  servers: string;
  tags: string;
  tools: string;
  mode: string;
  instructions: string;
  ask: boolean;
  calls: string;
  seconds: string;
}

const globs = ['servers', 'tags', 'tools'] as const;

export function draftOf(p?: Profile): Draft {
  const c = p?.config ?? {};
  const text = (list?: string[]) => list?.join(', ') ?? '';
  return {
    name: p?.name ?? '',
    description: c.description ?? '',
    servers: text(c.servers),
    tags: text(c.tags),
    tools: text(c.tools),
    mode: c.mode ?? '',
    instructions: c.instructions ?? '',
    ask: c.approval === 'ask',
    calls: c.rate ? String(c.rate.calls) : '',
    seconds: String((c.rate?.perMs ?? 60_000) / 1000),
  };
}

/** configOf returns the configuration of a draft. A list that was empty, and so selects nothing, stays so. */
export function configOf(d: Draft, before: ProfileConfig = {}): ProfileConfig {
  const out: ProfileConfig = {};
  if (d.description.trim()) out.description = d.description.trim();
  for (const key of globs) {
    const list = d[key].split(/[\n,]+/).map((g) => g.trim()).filter(Boolean);
    if (list.length > 0 || before[key]?.length === 0) out[key] = list;
  }
  if (d.mode) out.mode = d.mode;
  if (d.instructions.trim()) out.instructions = d.instructions.trim();
  if (d.ask) out.approval = 'ask';
  if (d.calls.trim()) out.rate = { calls: Number(d.calls), perMs: Math.round(Number(d.seconds) * 1000) };
  return out;
}

/** byServer groups names such as server:tool. */
export function byServer(tools: string[]): [string, string[]][] {
  const groups = new Map<string, string[]>();
  for (const t of tools) {
    const at = t.indexOf(':');
    const server = t.slice(0, at);
    groups.set(server, [...(groups.get(server) ?? []), t.slice(at + 1)]);
  }
  return [...groups];
}
