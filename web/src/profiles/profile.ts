// Conversion between the profiles of the API and the drafts that the form edits.

import type { Profile, ProfileConfig } from '../lib/api';

/** ProfileDraft is a profile being edited; lists of globs are comma-separated text. */
export interface ProfileDraft {
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

const globFields = ['servers', 'tags', 'tools'] as const;

export function draftFromProfile(p?: Profile): ProfileDraft {
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

/** configFromDraft returns the configuration of a draft. A list that was empty, which selects nothing, stays empty. */
export function configFromDraft(d: ProfileDraft, before: ProfileConfig = {}): ProfileConfig {
  const out: ProfileConfig = {};
  if (d.description.trim()) out.description = d.description.trim();
  for (const key of globFields) {
    const list = d[key].split(/[\n,]+/).map((g) => g.trim()).filter(Boolean);
    if (list.length > 0 || before[key]?.length === 0) out[key] = list;
  }
  if (d.mode) out.mode = d.mode;
  if (d.instructions.trim()) out.instructions = d.instructions.trim();
  if (d.ask) out.approval = 'ask';
  if (d.calls.trim()) out.rate = { calls: Number(d.calls), perMs: Math.round(Number(d.seconds) * 1000) };
  return out;
}

/** groupByServer groups tool names such as server:tool by server. */
export function groupByServer(tools: string[]): [string, string[]][] {
  const groups = new Map<string, string[]>();
  for (const t of tools) {
    const at = t.indexOf(':');
    const server = t.slice(0, at);
    groups.set(server, [...(groups.get(server) ?? []), t.slice(at + 1)]);
  }
  return [...groups];
}
